package temporalenv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// variableAPIKeyFile is Drydock's own: envconfig has an API key as text only, which cannot be renewed while a process runs.
const variableAPIKeyFile = "DRYDOCK_TEMPORAL_API_KEY_FILE"

// apiKeyFile reads an API key anew for each call. The first reading says what is wrong with the file.
func apiKeyFile(env Environment, profile *envconfig.ClientConfigProfile) (client.Credentials, error) {
	path, _ := env.LookupEnv(variableAPIKeyFile)
	if path == "" {
		return nil, nil
	}
	if profile.APIKey != "" {
		return nil, fmt.Errorf("%s: an API key is given besides (TEMPORAL_API_KEY, or api_key of the profile); one is wanted", variableAPIKeyFile)
	}
	var mu sync.Mutex
	last := ""
	read := func(context.Context) (string, error) {
		content, err := os.ReadFile(path)
		key := strings.TrimSpace(string(content))
		if err == nil && key == "" {
			err = fmt.Errorf("%s is empty", path)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			last = key
		case last == "":
			return "", fmt.Errorf("%s: %w", variableAPIKeyFile, err)
		}
		return last, nil // a file that is being replaced
	}
	var err error
	if profile.APIKey, err = read(context.Background()); err != nil {
		return nil, err
	}
	return client.NewAPIKeyDynamicCredentials(read), nil
}

// renewed is TLS to Temporal with files that are read anew for each connection. A certificate that is renewed while a process
// runs is used by its next connection, and the server decides when that is; those that are open stay.
type renewed struct {
	profile envconfig.ClientConfigTLS

	mu sync.Mutex
	// good is what was last read without an error: files are not replaced all at one instant.
	good *tls.Config
}

var _ credentials.TransportCredentials = &renewed{}

// renew has files read anew for each connection, where there are any.
func renew(options *client.Options, profile *envconfig.ClientConfigTLS) {
	if profile == nil || profile.Disabled || profile.ClientCertPath == "" && profile.ClientKeyPath == "" && profile.ServerCACertPath == "" {
		return
	}
	c := &renewed{profile: *profile, good: options.ConnectionOptions.TLS}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(c))
}

// current is the configuration for a new connection.
func (r *renewed) current() *tls.Config {
	r.mu.Lock()
	defer r.mu.Unlock()
	profile := envconfig.ClientConfigProfile{TLS: new(r.profile)}
	if readCertificates(profile.TLS) == nil {
		if options, err := profile.ToClientOptions(envconfig.ToClientOptionsRequest{}); err == nil {
			r.good = options.ConnectionOptions.TLS
		}
	}
	return r.good
}

// ClientHandshake implements credentials.TransportCredentials.
func (r *renewed) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(r.current()).ClientHandshake(ctx, authority, conn)
}

// ServerHandshake implements credentials.TransportCredentials.
func (r *renewed) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (r *renewed) Info() credentials.ProtocolInfo { return credentials.NewTLS(r.current()).Info() }

// Clone implements credentials.TransportCredentials.
func (r *renewed) Clone() credentials.TransportCredentials {
	return &renewed{profile: r.profile, good: r.current()}
}

// OverrideServerName implements credentials.TransportCredentials.
func (r *renewed) OverrideServerName(name string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.profile.ServerName = name
	return nil
}
