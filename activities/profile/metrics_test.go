package profile_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/profile/state"
)

// of is an object in the namespace of the pods, kept by another where a kind is given.
func of(name, kind, keeper string) metav1.ObjectMeta {
	meta := metav1.ObjectMeta{Namespace: "default", Name: name}
	if kind != "" {
		meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: kind, Name: keeper, Controller: new(true)}}
	}
	return meta
}

func kept(name, kind, keeper string) *corev1.Pod {
	return activitytest.Pod(name, func(p *corev1.Pod) { p.OwnerReferences = of("", kind, keeper).OwnerReferences })
}

func TestPodsAreCountedByTheirOwners(t *testing.T) {
	kube := k8stest.NewFake(
		&appsv1.ReplicaSet{ObjectMeta: of("web-1", "Deployment", "web"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(4))}},
		&appsv1.ReplicaSet{ObjectMeta: of("loose", "", ""), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2))}},
		&appsv1.ReplicaSet{ObjectMeta: of("rolled", "Rollout", "canary")},
		&appsv1.StatefulSet{ObjectMeta: of("db", "", ""), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(5))}},
		&appsv1.DaemonSet{ObjectMeta: of("agent", "", ""), Status: appsv1.DaemonSetStatus{NumberReady: 10}},
		&appsv1.DaemonSet{ObjectMeta: of("broken", "", "")},
		kept("web-a", "ReplicaSet", "web-1"), kept("web-b", "ReplicaSet", "web-1"), kept("loose", "ReplicaSet", "loose"),
		kept("rolled", "ReplicaSet", "rolled"), kept("db-0", "StatefulSet", "db"), kept("agent", "DaemonSet", "agent"),
		kept("broken", "DaemonSet", "broken"), kept("orphan", "StatefulSet", "gone"), kept("once", "Job", "once"),
		activitytest.Pod("alone", func(p *corev1.Pod) { p.OwnerReferences = nil }),
	)
	registry := prometheus.NewRegistry()
	m := profile.NewMetrics(registry, kube, slog.New(slog.DiscardHandler))
	m.Entered(t.Context(), "p", "n1")
	// A DaemonSet none of whose pods is ready has no replicas to share among.
	const want = `# HELP drydock_profile_pod_shuffles_per_replica_total The same, each as its share of the owner's replicas.
# TYPE drydock_profile_pod_shuffles_per_replica_total counter
drydock_profile_pod_shuffles_per_replica_total{owner="daemon_set_agent",profile="p"} 0.1
drydock_profile_pod_shuffles_per_replica_total{owner="deployment_web",profile="p"} 0.5
drydock_profile_pod_shuffles_per_replica_total{owner="replica_set_loose",profile="p"} 0.5
drydock_profile_pod_shuffles_per_replica_total{owner="replica_set_rolled",profile="p"} 1
drydock_profile_pod_shuffles_per_replica_total{owner="stateful_set_db",profile="p"} 0.2
# HELP drydock_profile_pod_shuffles_total Pods on nodes that went into maintenance by a profile, by owner.
# TYPE drydock_profile_pod_shuffles_total counter
drydock_profile_pod_shuffles_total{owner="daemon_set_agent",profile="p"} 1
drydock_profile_pod_shuffles_total{owner="daemon_set_broken",profile="p"} 1
drydock_profile_pod_shuffles_total{owner="deployment_web",profile="p"} 2
drydock_profile_pod_shuffles_total{owner="replica_set_loose",profile="p"} 1
drydock_profile_pod_shuffles_total{owner="replica_set_rolled",profile="p"} 1
drydock_profile_pod_shuffles_total{owner="stateful_set_db",profile="p"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "drydock_profile_pod_shuffles_total", "drydock_profile_pod_shuffles_per_replica_total"); err != nil {
		t.Error(err)
	}
}

func TestNodesAreCountedByTheWorkerThatEvaluates(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := profile.NewMetrics(registry, k8stest.NewFake(), slog.New(slog.DiscardHandler))
	m.Shown([]api.ProfileCount{{Profile: "gone", State: state.Operational, Nodes: 1}})
	m.Shown([]api.ProfileCount{{Profile: "p", State: state.Operational, Nodes: 3, Failing: 1}, {Profile: "p", State: state.Required, Nodes: 2, Failing: 2}})
	m.Failed("p")
	const want = `# HELP drydock_profile_failing_nodes Nodes on which a check of the profile fails, as that worker saw them: take the max.
# TYPE drydock_profile_failing_nodes gauge
drydock_profile_failing_nodes{profile="p"} 3
# HELP drydock_profile_nodes Nodes by profile and state, as the worker that evaluates them saw them last: take the max.
# TYPE drydock_profile_nodes gauge
drydock_profile_nodes{profile="p",state="maintenance-required"} 2
drydock_profile_nodes{profile="p",state="operational"} 3
# HELP drydock_profile_transition_failures_total Transitions of profiles that were not carried out.
# TYPE drydock_profile_transition_failures_total counter
drydock_profile_transition_failures_total{profile="gone"} 0
drydock_profile_transition_failures_total{profile="p"} 1
`
	for range 2 {
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		m.Left() // the next evaluation may begin here
	}
}

func TestOutsidersMakeNoSeriesWithoutEnd(t *testing.T) {
	objects := []runtime.Object{}
	for i := range 1000 {
		name := fmt.Sprint("set-", i)
		objects = append(objects, &appsv1.StatefulSet{ObjectMeta: of(name, "", "")}, kept(name+"-0", "StatefulSet", name))
	}
	registry := prometheus.NewRegistry()
	m := profile.NewMetrics(registry, k8stest.NewFake(objects...), slog.New(slog.DiscardHandler))
	m.Entered(t.Context(), "p", "n1")
	var counts []api.ProfileCount
	for i := range 10_000 {
		name := fmt.Sprint("profile-", i)
		counts = append(counts, api.ProfileCount{Profile: name, State: state.Operational, Nodes: 1, Failing: 1})
		m.Failed(name)
	}
	m.Shown(counts)
	for name, most := range map[string]int{
		"drydock_profile_nodes": 101, "drydock_profile_failing_nodes": 101, "drydock_profile_transition_failures_total": 101,
		"drydock_profile_pod_shuffles_total": 501, "drydock_profile_pod_shuffles_per_replica_total": 501,
	} {
		if got, err := testutil.GatherAndCount(registry, name); err != nil || got < 100 || got > most {
			t.Errorf("%s has %d series, want %d at most: %v", name, got, most, err)
		}
	}
}
