package temporalenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/deploy/devstack/pkitest"
)

// variables are an environment of their own.
type variables map[string]string

func (v variables) LookupEnv(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

func (v variables) Environ() []string {
	var all []string
	for name, value := range v {
		all = append(all, name+"="+value)
	}
	return all
}

func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const file = `
[profile.default]
address = "here:7233"
namespace = "ours"
[profile.default.grpc_meta]
some_header = "from the file"
other-header = "stays"

[profile.cloud]
address = "cloud:7233"
api_key = "s3cr3t"

[profile.plain]
api_key = "s3cr3t"
[profile.plain.tls]
disabled = true

[profile.named.tls]
server_name = "temporal.example.com"
`

func TestOptions(t *testing.T) {
	path := write(t, "temporal.toml", file)
	for name, c := range map[string]struct {
		env                variables
		profile            string
		address, namespace string
		secured            bool
		serverName         string
		headers            string
	}{
		"nothing at all":          {env: variables{"TEMPORAL_CONFIG_FILE": path + ".none"}},
		"default profile":         {env: variables{}, address: "here:7233", namespace: "ours", headers: "other-header=stays some-header=from the file"},
		"profile by flag":         {env: variables{"TEMPORAL_PROFILE": "plain"}, profile: "cloud", address: "cloud:7233", secured: true},
		"profile by variable":     {env: variables{"TEMPORAL_PROFILE": "cloud"}, address: "cloud:7233", secured: true},
		"TLS off for an API key":  {env: variables{}, profile: "plain"},
		"TLS off by variable":     {env: variables{"TEMPORAL_TLS": "false"}, profile: "cloud", address: "cloud:7233"},
		"TLS on by variable":      {env: variables{"TEMPORAL_TLS": "true"}, profile: "plain", secured: true},
		"TLS on by a name":        {env: variables{}, profile: "named", secured: true, serverName: "temporal.example.com"},
		"variables over the file": {env: variables{"TEMPORAL_ADDRESS": "there:1", "TEMPORAL_NAMESPACE": "theirs", "TEMPORAL_GRPC_META_SOME_HEADER": "x", "TEMPORAL_GRPC_META_OTHER_HEADER": ""}, address: "there:1", namespace: "theirs", headers: "some-header=x"},
		"API key by variable":     {env: variables{"TEMPORAL_API_KEY": "k", "TEMPORAL_TLS_SERVER_NAME": "n"}, address: "here:7233", namespace: "ours", secured: true, serverName: "n", headers: "other-header=stays some-header=from the file"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env["TEMPORAL_CONFIG_FILE"] == "" {
				c.env["TEMPORAL_CONFIG_FILE"] = path
			}
			o, err := Options(c.env, c.profile)
			if err != nil {
				t.Fatal(err)
			}
			if o.HostPort != c.address || o.Namespace != c.namespace {
				t.Errorf("address %q, namespace %q", o.HostPort, o.Namespace)
			}
			if secured := o.ConnectionOptions.TLS; (secured != nil) != c.secured || secured != nil && secured.ServerName != c.serverName {
				t.Errorf("TLS %+v", secured)
			}
			if o.ConnectionOptions.TLS != nil && o.ConnectionOptions.TLSDisabled {
				t.Error("TLS is wanted and not")
			}
			if _, none := o.ConnectionOptions.GrpcCompression.(*client.GrpcCompressionNone); !none {
				t.Errorf("requests are compressed: %T", o.ConnectionOptions.GrpcCompression)
			}
			var headers []string
			if o.HeadersProvider != nil {
				all, _ := o.HeadersProvider.GetHeaders(context.Background())
				for _, key := range []string{"other-header", "some-header"} {
					if value, ok := all[key]; ok {
						headers = append(headers, key+"="+value)
					}
				}
			}
			if got := strings.Join(headers, " "); got != c.headers {
				t.Errorf("headers %q, want %q", got, c.headers)
			}
		})
	}
}

func TestAFileThatMustNotBeRead(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads every file")
	}
	path := write(t, "ca.pem", "")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := Options(variables{"TEMPORAL_CONFIG_FILE": write(t, "temporal.toml", ""), "TEMPORAL_TLS_SERVER_CA_CERT_PATH": path}, "")
	if want := fmt.Sprintf("let user %d read it", os.Getuid()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v, want %q in it", err, want)
	}
}

func TestCertificates(t *testing.T) {
	authority := pkitest.NewAuthority(t)
	cert, key := authority.Issue(t, time.Now().Add(time.Hour))
	none := write(t, "temporal.toml", "")
	o, err := Options(variables{
		"TEMPORAL_CONFIG_FILE": none, "TEMPORAL_TLS_CLIENT_CERT_PATH": write(t, "cert.pem", cert), "TEMPORAL_TLS_CLIENT_KEY_DATA": key,
		"TEMPORAL_TLS_SERVER_CA_CERT_DATA": cert, "TEMPORAL_TLS_DISABLE_HOST_VERIFICATION": "true",
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if c := o.ConnectionOptions.TLS; c == nil || len(c.Certificates) != 1 || c.RootCAs == nil || !c.InsecureSkipVerify {
		t.Errorf("TLS %+v", c)
	}
	_, another := authority.Issue(t, time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		env   variables
		names string
	}{
		"no key":          {variables{"TEMPORAL_TLS_CLIENT_CERT_DATA": cert}, "TEMPORAL_TLS_CLIENT_KEY_PATH"},
		"wrong key":       {variables{"TEMPORAL_TLS_CLIENT_CERT_DATA": cert, "TEMPORAL_TLS_CLIENT_KEY_DATA": another}, "client certificate"},
		"both":            {variables{"TEMPORAL_TLS_CLIENT_CERT_DATA": cert, "TEMPORAL_TLS_CLIENT_CERT_PATH": none}, "client_cert_data"},
		"no such file":    {variables{"TEMPORAL_TLS_SERVER_CA_CERT_PATH": none + ".none"}, "TEMPORAL_TLS_SERVER_CA_CERT_PATH"},
		"no certificate":  {variables{"TEMPORAL_TLS_SERVER_CA_CERT_DATA": key}, "no certificate"},
		"no boolean":      {variables{"TEMPORAL_TLS": "perhaps"}, `TEMPORAL_TLS="perhaps"`},
		"broken file":     {variables{"TEMPORAL_CONFIG_FILE": write(t, "broken.toml", "[profile")}, "broken.toml"},
		"unknown profile": {variables{"TEMPORAL_PROFILE": "nope"}, "profile nope"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.env["TEMPORAL_CONFIG_FILE"] == "" {
				c.env["TEMPORAL_CONFIG_FILE"] = none
			}
			_, err := Options(c.env, "")
			if err == nil || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), key) || strings.Contains(err.Error(), another) {
				t.Errorf("error = %v, want one that names %q", err, c.names)
			}
		})
	}
}
