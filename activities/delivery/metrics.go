package delivery

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what becomes of messages to channels.
type Metrics struct{ attempts *prometheus.CounterVec }

// NewMetrics registers the metrics of deliveries to some channels.
func NewMetrics(registry prometheus.Registerer, channels []string) *Metrics {
	m := &Metrics{attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: "drydock", Name: "delivery_attempts_total", Help: "Attempts to deliver a message to a channel, by what became of them.",
	}, []string{"channel", "outcome"})}
	for _, channel := range channels {
		m.attempts.WithLabelValues(channel, outcomeOf(nil))
		m.attempts.WithLabelValues(channel, "failed")
	}
	registry.MustRegister(m.attempts)
	return m
}

func (m *Metrics) delivered(channel string, err error) {
	m.attempts.WithLabelValues(channel, outcomeOf(err)).Inc()
}

func outcomeOf(err error) string {
	if err != nil {
		return "failed"
	}
	return "delivered"
}
