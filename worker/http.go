package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"drydock.dev/drydock/config"
	"drydock.dev/drydock/inbound"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/worker/scrape"
)

type kubeClient = kube.Interface

// health answers the probes: whether the process lives, and whether it polls for work.
type health struct{ ready atomic.Bool }

// metricsHandler serves the metrics, to those whom the API server lets read them where the configuration says so. It has a client of its
// own, so that made-up tokens delay no drain.
func metricsHandler(o Options, registry *prometheus.Registry) (http.Handler, error) {
	metrics := promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry})
	if o.Config.Metrics.Authentication != config.AuthenticationToken {
		return metrics, nil
	}
	guard, err := newGuard(o)
	if err != nil {
		return nil, err
	}
	return guard.Before("/metrics", "bind the ClusterRole drydock-worker-metrics-reader to it", metrics), nil
}

func newGuard(o Options) (*scrape.Guard, error) {
	client, err := k8s.NewClient(k8s.Options{
		Kubeconfig: o.Config.Kubernetes.Kubeconfig, Context: o.Config.Kubernetes.Context,
		QPS: reviewsPerSecond, Burst: 2 * reviewsPerSecond, UserAgent: "drydock-worker/" + o.Version,
	})
	if err != nil {
		return nil, err
	}
	return scrape.New(client, o.Logger, time.Now), nil
}

// reviewsPerSecond bounds the questions to the API server who may read metrics or the page; each new token is two.
const reviewsPerSecond = 10

func (h *health) handler(metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !h.ready.Load() {
			http.Error(w, "not connected to Temporal, or stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	return mux
}

// levelHandler shows the log level, and changes it.
func levelHandler(level *slog.LevelVar) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /loglevel", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, level.Level()) })
	mux.HandleFunc("PUT /loglevel", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
		var to slog.Level
		if err == nil {
			to, err = config.ParseLevel(strings.TrimSpace(string(body)))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		level.Set(to)
		fmt.Fprintln(w, to)
	})
	return mux
}

// Limits for clients of the worker's HTTP servers: a silent client must not hold a connection for ever.
const (
	readHeaderWithin = 5 * time.Second
	readWithin       = 10 * time.Second
	writeWithin      = time.Minute
	idleFor          = 2 * time.Minute
)

// serve serves the probes and the metrics, and on loopback the log level. It listens before it returns, so that a taken
// address is an error at start; the log level is no reason not to work.
func serve(o Options, state *health, registry *prometheus.Registry) (served, error) {
	var all served
	metrics, err := metricsHandler(o, registry)
	if err != nil {
		return nil, err
	}
	probes, err := listen(o.Config.Listen, inbound.At(o.Config.Listen, state.handler(metrics)), o.Logger)
	if err != nil {
		return nil, fmt.Errorf("listening for /metrics and probes: %w (change it with --listen)", err)
	}
	if probes != nil {
		all = append(all, probes)
		o.Logger.Info("serving /metrics, /healthz and /readyz", "address", probes.Addr)
	}
	admin, err := listen(o.Config.AdminListen, inbound.Loopback(levelHandler(o.Level)), o.Logger)
	if err != nil {
		o.Logger.Warn("the log level cannot be changed while the worker runs (change the address with --admin-listen)", "error", err)
	}
	if admin != nil {
		all = append(all, admin)
		o.Logger.Info("serving /loglevel", "address", admin.Addr)
	}
	return all, nil
}

// listen serves at an address; nil is none.
func listen(address string, handler http.Handler, logger *slog.Logger) (*http.Server, error) {
	if address == "" {
		return nil, nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{
		Addr: listener.Addr().String(), Handler: handler,
		ReadHeaderTimeout: readHeaderWithin, ReadTimeout: readWithin, WriteTimeout: writeWithin, IdleTimeout: idleFor,
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("HTTP server", "error", err)
		}
	}()
	return server, nil
}

// served are the worker's own HTTP servers.
type served []*http.Server

func (s served) stop() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, server := range s {
		if err := server.Shutdown(ctx); err != nil {
			server.Close()
		}
	}
}
