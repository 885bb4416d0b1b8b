// Package uiguard is the command that stands before Temporal's UI where that answers every page of a browser.
package uiguard

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/inbound"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

const (
	// readHeaderWithin, requestWithin and idleFor bound what a client may take; a page of the UI waits for Temporal.
	readHeaderWithin = 10 * time.Second
	requestWithin    = 2 * time.Minute
	idleFor          = 2 * time.Minute
)

type options struct {
	app        *invocation.App
	listen, ui string
	names      []string
	readOnly   bool
}

// New makes the command.
func New(a *invocation.App) *cobra.Command {
	o := &options{app: a}
	cmd := &cobra.Command{
		Use:   "ui-guard",
		Short: "Keep web pages of other sites away from Temporal's UI",
		Long: `Serve Temporal's UI to the people of this machine, and to no web page but its own. The UI answers requests for any name, so that a
page whose name is made to lead to this machine (DNS rebinding) can start, signal and terminate workflows. The guard answers only
localhost, loopback addresses and the names that you give, no page of another origin, and no text and forms that any page may send.

Let the UI listen where browsers do not go: on another machine's loopback behind "kubectl port-forward", or on a port that they refuse,
such as 6668 (https://fetch.spec.whatwg.org/#port-blocking), as docker-compose.yaml does.

Another UI that answers every name, such as Prometheus', can be behind it as well. With --read-only everything but GET and HEAD is answered
with 405: the clients of Prometheus, which send queries as forms, then send them as GET.`,
		Example: "  drydock ui-guard --ui http://127.0.0.1:6668",
		Args:    invocation.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8233", "address to listen on")
	flags.StringVar(&o.ui, "ui", "http://127.0.0.1:6668", "address of Temporal's UI")
	flags.StringArrayVar(&o.names, "name", nil, "name or address that browsers may call the UI by, besides those of this machine; repeatable")
	flags.BoolVar(&o.readOnly, "read-only", false, "answer GET and HEAD alone")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	ui, err := url.Parse(o.ui)
	if err != nil || ui.Scheme != "http" && ui.Scheme != "https" || ui.Host == "" || o.ui != ui.Scheme+"://"+ui.Host {
		return exit.UsageError("--ui %q: want a scheme and a host with its port, such as http://127.0.0.1:6668", o.ui)
	}
	handler := inbound.Pages(proxy(ui), o.names...)
	if o.readOnly {
		handler = inbound.GetOnly(handler)
	}
	server := &http.Server{
		Addr: o.listen, Handler: handler,
		ReadHeaderTimeout: readHeaderWithin, ReadTimeout: requestWithin, WriteTimeout: requestWithin, IdleTimeout: idleFor,
	}
	return o.app.Serve(ctx, server, "The UI")
}

// proxy hands requests on to the UI. What both say of an answer, the guard says; a policy of the UI's own counts besides.
func proxy(ui *url.URL) http.Handler {
	return &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(ui) },
		ModifyResponse: func(r *http.Response) error {
			for _, name := range []string{"Cross-Origin-Resource-Policy", "Referrer-Policy", "X-Content-Type-Options", "X-Frame-Options"} {
				r.Header.Del(name)
			}
			cookies := r.Cookies()
			r.Header.Del("Set-Cookie")
			for _, cookie := range cookies {
				if cookie.SameSite != http.SameSiteStrictMode {
					cookie.SameSite = http.SameSiteLaxMode
				}
				r.Header.Add("Set-Cookie", cookie.String())
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, fmt.Sprintf("the UI at %s does not answer: %v", ui, err), http.StatusBadGateway)
		},
	}
}
