package outbound_test

import (
	"errors"
	"net/url"
	"testing"

	"drydock.dev/drydock/outbound"
)

func TestSecretsDoNotGoByPlainHTTP(t *testing.T) {
	for address, refused := range map[string]bool{
		"http://example.com": true, "HTTP://example.com": true, "http://10.0.0.1:8080": true, "http://[2001:db8::1]": true,
		"http://localhost.example.com": true, "http://127.0.0.1.example.com": true,
		"https://example.com": false, "http://127.0.0.1:8080": false, "http://127.9.9.9": false, "http://[::1]:80": false,
		"http://localhost": false, "http://LOCALHOST.": false, "http://[::ffff:127.0.0.1]": false,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := outbound.CheckPlaintext(u, true, false); errors.Is(got, outbound.ErrPlaintext) != refused {
			t.Errorf("%s: %v", address, got)
		}
		if err := errors.Join(outbound.CheckPlaintext(u, true, true), outbound.CheckPlaintext(u, false, false)); err != nil {
			t.Errorf("%s, allowed or without a secret: %v", address, err)
		}
	}
}
