package delivery

import (
	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/rules/series"
)

// Metrics counts what becomes of messages to channels.
type Metrics struct {
	attempts *prometheus.CounterVec
	kinds    map[string]string
}

// NewMetrics registers the metrics of deliveries to some channels, which are of these kinds.
func NewMetrics(registry prometheus.Registerer, kinds map[string]string) *Metrics {
	m := &Metrics{kinds: kinds, attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "drydock", Name: "delivery_attempts_total", Help: "Attempts to deliver a message to a channel, by what became of them: delivered or failed.",
	}, []string{"channel", "kind", "outcome"})}
	for channel, kind := range kinds {
		m.attempts.WithLabelValues(channel, kind, "delivered")
		m.attempts.WithLabelValues(channel, kind, "failed")
	}
	registry.MustRegister(m.attempts)
	return m
}

func (m *Metrics) delivered(channel string, err error) {
	kind, known := m.kinds[channel]
	if !known {
		channel, kind = series.Other, series.Other // anyone who starts a workflow can name any
	}
	outcome := "delivered"
	if err != nil {
		outcome = "failed"
	}
	m.attempts.WithLabelValues(channel, kind, outcome).Inc()
}
