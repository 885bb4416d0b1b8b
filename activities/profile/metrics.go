package profile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/series"
)

// Metrics are those of profiles: the counterparts of maintenance-controller's, and how many nodes are in which state.
type Metrics struct {
	Client kube.Interface
	Log    *slog.Logger

	seen     *seen
	failures *prometheus.CounterVec
	shuffled *prometheus.CounterVec
	share    *prometheus.CounterVec
	// profiles and owners bound the series: anyone who can create Deployments names owners.
	profiles, owners *series.Bounded
}

// maxProfiles and maxOwners bound how many profiles, and pairs of an owner and a profile, have series of their own.
const (
	maxProfiles = 100
	maxOwners   = 500
)

// seen is what the last evaluation on this worker has seen, for as long as no other worker has gone on with it.
type seen struct {
	nodes, failing *prometheus.GaugeVec

	mu sync.Mutex
	// until is when it is not shown any more; zero is never.
	until time.Time
}

// Describe is part of prometheus.Collector.
func (s *seen) Describe(to chan<- *prometheus.Desc) {
	s.nodes.Describe(to)
	s.failing.Describe(to)
}

// Collect is part of prometheus.Collector.
func (s *seen) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until.IsZero() || time.Now().Before(s.until) {
		s.nodes.Collect(to)
		s.failing.Collect(to)
	}
}

// NewMetrics registers the metrics of profiles.
func NewMetrics(registry prometheus.Registerer, client kube.Interface, log *slog.Logger) *Metrics {
	m := &Metrics{
		Client: client, Log: log, profiles: series.NewBounded(maxProfiles), owners: series.NewBounded(maxOwners),
		seen: &seen{
			nodes: prometheus.NewGaugeVec(prometheus.GaugeOpts{
				Namespace: "drydock", Name: "profile_nodes", Help: "Nodes by profile and state, as the worker that evaluates them saw them last: take the max.",
			}, []string{"profile", "state"}),
			failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
				Namespace: "drydock", Name: "profile_failing_nodes", Help: "Nodes on which a check of the profile fails, as that worker saw them: take the max.",
			}, []string{"profile"}),
		},
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "drydock", Name: "profile_transition_failures_total", Help: "Transitions of profiles that were not carried out.",
		}, []string{"profile"}),
		shuffled: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "drydock", Name: "profile_pod_shuffles_total", Help: "Pods on nodes that went into maintenance by a profile, by owner.",
		}, []string{"owner", "profile"}),
		share: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "drydock", Name: "profile_pod_shuffles_per_replica_total", Help: "The same, each as its share of the owner's replicas.",
		}, []string{"owner", "profile"}),
	}
	registry.MustRegister(m.seen, m.failures, m.shuffled, m.share)
	return m
}

// Shown is part of Counts.
func (m *Metrics) Shown(counts []api.ProfileCount) {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	m.seen.until = time.Time{}
	m.seen.nodes.Reset()
	m.seen.failing.Reset()
	for _, c := range counts {
		profile := m.profiles.Of(c.Profile)
		m.seen.nodes.WithLabelValues(profile, string(c.State)).Add(float64(c.Nodes))
		m.seen.failing.WithLabelValues(profile).Add(float64(c.Failing))
		m.failures.WithLabelValues(profile)
	}
}

// stillSeen is how long the metrics show what was seen last: the next evaluation may begin here, or on another worker.
const stillSeen = time.Minute

// Left is part of Counts.
func (m *Metrics) Left() {
	m.seen.mu.Lock()
	defer m.seen.mu.Unlock()
	m.seen.until = time.Now().Add(stillSeen)
}

// Failed is part of Counts.
func (m *Metrics) Failed(profile string) { m.failures.WithLabelValues(m.profiles.Of(profile)).Inc() }

// countWithin bounds the counting of pods, which nothing waits for but a transition.
const countWithin = 10 * time.Second

// Entered is part of Counts.
func (m *Metrics) Entered(ctx context.Context, profile, node string) {
	ctx, cancel := context.WithTimeout(ctx, countWithin)
	defer cancel()
	pods, err := k8s.PodsOn(ctx, m.Client, node)
	if err != nil {
		m.Log.Warn("the pods of a node that went into maintenance are not counted", "node", node, "error", err)
		return
	}
	replicas := map[string]int32{}
	for _, pod := range pods {
		owner := metav1.GetControllerOf(pod)
		if owner == nil {
			continue
		}
		name, of, err := m.owner(ctx, pod, owner, replicas)
		if err != nil {
			m.Log.Warn("a pod of a node that went into maintenance is not counted", "pod", k8s.PodName(pod), "error", err)
			continue
		}
		if name == "" {
			continue
		}
		counted := m.profiles.Of(profile)
		if m.owners.Of(name+"/"+counted) == series.Other {
			name = series.Other
		}
		m.shuffled.WithLabelValues(name, counted).Inc()
		if of > 0 {
			m.share.WithLabelValues(name, counted).Add(1 / float64(of))
		}
	}
}

// owner is what keeps a pod, as maintenance-controller names it, and how many replicas that has; empty is what it does not count.
func (m *Metrics) owner(ctx context.Context, pod *corev1.Pod, owner *metav1.OwnerReference, known map[string]int32) (name string, replicas int32, err error) {
	apps, key := m.Client.AppsV1(), owner.Kind+"/"+pod.Namespace+"/"+owner.Name
	count := func(read func() (int32, error)) error {
		if replicas, err = known[key], nil; replicas == 0 {
			replicas, err = read()
			known[key] = replicas
		}
		return err
	}
	want := func(n *int32) int32 {
		if n == nil {
			return 1
		}
		return *n
	}
	switch owner.Kind {
	case "DaemonSet":
		err = count(func() (int32, error) {
			d, err := apps.DaemonSets(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
			return d.Status.NumberReady, err
		})
		return "daemon_set_" + owner.Name, replicas, err
	case "StatefulSet":
		err = count(func() (int32, error) {
			s, err := apps.StatefulSets(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
			return want(s.Spec.Replicas), err
		})
		return "stateful_set_" + owner.Name, replicas, err
	case "ReplicaSet":
		set, err := apps.ReplicaSets(pod.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		if err != nil {
			return "", 0, err
		}
		if deployment := metav1.GetControllerOf(set); deployment != nil && deployment.Kind == "Deployment" {
			return "deployment_" + deployment.Name, want(set.Spec.Replicas), nil
		}
		return "replica_set_" + owner.Name, want(set.Spec.Replicas), nil
	}
	return "", 0, nil
}
