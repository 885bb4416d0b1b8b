package bridge

import (
	"fmt"
	"strings"
	"testing"

	temporalclient "go.temporal.io/sdk/client"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/plan"
)

var plans = kinds[1]

func (b *bridged) plan(name string) (p v1alpha1.MaintenancePlan, err error) {
	err = b.send(plans.plural, "get", name, nil, &p)
	return p, err
}

// untilPlan waits until the object of a plan shows what is wanted.
func (b *bridged) untilPlan(name, what string, is func(v1alpha1.MaintenancePlan) bool) (p v1alpha1.MaintenancePlan) {
	b.Helper()
	b.Eventually("plan "+name+" "+what, func() (err error) {
		if p, err = b.plan(name); err == nil && !is(p) {
			err = fmt.Errorf("%+v", p.Status)
		}
		return err
	})
	return p
}

// planIs waits until a condition of a plan is true for a reason.
func (b *bridged) planIs(name, condition, reason string) v1alpha1.MaintenancePlan {
	b.Helper()
	return b.untilPlan(name, "is "+condition+" for "+reason, func(p v1alpha1.MaintenancePlan) bool {
		is := meta.FindStatusCondition(p.Status.Conditions, condition)
		return is != nil && is.Status == metav1.ConditionTrue && is.Reason == reason
	})
}

// patch changes an object of a kind.
func (b *bridged) patch(k kind, name string, body map[string]any) {
	b.Helper()
	if err := b.send(k.plural, "patch", name, body, nil); err != nil {
		b.Fatal(err)
	}
}

func (b *bridged) remove(k kind, name string) {
	b.Helper()
	if err := b.send(k.plural, "delete", name, nil, nil); err != nil {
		b.Fatal(err)
	}
}

// wasRemoved waits until there is no object of a name.
func (b *bridged) wasRemoved(k kind, name string) {
	b.Helper()
	b.Eventually(k.name+" "+name+" is gone", func() error {
		var o struct{ Status any }
		err := b.send(k.plural, "get", name, nil, &o)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err == nil:
			err = fmt.Errorf("%+v", o.Status)
		}
		return err
	})
}

// quick is a maintenance that ends by itself.
const quick = "maintenance: {readyTimeout: 1s, onReadyTimeout: release}"

func TestAPlanIsCarriedOut(t *testing.T) {
	b := newBridged(t, "scheduler: {maxParallel: 3}")
	before := b.Imprints()
	b.askFor(plans, "kernel", "{nodes: [worker-01, worker-02, worker-03], strategy: {maxParallel: 2}, reason: a new kernel, "+quick+"}")
	p := b.planIs("kernel", v1alpha1.Succeeded, string(api.PlanCompleted))
	if c := p.Status.Counts; c == nil || *c != (plan.Counts{Total: 3, Done: 3}) {
		t.Errorf("it counts %+v", c)
	}
	if want := api.PlanID(b.Cluster, "kernel"); p.Status.WorkflowID != want || p.Status.RunID == "" || p.Status.Since == nil {
		t.Errorf("it shows %+v, want workflow %s", p.Status, want)
	}
	for condition, want := range map[string]bool{v1alpha1.Reconciling: false, v1alpha1.Stalled: false, v1alpha1.Failed: false} {
		if c := meta.FindStatusCondition(p.Status.Conditions, condition); c == nil || (c.Status == metav1.ConditionTrue) != want {
			t.Errorf("at its end %s is %+v", condition, c)
		}
	}
	for _, node := range []string{"worker-01", "worker-02", "worker-03"} {
		b.Back(node, before[node])
	}
	// A change is written once: the plan's begin, its nodes and its end, and the begin and the end of each node.
	written := b.RequestsBy("drydock-bridge", plans.plural, func(r site.Request) bool {
		return r.Answered() && r.Verb == "patch" && r.Object.Name == "kernel" && r.Object.Subresource == "status" && r.Status.Code < 300
	})
	t.Logf("%d writes", len(written))
	if len(written) < 3 || len(written) > 12 {
		t.Errorf("the object was written %d times", len(written))
	}
	b.untilPlan("kernel", "can go", func(p v1alpha1.MaintenancePlan) bool { return len(p.Finalizers) == 0 })
	b.remove(plans, "kernel")
	b.wasRemoved(plans, "kernel")

	// The same name again is another plan.
	b.askFor(plans, "kernel", "{nodes: [worker-01], "+quick+"}")
	again := b.planIs("kernel", v1alpha1.Succeeded, string(api.PlanCompleted))
	if again.Status.RunID == p.Status.RunID || again.Status.Counts.Total != 1 {
		t.Errorf("the second object of the name shows the first one's plan: %+v", again.Status)
	}
	of := b.RequestsBy("drydock-bridge", "", func(r site.Request) bool { return r.Answered() })
	for _, r := range of {
		if r.Object.Resource == "nodes" || r.Object.Resource == "pods" || r.Status.Code == 403 {
			t.Errorf("the bridge did %s %s/%s %s: %d", r.Verb, r.Object.Resource, r.Object.Subresource, r.Object.Name, r.Status.Code)
		}
	}
}

func TestADeletedPlanIsCancelled(t *testing.T) {
	b := newBridged(t, "scheduler: {maxParallel: 3}")
	before := b.Imprints()
	ns := b.Namespace()
	b.Guarded(ns, "guarded", "worker-02")
	b.askFor(plans, "kernel", "{nodes: [worker-01, worker-02, worker-03], strategy: {maxParallel: 2}, maintenance: {readyTimeout: 4h}}")
	b.untilPlan("kernel", "works on two nodes", func(p v1alpha1.MaintenancePlan) bool { return p.Status.Counts != nil && p.Status.Counts.Running == 2 })
	b.Until(b.inPlan("worker-01", "kernel"), api.Ready)
	b.Until(b.inPlan("worker-02", "kernel"), api.Draining)

	// A pace and a pause are said by the object.
	b.patch(plans, "kernel", map[string]any{"spec": map[string]any{"strategy": map[string]any{"maxParallel": 1}}})
	p := b.untilPlan("kernel", "follows its spec", func(p v1alpha1.MaintenancePlan) bool { return p.Status.ObservedGeneration == p.Generation })
	if status, err := b.planStatus(p); err != nil || status.Plan.Strategy.MaxParallel.String() != "1" {
		t.Errorf("%v: it works on %s at a time", err, status.Plan.Strategy.MaxParallel)
	}
	b.patch(plans, "kernel", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance.drydock.dev/pause": "look first"}}})
	p = b.planIs("kernel", v1alpha1.Stalled, string(api.PlanPaused))
	if !strings.Contains(p.Status.Message, "look first") || len(p.Annotations) > 0 {
		t.Errorf("it shows %+v and says %v", p.Status, p.Annotations)
	}
	b.patch(plans, "kernel", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance.drydock.dev/resume": ""}}})
	b.planIs("kernel", v1alpha1.Reconciling, string(api.PlanRunning))

	// The drain is taken back, and whoever works on a node finishes that.
	b.remove(plans, "kernel")
	b.MustEnd(b.inPlan("worker-02", "kernel"), api.Cancelled)
	if p, err := b.plan("kernel"); err != nil || len(p.Finalizers) == 0 {
		t.Errorf("%v: the object does not wait for the node that is worked on: %v", err, p.Finalizers)
	}
	b.Exits(b.Drydock("done", "worker-01", "--requestor", "plan-kernel", "--yes"), 0)
	b.wasRemoved(plans, "kernel")
	if status, err := b.planStatus(p); err != nil || status.Phase != api.PlanCancelled || status.Counts.Waiting != 1 {
		t.Errorf("%v: the plan is %s, %+v", err, status.Phase, status.Counts)
	}
	for _, node := range []string{"worker-01", "worker-02", "worker-03"} {
		b.Back(node, before[node])
	}
}

// inPlan is the maintenance of a node that a plan has begun.
func (b *bridged) inPlan(node, name string) temporalclient.WorkflowRun {
	return b.Temporal.GetWorkflow(b.Ctx, api.MaintenanceID(b.Cluster, node, plan.RequestorOf(name)), "")
}

func (b *bridged) planStatus(p v1alpha1.MaintenancePlan) (status api.PlanStatus, err error) {
	value, err := b.Temporal.QueryWorkflow(b.Ctx, p.Status.WorkflowID, p.Status.RunID, api.QueryStatus, api.PlanStatusRequest{Limit: 1})
	if err == nil {
		err = value.Get(&status)
	}
	return status, err
}

func TestAPlanGoesThroughItsStages(t *testing.T) {
	b := newBridged(t, "scheduler: {maxParallel: 2}")
	before := b.Imprints()
	b.askFor(plans, "kep", "{nodes: [worker-04, worker-05], strategy: {type: allAtOnce}}")
	p := b.untilPlan("kep", "is Idle and as it is to be", func(p v1alpha1.MaintenancePlan) bool {
		return p.Status.Stage == api.StageIdle && p.Status.Counts.Total == 2 && meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.Reconciling)
	})
	if meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.Drained) {
		t.Errorf("it is drained in stage Idle: %+v", p.Status.Conditions)
	}
	b.patch(plans, "kep", map[string]any{"spec": map[string]any{"stage": "Drain"}})
	p = b.planIs("kep", v1alpha1.Drained, string(api.StageDrain))
	if d := p.Status.Drain; d == nil || d.Drained != 2 || p.Status.ObservedGeneration != p.Generation || p.Status.Tier == nil {
		t.Errorf("it shows %+v", p.Status)
	}
	if !meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.Reconciling) {
		t.Errorf("it is drained, and has conditions %+v", p.Status.Conditions)
	}
	// An annotation says the last stage, which no spec has.
	b.patch(plans, "kep", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"maintenance.drydock.dev/set-stage": "Complete all is done"}}})
	p = b.planIs("kep", v1alpha1.Succeeded, string(api.PlanCompleted))
	if p.Status.Stage != plan.Complete {
		t.Errorf("at its end it shows %+v", p.Status)
	}
	for _, node := range []string{"worker-04", "worker-05"} {
		b.Back(node, before[node])
	}
	b.remove(plans, "kep")
	b.wasRemoved(plans, "kep")

	// A deleted object has its nodes given back.
	b.askFor(plans, "kep", "{nodes: [worker-04], strategy: {type: allAtOnce}, stage: Cordon}")
	b.untilPlan("kep", "has its node cordoned", func(p v1alpha1.MaintenancePlan) bool {
		return p.Status.Drain != nil && p.Status.Drain.Cordoned == 1 && meta.IsStatusConditionFalse(p.Status.Conditions, v1alpha1.Reconciling)
	})
	b.remove(plans, "kep")
	b.wasRemoved(plans, "kep")
	b.Back("worker-04", before["worker-04"])
}

func TestAPlanThatCannotBeSaysSo(t *testing.T) {
	b := newBridged(t, "")
	b.askFor(plans, "invalid", "{selector: a b c}")
	p := b.planIs("invalid", v1alpha1.Stalled, "InvalidSpec")
	if !strings.Contains(p.Status.Message, "selector") || p.Status.WorkflowID != "" || len(p.Finalizers) > 0 {
		t.Errorf("it shows %+v", p.Status)
	}
	if _, err := b.Temporal.DescribeWorkflowExecution(b.Ctx, api.PlanID(b.Cluster, "invalid"), ""); err == nil {
		t.Error("a plan was started")
	}
	b.remove(plans, "invalid")
	b.wasRemoved(plans, "invalid")

	// Only the worker knows its windows.
	b.askFor(plans, "window", "{nodes: [worker-01], windows: [nightly]}")
	p = b.planIs("window", v1alpha1.Failed, string(api.PlanFailed))
	if !strings.Contains(p.Status.Message, "nightly") || !meta.IsStatusConditionTrue(p.Status.Conditions, v1alpha1.Stalled) {
		t.Errorf("it shows %+v", p.Status)
	}
	b.remove(plans, "window")
	b.wasRemoved(plans, "window")

	// Somebody else's plan of the name comes first.
	b.MustDrydock("plan", "create", "shared", "worker-01", "--ready-timeout", "4h", "--yes")
	b.Until(b.inPlan("worker-01", "shared"), api.Ready)
	b.askFor(plans, "shared", "{nodes: [worker-02], "+quick+"}")
	p = b.planIs("shared", v1alpha1.Reconciling, "Occupied")
	if p.Status.RunID != "" {
		t.Errorf("it shows %+v", p.Status)
	}
	b.MustDrydock("plan", "cancel", "shared", "--yes")
	b.MustDrydock("done", "worker-01", "--requestor", "plan-shared", "--yes")
	p = b.planIs("shared", v1alpha1.Succeeded, string(api.PlanCompleted))
	if p.Status.Counts.Total != 1 {
		t.Errorf("it shows %+v", p.Status)
	}
}
