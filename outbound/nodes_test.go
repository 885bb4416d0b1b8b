package outbound

import (
	"net/netip"
	"strings"
	"testing"
)

func TestWhereNoNodeIs(t *testing.T) {
	none, err := ParseNodeAddresses(nil)
	if err != nil {
		t.Fatal(err)
	}
	some, err := ParseNodeAddresses([]string{"127.0.0.0/8", "fd00:ec2::254/128"})
	if err != nil {
		t.Fatal(err)
	}
	for text, c := range map[string]struct{ none, some bool }{
		"10.0.0.1": {true, true}, "192.168.1.1": {true, true}, "100.64.0.1": {true, true}, "fd00::1": {true, true}, "2001:db8::1": {true, true},
		"64:ff9b::a00:1": {true, true},
		"127.0.0.1":      {false, true}, "127.255.255.254": {false, true}, "::ffff:127.0.0.1": {false, true}, "64:ff9b::7f00:1": {false, true},
		"fd00:ec2::254": {false, true}, "fd00:ec2::255": {true, true},
		"::1": {}, "0.0.0.0": {}, "0.1.2.3": {}, "::": {}, "169.254.169.254": {}, "::ffff:169.254.169.254": {}, "64:ff9b::a9fe:a9fe": {},
		"fe80::1": {}, "fe80::1%eth0": {}, "224.0.0.1": {}, "ff02::1": {}, "255.255.255.255": {}, "100.100.100.200": {}, "168.63.129.16": {},
	} {
		for which, got := range map[string]struct {
			NodeAddresses
			want bool
		}{"none": {none, c.none}, "some": {some, c.some}} {
			if err := got.check(netip.MustParseAddr(text)); (err == nil) != got.want {
				t.Errorf("%s with %s allowed: %v", text, which, err)
			}
		}
	}
	for _, wrong := range []string{"10.0.0.1", "10.0.0.1/8", "::ffff:127.0.0.0/104", "localhost", "", "10.0.0.0/33"} {
		if _, err := ParseNodeAddresses([]string{"10.0.0.0/8", wrong}); err == nil || !strings.HasPrefix(err.Error(), "[1]: ") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := ParseNodeAddresses(make([]string, 101)); err == nil {
		t.Error("101 ranges are taken")
	}
}
