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
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"k8s.io/client-go/kubernetes"
)

type kubeClient = kubernetes.Interface

// health is what the probes ask for: the process lives, and it polls for work.
type health struct{ ready atomic.Bool }

func (h *health) handler(registry *prometheus.Registry, level *slog.LevelVar) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !h.ready.Load() {
			http.Error(w, "not connected to Temporal, or stopping", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.HandleFunc("GET /loglevel", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, level.Level()) })
	mux.HandleFunc("PUT /loglevel", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64))
		if err == nil {
			err = level.UnmarshalText([]byte(strings.TrimSpace(string(body))))
		}
		if err != nil {
			http.Error(w, "want debug, info, warn or error: "+err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintln(w, level.Level())
	})
	return mux
}

// serve listens before it returns, so that a taken address is an error at start.
func serve(address string, handler http.Handler, logger *slog.Logger) (served, error) {
	if address == "" {
		return served{}, nil
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	if err != nil {
		return served{}, fmt.Errorf("listening for /metrics and probes: %w (change it with --listen)", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("HTTP server", "error", err)
		}
	}()
	logger.Info("serving /metrics, /healthz, /readyz and /loglevel", "address", listener.Addr().String())
	return served{server}, nil
}

// sdkMetrics publishes the Temporal SDK's own metrics with Drydock's.
func sdkMetrics(registry prometheus.Registerer) (client.MetricsHandler, error) {
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("preparing metrics: %w", err)
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	return opentelemetry.NewMetricsHandler(opentelemetry.MetricsHandlerOptions{Meter: provider.Meter("temporal-sdk")}), nil
}
