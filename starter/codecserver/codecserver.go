// Package codecserver is the command that decrypts payloads for Temporal's UI and command line.
package codecserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/config/payloadcodec"
	"drydock.dev/drydock/config/renewed"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

const requestWithin = 30 * time.Second

type options struct {
	app                        *invocation.App
	keys, listen               string
	origins                    []string
	token, certificate, tlsKey string

	// pair is the certificate with its key, nil if it is served in plain text.
	pair *renewed.Value[*tls.Certificate]
}

// New makes the command.
func New(a *invocation.App) *cobra.Command {
	o := &options{app: a}
	cmd := &cobra.Command{
		Use:   "codec-server",
		Short: "Decrypt what Temporal's UI shows, where payloads are encrypted",
		Long: `Serve what Temporal's UI and command line ask to show encrypted payloads: a codec server. It has the keys and gives anyone it
answers the plain text, so that it listens on this machine only unless told otherwise. All files are read anew while it runs.

Name its address in the UI ("Configure remote codec endpoint"), or with "temporal --codec-endpoint".`,
		Example: `  drydock codec-server --keys-file keys --origin http://localhost:8233
  drydock codec-server --listen :8443 --origin https://ui.example --bearer-token-file token --tls-cert cert.pem --tls-key key.pem`,
		Args: invocation.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.keys, "keys-file", "", "file of the keys (default $"+payloadcodec.VariableKeysFile+")")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8089", "address to listen on")
	flags.StringArrayVar(&o.origins, "origin", nil, "origin of the UI whose pages may ask, such as http://localhost:8233; repeatable")
	flags.StringVar(&o.token, "bearer-token-file", "", "file with the token that requests must bring; wanted where others than this machine can ask")
	flags.StringVar(&o.certificate, "tls-cert", "", "file of the certificate to serve with")
	flags.StringVar(&o.tlsKey, "tls-key", "", "file of its key")
	return cmd
}

// handler is what is served, once all flags are as they should be.
func (o *options) handler() (http.Handler, error) {
	if o.keys = cmp.Or(o.keys, o.app.Env.Get(payloadcodec.VariableKeysFile)); o.keys == "" {
		return nil, exit.UsageError("--keys-file is wanted, or %s", payloadcodec.VariableKeysFile)
	}
	if (o.certificate == "") != (o.tlsKey == "") {
		return nil, exit.UsageError("of --tls-cert and --tls-key one is missing")
	}
	for _, origin := range o.origins {
		if u, err := url.Parse(origin); err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host {
			return nil, exit.UsageError("--origin %q: want a scheme and a host with its port, such as http://localhost:8233", origin)
		}
	}
	codec, err := payloadcodec.Open(o.keys, o.report)
	if err != nil {
		return nil, exit.UsageError("%w", err)
	}
	if o.certificate != "" {
		if o.pair, err = renewed.Open(func() (*tls.Certificate, error) { return renewed.KeyPair(o.certificate, o.tlsKey) }, o.report); err != nil {
			return nil, exit.UsageError("--tls-cert and --tls-key: %w", err)
		}
	}
	serve := payloadcodec.HandlerOptions{Origins: o.origins}
	if o.token != "" {
		token, err := renewed.Open(func() (string, error) { return renewed.Token(o.token) }, o.report)
		if err != nil {
			return nil, exit.UsageError("--bearer-token-file: %w", err)
		}
		serve.Token = token
	}
	address, err := netip.ParseAddrPort(o.listen)
	if local := err == nil && address.Addr().IsLoopback(); !local && serve.Token == nil {
		return nil, exit.UsageError("--listen %s: others than this machine can ask there: name a --bearer-token-file", o.listen)
	}
	return payloadcodec.Handler(codec, serve), nil
}

// report prints that a file cannot be read any more.
func (o *options) report(err error) {
	fmt.Fprintf(o.app.Stderr, "What was read before is used: %v\n", err)
}

func (o *options) run(ctx context.Context) error {
	handler, err := o.handler()
	if err != nil {
		return err
	}
	server := &http.Server{
		Addr: o.listen, Handler: handler,
		ReadHeaderTimeout: requestWithin, ReadTimeout: requestWithin, WriteTimeout: requestWithin, IdleTimeout: 2 * requestWithin,
	}
	if o.pair != nil {
		server.TLSConfig = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return o.pair.Get(), nil }}
	}
	return o.app.Serve(ctx, server, "The codec endpoint")
}
