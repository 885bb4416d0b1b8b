package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/mock"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/mocks"
	"go.temporal.io/sdk/testsuite"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/k8stest"
)

const (
	testWorkflow = "default-test-workflow-id"
	testRun      = "default-test-run-id"
)

func activityEnvironment() *testsuite.TestActivityEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(time.Hour)
	return env
}

// within runs code as an activity.
func within(t *testing.T, env *testsuite.TestActivityEnvironment, do func(ctx context.Context) error) error {
	t.Helper()
	env.RegisterActivity(do)
	_, err := env.ExecuteActivity(do)
	return err
}

func blocker(i int, since time.Time) api.Blocker {
	return api.Blocker{Pod: fmt.Sprintf("default/p%d", i), Reason: "DisruptionBudget", Since: since}
}

func TestBlockedSetNamesWhatHasLasted(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	old, fresh := now.Add(-blockedAfter), now.Add(-blockedAfter+time.Millisecond)
	for name, c := range map[string]struct {
		blockers []api.Blocker
		want     string
	}{
		"none":           {nil, ""},
		"fresh":          {[]api.Blocker{blocker(1, fresh)}, ""},
		"old":            {[]api.Blocker{blocker(1, old)}, "default/p1=DisruptionBudget;"},
		"old and fresh":  {[]api.Blocker{blocker(1, old), blocker(2, fresh)}, "default/p1=DisruptionBudget;"},
		"another reason": {[]api.Blocker{{Pod: "default/p1", Reason: "Terminating", Since: old}}, "default/p1=Terminating;"},
	} {
		if got := blockedSet(api.DrainProgress{Blockers: c.blockers}, now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestReporterSignalsABoundedNumberOfTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sent []time.Duration
		temporal := &mocks.Client{}
		start := time.Now()
		fail := false
		temporal.On("SignalWorkflow", mock.Anything, testWorkflow, testRun, "drain-blocked", mock.Anything).Return(
			func(context.Context, string, string, string, any) error {
				if fail {
					return errors.New("no server")
				}
				sent = append(sent, time.Since(start))
				return nil
			})
		r := reporter{temporal: temporal, signal: "drain-blocked"}
		err := within(t, activityEnvironment(), func(ctx context.Context) error {
			first := api.DrainProgress{Blockers: []api.Blocker{blocker(1, time.Now())}}
			for range 4 { // the same, again and again: told once it has lasted
				r.report(ctx, first)
				time.Sleep(time.Second)
			}
			if len(sent) != 1 || sent[0] != 2*time.Second {
				t.Errorf("signalled after %v", sent)
			}
			r.report(ctx, api.DrainProgress{}) // nothing blocks any more: but not so soon
			if len(sent) != 1 {
				t.Errorf("signalled after %v", sent)
			}
			time.Sleep(signalEvery)
			fail = true
			r.report(ctx, api.DrainProgress{})
			fail = false
			r.report(ctx, api.DrainProgress{})
			if len(sent) != 2 {
				t.Errorf("what could not be said was not said again: %v", sent)
			}
			for i := range 100 {
				time.Sleep(signalEvery)
				r.report(ctx, api.DrainProgress{Blockers: []api.Blocker{blocker(i, start)}})
			}
			return nil
		})
		if err != nil || len(sent) != maxBlockedSignals {
			t.Errorf("%d signals, error %v", len(sent), err)
		}
	})
}

func TestProgressNamesTheFirstBlockersAndCountsTheRest(t *testing.T) {
	r := &drainRun{
		Drains: &Drains{}, budgets: newBudgets(nil), tries: map[types.UID]*try{}, refusedSince: map[types.UID]time.Time{},
		node: watchedNode(t, node("n1")),
	}
	var found round
	for i := range 25 {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%02d", i), UID: types.UID(fmt.Sprint(i))}}
		switch {
		case i < 8:
			found.refused = append(found.refused, refusedPod{pod, k8s.Verdict{Class: k8s.Refuse, Reason: k8s.NoController, Message: "consent with force"}})
		case i < 16:
			r.tries[pod.UID] = &try{eviction: k8s.Eviction{Answer: k8s.BudgetRefused, Budget: "web", Message: "needs 3"}, since: time.Now()}
			found.targets = append(found.targets, target{Pod: pod})
		case i < 18: // on its way out: no blocker yet
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			found.leaving = append(found.leaving, pod)
		case i < 20: // finished: no blocker
			pod.Status.Phase = corev1.PodSucceeded
			r.tries[pod.UID] = &try{eviction: k8s.Eviction{Answer: k8s.Failed}}
			found.targets = append(found.targets, target{Pod: pod})
		default:
			pod.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Hour)}
			pod.Finalizers = []string{"example.com/keep"}
			found.leaving = append(found.leaving, pod)
		}
	}
	p := r.blocked(found)
	if len(p.Blockers) != maxBlockers || p.MoreBlockers != 8+8+5-maxBlockers {
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
	alive, dead := &drainRun{node: watchedNode(t, node("n1"))}, &drainRun{node: watchedNode(t, node("n1", notReady))}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"in its grace":      {pod(-time.Minute), ""},
		"just after":        {pod(10 * time.Second), ""},
		"long after":        {pod(10 * time.Minute), "is the kubelet of the node alive?"},
		"kept by finalizer": {pod(10*time.Minute, "example.com/keep"), "finalizers [example.com/keep]"},
	} {
		late, message := alive.overdue(c.pod)
		if late != (c.want != "") || !contains(message, c.want) {
			t.Errorf("%s: %v %q", name, late, message)
		}
	}
	if late, message := dead.overdue(pod(time.Second)); !late || !contains(message, "kubelet of its node does not answer") {
		t.Errorf("on a dead node: %v %q", late, message)
	}
}

// watchedNode is a view of one node.
func watchedNode(t *testing.T, n *corev1.Node) *heldNode {
	t.Helper()
	watch, err := watchNode(t.Context(), k8stest.New(n).Client(t), n.Name)
	if err != nil {
		t.Fatal(err)
	}
	return &heldNode{name: n.Name, node: watch}
}
