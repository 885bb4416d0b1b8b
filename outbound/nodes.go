package outbound

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// NodeAddresses are where a URL may lead whose host a node decides: a kubelet reports whatever it likes as its address, and a
// node's name may resolve to anything. Wherever no node is, a call is refused. The zero value allows no such address.
type NodeAddresses struct{ allowed []netip.Prefix }

// maxNodeAddresses bounds how many ranges are allowed.
const maxNodeAddresses = 100

// ParseNodeAddresses reads ranges that are allowed although they are among those that are refused. The error names the item.
func ParseNodeAddresses(ranges []string) (NodeAddresses, error) {
	var n NodeAddresses
	if len(ranges) > maxNodeAddresses {
		return n, fmt.Errorf("has %d ranges: at most %d", len(ranges), maxNodeAddresses)
	}
	for i, text := range ranges {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix != prefix.Masked() || prefix.Addr().Is4In6() {
			return n, fmt.Errorf("[%d]: %.50q is not a range of addresses: want one such as 127.0.0.0/8 or fd00:ec2::254/128", i, text)
		}
		n.allowed = append(n.allowed, prefix)
	}
	return n, nil
}

// refusedRange is one in which there is no node.
type refusedRange struct {
	netip.Prefix
	what string
}

var refusedRanges = []refusedRange{
	{netip.MustParsePrefix("127.0.0.0/8"), "a loopback address"},
	{netip.MustParsePrefix("::1/128"), "a loopback address"},
	{netip.MustParsePrefix("0.0.0.0/8"), "an unspecified address"},
	{netip.MustParsePrefix("::/128"), "an unspecified address"},
	{netip.MustParsePrefix("169.254.0.0/16"), "a link-local address, as metadata services have"},
	{netip.MustParsePrefix("fe80::/10"), "a link-local address"},
	{netip.MustParsePrefix("fd00:ec2::254/128"), "the metadata service of AWS"},
	{netip.MustParsePrefix("100.100.100.200/32"), "the metadata service of Alibaba Cloud"},
	{netip.MustParsePrefix("168.63.129.16/32"), "the platform service of Azure"},
	{netip.MustParsePrefix("192.0.0.192/32"), "the metadata service of Oracle Cloud"},
	{netip.MustParsePrefix("224.0.0.0/4"), "a multicast address"},
	{netip.MustParsePrefix("ff00::/8"), "a multicast address"},
	{netip.MustParsePrefix("255.255.255.255/32"), "the broadcast address"},
}

// nat64 are the addresses by which IPv6 reaches the IPv4 address in their last four bytes (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// check refuses an address at which there is no node.
func (n NodeAddresses) check(address netip.Addr) error {
	address = address.Unmap().WithZone("")
	if nat64.Contains(address) {
		bytes := address.As16()
		address = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	if slices.ContainsFunc(n.allowed, func(p netip.Prefix) bool { return p.Contains(address) }) {
		return nil
	}
	for _, refused := range refusedRanges {
		if refused.Contains(address) {
			return fmt.Errorf("%s is %s, and not a node's: outbound.allowNodeAddresses allows it", address, refused.what)
		}
	}
	return nil
}

// control is a net.Dialer's: it sees the address after its name was resolved, right before the connection is made.
func (n NodeAddresses) control(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	resolved, err := netip.ParseAddr(host)
	if err != nil {
		return err
	}
	return n.check(resolved)
}
