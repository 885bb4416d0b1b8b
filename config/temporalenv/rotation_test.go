package temporalenv

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"drydock.dev/drydock/deploy/devstack/pkitest"
)

// frontend is Temporal's API behind mTLS, which accepts one API key.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	mu     sync.Mutex
	config *tls.Config
	apiKey string
	conns  []net.Conn
	net.Listener
}

func newFrontend(t *testing.T) *frontend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &frontend{Listener: listener}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.config, nil
	}})))
	workflowservice.RegisterWorkflowServiceServer(server, f)
	go func() { _ = server.Serve(f) }()
	t.Cleanup(server.Stop)
	return f
}

// Accept keeps the connections, so that they can be cut.
func (f *frontend) Accept() (net.Conn, error) {
	conn, err := f.Listener.Accept()
	if err == nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.conns = append(f.conns, conn)
	}
	return conn, err
}

// follow has the server trust another authority and show a certificate of it, want another key, and cut all connections.
func (f *frontend) follow(t *testing.T, a *pkitest.Authority, apiKey string) {
	t.Helper()
	pair, err := tls.X509KeyPair(both(a.Issue(t, time.Now().Add(time.Hour))))
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.Cert)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.config = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients, NextProtos: []string{"h2"}}
	f.apiKey = apiKey
	for _, conn := range f.conns {
		_ = conn.Close()
	}
	f.conns = nil
}

func both(cert, key string) ([]byte, []byte) { return []byte(cert), []byte(key) }

func (f *frontend) GetSystemInfo(ctx context.Context, _ *workflowservice.GetSystemInfoRequest) (*workflowservice.GetSystemInfoResponse, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got, _ := metadata.FromIncomingContext(ctx)
	if keys := got.Get("authorization"); len(keys) != 1 || keys[0] != "Bearer "+f.apiKey {
		return nil, status.Error(codes.Unauthenticated, "another API key is wanted")
	}
	return &workflowservice.GetSystemInfoResponse{}, nil
}

// files are what a process was told to read.
type files struct {
	*testing.T
	folder string
}

func (f files) set(name, content string) string {
	f.Helper()
	path := filepath.Join(f.folder, name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		f.Fatal(err)
	}
	return path
}

func (f files) renew(a *pkitest.Authority, until time.Time, apiKey string) {
	f.Helper()
	cert, key := a.Issue(f.T, until)
	f.set("cert.pem", cert)
	f.set("key.pem", key)
	f.set("ca.pem", a.PEM)
	f.set("api-key", apiKey+"\n")
}

// TestFilesAreRenewedWhileAProcessRuns has a client go on with what is in its files, as they are renewed and what was in them is
// accepted no more.
func TestFilesAreRenewedWhileAProcessRuns(t *testing.T) {
	server, own := newFrontend(t), files{T: t, folder: t.TempDir()}
	first, second := pkitest.NewAuthority(t), pkitest.NewAuthority(t)
	server.follow(t, first, "key-1")
	own.renew(first, time.Now().Add(time.Hour), "key-1")
	env := variables{
		"TEMPORAL_CONFIG_FILE": own.set("none.toml", ""), "TEMPORAL_TLS_CLIENT_CERT_PATH": filepath.Join(own.folder, "cert.pem"),
		"TEMPORAL_TLS_CLIENT_KEY_PATH": filepath.Join(own.folder, "key.pem"), "TEMPORAL_TLS_SERVER_CA_CERT_PATH": filepath.Join(own.folder, "ca.pem"),
		VariableAPIKeyFile: filepath.Join(own.folder, "api-key"), "TEMPORAL_ADDRESS": server.Addr().String(),
	}
	options, err := Options(env, "")
	if err != nil {
		t.Fatal(err)
	}
	temporal, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	defer temporal.Close()
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		for {
			// A call may meet the end of the connection that is cut.
			_, err := temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}, grpc.WaitForReady(true))
			if err == nil || ctx.Err() != nil {
				return err
			}
		}
	}
	refuses := func(why string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for ctx.Err() == nil {
			if _, err := temporal.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{}, grpc.WaitForReady(true)); err == nil {
				t.Fatal(why)
			}
		}
	}
	// Half of it is written: what was read before counts.
	own.set("key.pem", "half of a k")
	server.follow(t, first, "key-1")
	if err := ask(); err != nil {
		t.Fatalf("while the files are replaced: %v", err)
	}
	own.renew(second, time.Now().Add(time.Hour), "key-2")
	server.follow(t, second, "key-2")
	if err := ask(); err != nil {
		t.Fatalf("after the files were renewed: %v", err)
	}
	// One that has expired is not accepted, which shows that the server asks for it; a new one is.
	own.renew(second, time.Now().Add(-time.Minute), "key-2")
	server.follow(t, second, "key-2")
	refuses("a certificate that has expired was accepted")
	own.renew(second, time.Now().Add(time.Hour), "key-2")
	if err := ask(); err != nil {
		t.Errorf("after an expired certificate was renewed: %v", err)
	}
	// A server that shows a certificate of somebody else's is refused.
	stranger := pkitest.NewAuthority(t)
	own.set("ca.pem", stranger.PEM)
	server.follow(t, second, "key-2")
	refuses("a server with a stranger's certificate was believed")
}

func TestAnAPIKeyFileThatIsNone(t *testing.T) {
	none := write(t, "temporal.toml", "")
	for name, c := range map[string]struct {
		env   variables
		names string
	}{
		"no such file": {variables{VariableAPIKeyFile: none + ".none"}, VariableAPIKeyFile},
		"empty":        {variables{VariableAPIKeyFile: none}, "is empty"},
		"and a key":    {variables{VariableAPIKeyFile: none, "TEMPORAL_API_KEY": "s3cr3t"}, "want one"},
	} {
		t.Run(name, func(t *testing.T) {
			c.env["TEMPORAL_CONFIG_FILE"] = none
			if _, err := Options(c.env, ""); err == nil || !strings.Contains(err.Error(), c.names) || strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("error = %v, want one that names %q", err, c.names)
			}
		})
	}
}

// The SDK sets the header once, before the interceptor that repeats a call: the repetition must replace it.
func TestACallThatIsRepeatedBringsTheRenewedKey(t *testing.T) {
	own := files{T: t, folder: t.TempDir()}
	path := own.set("api-key", "key-2")
	key, err := apiKeyFile(variables{VariableAPIKeyFile: path}, &envconfig.ClientConfigProfile{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer key-1", "client-name", "temporal-go")
	var got metadata.MD
	call := func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
		got, _ = metadata.FromOutgoingContext(ctx)
		return nil
	}
	if err := key.renew(ctx, "", nil, nil, nil, call); err != nil {
		t.Fatal(err)
	}
	if keys := got.Get("authorization"); len(keys) != 1 || keys[0] != "Bearer key-2" || len(got.Get("client-name")) != 1 {
		t.Errorf("headers %v", got)
	}
}
