package worker

import (
	"fmt"
	"net/http"
	"os"

	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/client"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/page"
	"drydock.dev/drydock/worker/scrape"
)

// servePage serves the page with what goes on in the cluster, where the configuration has one; stop ends that.
func servePage(o Options, temporal temporalclient.Client, namespace string, nodes *k8s.Nodes) (stop func(), err error) {
	c := o.Config.Page
	if c.Listen == "" {
		return func() {}, nil
	}
	guard, err := pageGuard(o)
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // it only says who asks
	pages := page.New(page.Options{
		Client: client.New(temporal, client.Options{
			Cluster: o.Config.Cluster, TaskQueue: o.Config.TaskQueue, Namespace: namespace, By: "drydock-worker@" + host,
		}),
		Nodes: nodes, Logger: o.Logger, TemporalUI: c.TemporalUI, Namespace: namespace, Names: c.Names, Guard: guard,
	})
	server, err := listen(c.Listen, pages.Handler(), o.Logger)
	if err != nil {
		return nil, fmt.Errorf("listening for the page: %w (change it with page.listen)", err)
	}
	o.Logger.Info("serving the page", "address", server.Addr)
	return func() {
		pages.Close()
		served{server}.stop()
	}, nil
}

// pageGuard lets through who may read the page; nil is everybody.
func pageGuard(o Options) (page.Guard, error) {
	switch c := o.Config.Page; c.Authentication {
	case config.AuthenticationToken:
		guard, err := newGuard(o)
		return bearers{guard}, err
	case config.AuthenticationProxy:
		return proxied{c.Header}, nil
	default:
		return nil, nil
	}
}

// bearers are let through with the token of an account that may get the path /drydock.
type bearers struct{ *scrape.Guard }

func (b bearers) Before(next http.Handler) http.Handler {
	return b.Guard.Before("/drydock", "kubectl create clusterrole drydock-page-reader --verb=get --non-resource-url=/drydock makes a role to bind to it", next)
}

// proxied are let through whom a proxy names in a header.
type proxied struct{ header string }

func (p proxied) Before(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(p.header) == "" {
			http.Error(w, "the proxy before this page does not say who you are, in the header "+p.header, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
