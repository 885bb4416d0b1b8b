package drain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/heldnode"
	"drydock.dev/drydock/activities/reporting"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

// watchedNode is a view of one node.
func watchedNode(t *testing.T, n *corev1.Node) *heldnode.View {
	t.Helper()
	kube := k8stest.New(n).Client(t)
	view, err := heldnode.Acting{Client: kube, Nodes: k8s.NewNodes(kube)}.Watch(t.Context(), heldnode.Options{Name: n.Name})
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestProgressNamesTheFirstBlockersAndCountsTheRest(t *testing.T) {
	budgets := newBudgets(nil)
	b := &blockers{
		node: watchedNode(t, activitytest.Node("n1")), budgets: budgets, attempts: newAttempts(means{}, budgets, nil),
		firstSeen: map[types.UID]time.Time{},
	}
	var found observation
	for i := range 25 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%02d", i), UID: types.UID(fmt.Sprint(i))}}
		switch {
		case i < 8:
			found.refused = append(found.refused, refusedPod{pod, k8s.Verdict{Class: k8s.Refuse, Reason: k8s.NoController, Message: "consent with force"}})
		case i < 16:
			b.attempts.byPod[pod.UID] = &attempt{eviction: k8s.Eviction{Answer: k8s.BudgetRefused, Budget: "web", Message: "needs 3"}, since: time.Now()}
			found.targets = append(found.targets, target{Pod: pod})
		case i < 18: // on its way out: no blocker yet
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			found.leaving = append(found.leaving, pod)
		case i < 20: // finished: no blocker
			pod.Status.Phase = corev1.PodSucceeded
			b.attempts.byPod[pod.UID] = &attempt{eviction: k8s.Eviction{Answer: k8s.Failed}}
			found.targets = append(found.targets, target{Pod: pod})
		default:
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			pod.Finalizers = []string{"example.com/keep"}
			found.leaving = append(found.leaving, pod)
		}
	}
	p := b.explain(found, api.DrainProgress{})
	if len(p.Blockers) != reporting.MaxBlockers || p.MoreBlockers != 8+8+5-reporting.MaxBlockers {
		t.Errorf("%d blockers and %d more", len(p.Blockers), p.MoreBlockers)
	}
	if p.Reasons[k8s.NoController] != 8 || p.Reasons["DisruptionBudget"] != 8 || p.Reasons["Terminating"] != 5 {
		t.Errorf("reasons %v", p.Reasons)
	}
	if b := p.Blockers[0]; b.Pod != "default/p00" || b.Reason != k8s.NoController || b.Since.IsZero() {
		t.Errorf("the first is %+v", b)
	}
	if b := p.Blockers[9]; b.Budget != "web" || b.Message != "needs 3" {
		t.Errorf("the tenth is %+v", b)
	}
}

func TestPodIsOverdueAWhileAfterItsGrace(t *testing.T) {
	pod := func(ago time.Duration, finalizers ...string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Now().Add(-ago)}, Finalizers: finalizers}}
	}
	alive, dead := &blockers{node: watchedNode(t, activitytest.Node("n1"))}, &blockers{node: watchedNode(t, activitytest.Node("n1", activitytest.Silent))}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"in its grace":      {pod(-time.Minute), ""},
		"just after":        {pod(10 * time.Second), ""},
		"long after":        {pod(10 * time.Minute), "is the kubelet of the node alive?"},
		"kept by finalizer": {pod(10*time.Minute, "example.com/keep"), "finalizers example.com/keep"},
	} {
		late, message := alive.overdue(c.pod)
		if late != (c.want != "") || !strings.Contains(message, c.want) {
			t.Errorf("%s: %v %q", name, late, message)
		}
	}
	unwell := &blockers{node: watchedNode(t, activitytest.Node("n1", activitytest.NotReady))}
	if late, message := unwell.overdue(pod(time.Second)); late {
		t.Errorf("on a node that says it is not Ready: %q", message)
	}
	if late, message := dead.overdue(pod(time.Second)); !late || !strings.Contains(message, "kubelet of its node does not answer") {
		t.Errorf("on a dead node: %v %q", late, message)
	}
}
