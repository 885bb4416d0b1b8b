package temporalenv

import (
	"crypto/tls"
	"testing"

	"go.temporal.io/sdk/client"
)

func TestShowsCredentials(t *testing.T) {
	withTLS := func(c *tls.Config) client.Options {
		return client.Options{ConnectionOptions: client.ConnectionOptions{TLS: c}}
	}
	for name, c := range map[string]struct {
		options client.Options
		want    bool
	}{
		"nothing":            {client.Options{}, false},
		"TLS of the server":  {withTLS(&tls.Config{}), false},
		"client certificate": {withTLS(&tls.Config{Certificates: []tls.Certificate{{}}}), true},
		"API key":            {client.Options{Credentials: client.NewAPIKeyStaticCredentials("key")}, true},
	} {
		if got := ShowsCredentials(c.options); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
