package activities

import (
	"github.com/prometheus/client_golang/prometheus"

	"drydock/k8s"
)

// DrainMetrics counts what drains do.
type DrainMetrics struct {
	evictions *prometheus.CounterVec
}

// NewDrainMetrics registers the metrics of drains.
func NewDrainMetrics(registry prometheus.Registerer) *DrainMetrics {
	m := &DrainMetrics{evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "drydock", Name: "evictions_total", Help: "Eviction requests by what the API server answered.",
	}, []string{"answer"})}
	for _, answer := range []k8s.Answer{
		k8s.Accepted, k8s.PodGone, k8s.PodChanged, k8s.BudgetRefused, k8s.SeveralBudgets, k8s.Throttled,
		k8s.WebhookRefused, k8s.NamespaceGoing, k8s.MissingPermission, k8s.Failed,
	} {
		m.evictions.WithLabelValues(string(answer))
	}
	registry.MustRegister(m.evictions)
	return m
}

func (m *DrainMetrics) answered(answer k8s.Answer) { m.evictions.WithLabelValues(string(answer)).Inc() }
