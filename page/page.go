// Package page serves what goes on in a cluster as web pages: its nodes, and what is maintained, waited for and planned; one node with its
// maintenances; one plan. It reads, and changes nothing. Pages are made on the server, need no script, and come up to date by themselves
// where scripts run.
package page

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/inbound"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/web"
)

// Options are what pages are made of.
type Options struct {
	Client *client.Client
	Nodes  *k8s.Nodes
	Logger *slog.Logger
	// TemporalUI is the URL of Temporal's web interface; empty is none. Namespace is Drydock's.
	TemporalUI, Namespace string
	// Names are those by which browsers reach the pages, beside loopback ones.
	Names []string
	// Guard lets through who may read; nil is everybody.
	Guard Guard
}

// Guard stands before a handler.
type Guard interface {
	Before(next http.Handler) http.Handler
}

const (
	// fresh is how old the nodes on the page may be, statusFresh what was read from Temporal, and profilesFresh that where profiles run: a report
	// of these is a workflow. What takes long to read is read more rarely: it counts for restFactor times as long as it took.
	fresh         = 2 * time.Second
	statusFresh   = 15 * time.Second
	profilesFresh = time.Minute
	restFactor    = 5
	// statusWithin is how long nodes are not shown without what Temporal says.
	statusWithin = 3 * time.Second
	// readsWithin bounds the wait for what a page shows, and readsAtOnce the pages of nodes and plans that are read at a time.
	readsWithin = 20 * time.Second
	readsAtOnce = 8
)

// Page serves the pages.
type Page struct {
	Options
	from source
	// reads has a place for each page of a node or a plan that is being read.
	reads chan struct{}
	live  viewers

	fleet  shared[rendered]
	status shared[api.ClusterStatus]
}

// New makes pages. They read nothing before the first request.
func New(o Options) *Page {
	return &Page{Options: o, from: &reader{o: o}, reads: make(chan struct{}, readsAtOnce), live: newViewers()}
}

// Close ends the connections of those who look at pages, and the watch of the nodes.
func (p *Page) Close() {
	p.live.close()
	p.from.close()
}

// policy lets a browser load what the pages are made of, and nothing else from anywhere.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler answers requests for the pages. Those by another name than Options.Names or a loopback one, and those that a page of another
// origin sends, are refused.
func (p *Page) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", p.serveFleet)
	mux.HandleFunc("GET /nodes/{node}", p.serveNode)
	mux.HandleFunc("GET /plans/{plan}", p.servePlan)
	mux.HandleFunc("GET /live", p.serveLive)
	mux.HandleFunc("GET /page.css", asset(web.Style(), "text/css; charset=utf-8"))
	mux.HandleFunc("GET /page.js", asset(script(), "text/javascript; charset=utf-8"))
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		p.show(w, r, http.StatusNotFound, screen{Title: "No such page", Problem: "There is no such page."})
	})
	var handler http.Handler = mux
	if p.Guard != nil {
		handler = p.Guard.Before(handler)
	}
	handler = inbound.GetOnly(handler)
	return inbound.Pages(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		handler.ServeHTTP(w, r)
	}), p.Names...)
}

// reading has a page of a node or a plan be read when there is a place, and reports whether there was one in time.
func (p *Page) reading(w http.ResponseWriter, r *http.Request, read func(ctx context.Context)) {
	ctx, cancel := context.WithTimeout(r.Context(), readsWithin)
	defer cancel()
	select {
	case p.reads <- struct{}{}:
		defer func() { <-p.reads }()
		read(ctx)
	case <-ctx.Done():
		p.show(w, r, http.StatusServiceUnavailable, screen{Title: "Busy", Problem: "Too many pages are read at the moment: try again."})
	}
}
