package metrics

import (
	"maps"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/workflows/meter"
)

// durations are the bounds of classic histograms: phases last from less than a second to weeks. Native histograms have
// a finer resolution.
var durations = []float64{1, 5, 15, 30, 60, 2 * 60, 5 * 60, 15 * 60, 30 * 60, 3600, 2 * 3600, 6 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}

const (
	// growth bounds the error of a quantile of a native histogram, and mostBuckets what one series takes.
	growth      = 1.1
	mostBuckets = 160
	// resetAfter is how often at most a native histogram begins anew where its buckets do not suffice.
	resetAfter = time.Hour
)

// vectors are what workflows measure, by name.
type vectors struct {
	counters   map[string]*prometheus.CounterVec
	histograms map[string]*prometheus.HistogramVec
	// known are the values that a metric's label may have.
	known map[string][]string
	label map[string]string
}

// handler gives to Prometheus what workflows measure, and to the SDK's own handler what the SDK does. The SDK has it silent
// while a history is replayed.
type handler struct {
	client.MetricsHandler
	own  *vectors
	tags map[string]string
}

// Handler registers what workflows measure. All else goes to the SDK's own handler. Channels are those of the worker's
// configuration.
func Handler(registry prometheus.Registerer, sdk client.MetricsHandler, channels []string) client.MetricsHandler {
	v := &vectors{
		counters: map[string]*prometheus.CounterVec{}, histograms: map[string]*prometheus.HistogramVec{},
		known: map[string][]string{}, label: map[string]string{},
	}
	for _, m := range meter.All {
		values := m.Values
		if m.Label == "channel" {
			values = append(values, channels...)
		}
		v.add(registry, m, values)
	}
	return handler{MetricsHandler: sdk, own: v}
}

// add registers a metric, with a series for every value that its label is known to have.
func (v *vectors) add(registry prometheus.Registerer, m meter.Metric, values []string) {
	var labels []string
	if m.Label != "" {
		labels, v.known[m.Name], v.label[m.Name] = []string{m.Label}, values, m.Label
	} else {
		values = []string{""}
	}
	if m.Durations {
		vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: m.Name, Help: m.Help, Buckets: durations, NativeHistogramBucketFactor: growth,
			NativeHistogramMaxBucketNumber: mostBuckets, NativeHistogramMinResetDuration: resetAfter,
		}, labels)
		for _, value := range values {
			vec.WithLabelValues([]string{value}[:len(labels)]...)
		}
		v.histograms[m.Name] = vec
		registry.MustRegister(vec)
		return
	}
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: m.Name, Help: m.Help}, labels)
	for _, value := range values {
		vec.WithLabelValues([]string{value}[:len(labels)]...)
	}
	v.counters[m.Name] = vec
	registry.MustRegister(vec)
}

// values are those of the labels that a metric has; all other tags, of which the SDK gives many, are the SDK's.
func (v *vectors) values(name string, tags map[string]string) []string {
	label := v.label[name]
	if label == "" {
		return nil
	}
	return []string{among(v.known[name], tags[label])}
}

// WithTags is the handler for metrics with further tags.
func (h handler) WithTags(tags map[string]string) client.MetricsHandler {
	all := maps.Clone(h.tags)
	if all == nil {
		all = make(map[string]string, len(tags))
	}
	maps.Copy(all, tags)
	return handler{MetricsHandler: h.MetricsHandler.WithTags(tags), own: h.own, tags: all}
}

// Counter is one of Drydock's, or of the SDK's.
func (h handler) Counter(name string) client.MetricsCounter {
	vec, own := h.own.counters[name]
	if !own {
		return h.MetricsHandler.Counter(name)
	}
	return counter{vec.WithLabelValues(h.own.values(name, h.tags)...)}
}

// Timer is one of Drydock's, or of the SDK's.
func (h handler) Timer(name string) client.MetricsTimer {
	vec, own := h.own.histograms[name]
	if !own {
		return h.MetricsHandler.Timer(name)
	}
	return timer{vec.WithLabelValues(h.own.values(name, h.tags)...)}
}

// Unwrap is the SDK's own handler, which the SDK asks for.
func (h handler) Unwrap() client.MetricsHandler { return h.MetricsHandler }

type counter struct{ prometheus.Counter }

func (c counter) Inc(n int64) { c.Add(float64(n)) }

type timer struct{ prometheus.Observer }

func (t timer) Record(d time.Duration) { t.Observe(d.Seconds()) }
