package outbound

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
)

// ErrPlaintext is a secret that would be sent for all on the way to read.
var ErrPlaintext = errors.New("would send a secret unencrypted: want https, or allowPlaintext: true where nobody else is on the way")

// CheckPlaintext refuses http for a call with a secret, unless that was allowed. What stays on this machine needs no
// allowance.
func CheckPlaintext(u *url.URL, secret, allowed bool) error {
	if !secret || allowed || !strings.EqualFold(u.Scheme, "http") || IsLoopback(u.Hostname()) {
		return nil
	}
	return ErrPlaintext
}

// IsLoopback reports whether a host, as a URL or an address has it, is this machine by itself: no name server is asked.
func IsLoopback(host string) bool {
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}
