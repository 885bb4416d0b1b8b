package temporalenv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"drydock.dev/drydock/config/renewed"
)

// VariableAPIKeyFile is Drydock's own: envconfig has an API key as text only, which cannot be renewed while a process runs.
const VariableAPIKeyFile = "DRYDOCK_TEMPORAL_API_KEY_FILE"

// keyFile is an API key that is read anew for each call.
type keyFile struct{ key *renewed.Value[string] }

// apiKeyFile is the file of the environment, nil without one. The first reading says what is wrong with it.
func apiKeyFile(env Environment, profile *envconfig.ClientConfigProfile, report func(error)) (*keyFile, error) {
	path, _ := env.LookupEnv(VariableAPIKeyFile)
	if path == "" {
		return nil, nil
	}
	if profile.APIKey != "" {
		return nil, fmt.Errorf("%s: an API key is given as well (TEMPORAL_API_KEY, or api_key of the profile); want one", VariableAPIKeyFile)
	}
	key, err := renewed.Open(func() (string, error) {
		text, err := renewed.Token(path)
		if err != nil {
			return "", fmt.Errorf("%s: %w: %s", VariableAPIKeyFile, err, mend(err))
		}
		return text, nil
	}, report)
	if err != nil {
		return nil, err
	}
	profile.APIKey = key.Last()
	return &keyFile{key}, nil
}

// apply has each call bring the key.
func (k *keyFile) apply(options *client.Options) {
	options.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return k.key.Get(), nil })
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithChainUnaryInterceptor(k.renew, k.explain))
}

// renew has a call that another interceptor makes again bring the key of now: the SDK's credentials are outside of those interceptors.
func (k *keyFile) renew(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	headers, _ := metadata.FromOutgoingContext(ctx)
	headers = headers.Copy()
	headers.Set("authorization", "Bearer "+k.key.Get())
	return call(metadata.NewOutgoingContext(ctx, headers), method, in, out, conn, opts...)
}

// explain says of a call that was refused that the key is an old one, where the file cannot be read any more.
func (k *keyFile) explain(ctx context.Context, method string, in, out any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := call(ctx, method, in, out, conn, opts...)
	problem := k.key.Problem()
	if code := status.Code(err); problem == nil || code != codes.Unauthenticated && code != codes.PermissionDenied {
		return err
	}
	said := status.Convert(err).Proto()
	said.Message += fmt.Sprintf(" (the API key that was read before is used: %v)", problem)
	return status.FromProto(said).Err()
}

// transport is TLS to Temporal with files that are read anew for each connection. A certificate that is renewed while a process
// runs is used by its next connection, and the server decides when that is; those that are open stay.
type transport struct {
	files *renewed.Value[*tls.Config]
	// serverName takes the place of the configured one.
	serverName string
}

var _ credentials.TransportCredentials = &transport{}

// renew has files read anew for each connection, where it is by TLS.
func renew(options *client.Options, profile *envconfig.ClientConfigTLS, report func(error)) error {
	fixed := options.ConnectionOptions.TLS
	if fixed == nil {
		return nil
	}
	files, err := renewed.Open(func() (*tls.Config, error) {
		if profile == nil {
			return fixed, nil
		}
		now := envconfig.ClientConfigProfile{TLS: new(*profile)}
		if err := readCertificates(now.TLS); err != nil {
			return nil, err
		}
		read, err := now.ToClientOptions(envconfig.ToClientOptionsRequest{})
		return read.ConnectionOptions.TLS, err
	}, report)
	if err != nil {
		return err
	}
	options.ConnectionOptions.DialOptions = append(options.ConnectionOptions.DialOptions, grpc.WithTransportCredentials(&transport{files: files}))
	return nil
}

// with is TLS as files say.
func (t *transport) with(files *tls.Config) credentials.TransportCredentials {
	if t.serverName != "" {
		files = files.Clone()
		files.ServerName = t.serverName
	}
	return credentials.NewTLS(files)
}

// ClientHandshake implements credentials.TransportCredentials.
func (t *transport) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, info, err := t.with(t.files.Get()).ClientHandshake(ctx, authority, conn)
	if problem := t.files.Problem(); err != nil && problem != nil {
		err = fmt.Errorf("%w (what was read before is used: %w)", err, problem)
	}
	if err != nil {
		return secured, info, err
	}
	return &refusable{secured}, info, nil
}

// refusable is a connection that the server may have refused already: it checks a client's certificate after the client has finished the
// handshake. Its alert says more than the write error that follows.
type refusable struct{ net.Conn }

// refusedWithin bounds the wait for the server's alert, which has arrived by then.
const refusedWithin = time.Second

// Write implements net.Conn.
func (c *refusable) Write(data []byte) (int, error) {
	n, err := c.Conn.Write(data)
	if err == nil || c.SetReadDeadline(time.Now().Add(refusedWithin)) != nil {
		return n, err
	}
	var said *net.OpError
	if _, why := c.Read(make([]byte, 1)); errors.As(why, &said) && said.Op == "remote error" {
		err = said
	}
	return n, err
}

// ServerHandshake implements credentials.TransportCredentials.
func (t *transport) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are a client's")
}

// Info implements credentials.TransportCredentials.
func (t *transport) Info() credentials.ProtocolInfo { return t.with(t.files.Last()).Info() }

// Clone implements credentials.TransportCredentials.
func (t *transport) Clone() credentials.TransportCredentials { return new(*t) }

// OverrideServerName implements credentials.TransportCredentials.
func (t *transport) OverrideServerName(name string) error {
	t.serverName = name
	return nil
}
