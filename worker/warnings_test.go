package worker

import (
	"crypto/tls"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
)

func TestAWorkerWarnsOfATemporalThatAsksForNoCredentials(t *testing.T) {
	certificate := client.ConnectionOptions{TLS: &tls.Config{Certificates: []tls.Certificate{{}}, MinVersion: tls.VersionTLS12}}
	for name, c := range map[string]struct {
		options client.Options
		warns   bool
	}{
		"no credentials": {client.Options{}, true},
		"an API key":     {client.Options{Credentials: client.NewAPIKeyStaticCredentials("key")}, false},
		"a certificate":  {client.Options{ConnectionOptions: certificate}, false},
	} {
		var out strings.Builder
		c.options.HostPort, c.options.Namespace = "temporal:7233", "fleet"
		warnOfOpenServer(Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}, c.options)
		got := out.String()
		if (got != "") != c.warns {
			t.Errorf("%s: %q", name, got)
		}
		for _, part := range []string{"level=WARN", "anyone who reaches it can evict pods", "address=temporal:7233", "namespace=fleet"} {
			if c.warns && !strings.Contains(got, part) {
				t.Errorf("%s: %q does not say %q", name, got, part)
			}
		}
	}
}
