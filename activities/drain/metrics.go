package drain

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// Metrics counts what drains do, and shows what blocks those under way.
type Metrics struct {
	evictions *prometheus.CounterVec
	running   prometheus.Gauge
	blockers  *prometheus.GaugeVec

	mu sync.Mutex
	// nodes are the drains under way, with the blocked pods of each by reason, and since when there were some.
	nodes map[string]map[string]int
	since map[string]time.Time
}

// reasons are those of blockers.
var reasons = []string{
	string(k8s.BudgetRefused), string(k8s.SeveralBudgets), string(k8s.Throttled), string(k8s.WebhookRefused), string(k8s.Requested),
	string(k8s.NamespaceGoing), string(k8s.MissingPermission), string(k8s.Failed), k8s.NoController, k8s.LocalStorage, k8s.OrphanedPod,
	k8s.StaticPod, reasonDoNotDisrupt, reasonTerminating, reasonNoAnswer, reasonComesBack, reasonVolumeAttached, reasonOnlyWorker,
}

// Reasons of blockers that are the drain's own.
const (
	reasonDoNotDisrupt   = api.ReasonDoNotDisrupt
	reasonTerminating    = "Terminating"
	reasonNoAnswer       = "NoAnswer"
	reasonComesBack      = "ComesBack"
	reasonVolumeAttached = api.ReasonVolumeAttached
	reasonOnlyWorker     = "OnlyWorker"
)

// NewMetrics registers the metrics of drains.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	m := &Metrics{
		evictions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "drydock", Name: "evictions_total", Help: "Requests to end a pod by what the API server answered.",
		}, []string{"answer"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "drydock", Name: "drains_running", Help: "Drains this worker has under way.",
		}),
		blockers: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "drydock", Name: "drain_blocked_pods", Help: "Pods that keep this worker's drains from ending, by the reason of the blocker.",
		}, []string{"reason"}),
		nodes: map[string]map[string]int{}, since: map[string]time.Time{},
	}
	for _, answer := range []k8s.Answer{
		k8s.Accepted, k8s.PodGone, k8s.PodChanged, k8s.BudgetRefused, k8s.SeveralBudgets, k8s.Throttled,
		k8s.WebhookRefused, k8s.Requested, k8s.NamespaceGoing, k8s.MissingPermission, k8s.Failed,
	} {
		m.evictions.WithLabelValues(string(answer))
	}
	for _, reason := range reasons {
		m.blockers.WithLabelValues(reason)
	}
	oldest := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Namespace: "drydock", Name: "drain_blocked_oldest_seconds",
		Help: "For how long something has kept that drain of this worker from ending which it has kept longest: take the max; 0 where nothing does.",
	}, func() float64 { return m.oldest(time.Now()).Seconds() })
	registry.MustRegister(m.evictions, m.running, m.blockers, oldest)
	return m
}

func (m *Metrics) answered(answer k8s.Answer) { m.evictions.WithLabelValues(string(answer)).Inc() }

// drains counts a drain for as long as it runs.
func (m *Metrics) drains(node string) (ended func()) {
	m.running.Inc()
	return func() {
		m.running.Dec()
		m.blocked(node, nil)
	}
}

// blocked shows what blocks one node now, among what blocks the others.
func (m *Metrics) blocked(node string, reasons map[string]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.nodes[node]
	for reason := range before {
		m.blockers.WithLabelValues(reason).Sub(float64(before[reason]))
	}
	for reason, count := range reasons {
		m.blockers.WithLabelValues(reason).Add(float64(count))
	}
	if len(reasons) == 0 {
		delete(m.nodes, node)
		delete(m.since, node)
		return
	}
	m.nodes[node] = maps.Clone(reasons)
	if _, known := m.since[node]; !known {
		m.since[node] = time.Now()
	}
}

// oldest is for how long a drain has been blocked that has been so longest.
func (m *Metrics) oldest(now time.Time) (longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, since := range m.since {
		longest = max(longest, now.Sub(since))
	}
	return longest
}

// blockedPods shows what blocks the drain of one node.
type blockedPods struct {
	metrics *Metrics
	node    string
}

// Show is called with each report of the drain.
func (b blockedPods) Show(reasons map[string]int) { b.metrics.blocked(b.node, reasons) }
