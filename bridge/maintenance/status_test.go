package maintenance

import (
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 123, time.UTC)

// view is a maintenance in a phase.
func view(phase api.Phase) client.View {
	v := client.View{Maintenance: client.Maintenance{
		Node: "worker-01", Requestor: "ops", WorkflowID: "node-maintenance/worker-01/ops", RunID: "second", FirstRunID: "first",
		Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}
	transitions := []api.Transition{{Phase: phase, At: noon}}
	v.Status = &api.Status{Phase: phase, Since: noon, Transitions: transitions}
	if phase.Ended() {
		v.Execution = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
		v.Result = &api.Result{Phase: phase, Transitions: transitions}
	}
	return v
}

// Each phase has its conditions: exactly these are true.
func TestConditionsOfPhases(t *testing.T) {
	for phase, want := range map[api.Phase][]string{
		api.AwaitingApproval: {v1alpha1.Reconciling},
		api.Pending:          {v1alpha1.Reconciling},
		api.Scheduled:        {v1alpha1.Reconciling},
		api.Cordoning:        {v1alpha1.Reconciling},
		api.Cordoned:         {v1alpha1.Reconciling},
		api.WaitingForPods:   {v1alpha1.Reconciling},
		api.Draining:         {v1alpha1.Reconciling},
		api.Ready:            {v1alpha1.Ready},
		api.RequestorFailed:  {v1alpha1.Stalled},
		api.Validating:       {v1alpha1.Reconciling},
		api.Releasing:        {v1alpha1.Reconciling},
		api.Completed:        {v1alpha1.Succeeded},
		api.Failed:           {v1alpha1.Failed, v1alpha1.Stalled},
		api.Cancelled:        {v1alpha1.Failed, v1alpha1.Stalled},
		api.NodeGone:         {v1alpha1.Failed, v1alpha1.Stalled},
	} {
		is := statusOf(view(phase))
		var isTrue []string
		for _, c := range is.Conditions {
			if c.Status == metav1.ConditionTrue {
				isTrue = append(isTrue, c.Type)
			}
			if c.Reason != string(phase) {
				t.Errorf("%s: condition %s has the reason %s", phase, c.Type, c.Reason)
			}
		}
		slices.Sort(isTrue)
		if !slices.Equal(isTrue, want) {
			t.Errorf("%s: %v are true, want %v", phase, isTrue, want)
		}
		if is.Phase != phase || is.RunID != "first" || is.Since == nil || !is.Since.Equal(&metav1.Time{Time: noon.Truncate(time.Second)}) {
			t.Errorf("%s: %+v", phase, is)
		}
		// kstatus takes an object for unfinished whose condition Ready is false.
		if phase.Ended() && meta.FindStatusCondition(is.Conditions, v1alpha1.Ready) != nil {
			t.Errorf("%s: an ended maintenance still has the condition Ready", phase)
		}
	}
}

func TestStatusCountsWhatItKnows(t *testing.T) {
	v := view(api.Draining)
	v.Status.WaitingFor = "pods to leave"
	v.Status.Requestors = []api.RequestorStatus{{Name: "ops"}, {Name: "firmware", DoneAt: &noon}}
	v.Status.Drain = &api.DrainProgress{Evicted: 2, Deleted: 1, Remaining: 4, Blockers: make([]api.Blocker, 3), MoreBlockers: 1}
	is := statusOf(v)
	if is.Message != "pods to leave" || *is.Drain != (v1alpha1.Drain{Ended: 3, Remaining: 4, Blocked: 4}) {
		t.Errorf("%+v, drain %+v", is, is.Drain)
	}
	if want := []v1alpha1.Requestor{{Name: "ops"}, {Name: "firmware", Done: true}}; !slices.Equal(is.Requestors, want) {
		t.Errorf("requestors %+v, want %+v", is.Requestors, want)
	}
}

func TestAnObjectIsDecodedAsTheWorkflowWill(t *testing.T) {
	for name, c := range map[string]struct{ spec, want string }{
		"the least":            {spec: `{"node":"worker-01"}`},
		"who asked":            {spec: `{"node":"worker-01","requestedBy":"ann"}`},
		"no node":              {spec: `{}`, want: "node: required"},
		"an unknown field":     {spec: `{"node":"worker-01","drian":{}}`, want: `drian: unknown field; did you mean "drain"?`},
		"of plans":             {spec: `{"node":"worker-01","lockstep":true}`, want: "lockstep: Drydock alone sets it"},
		"of another object":    {spec: `{"node":"worker-01","object":{"uid":"x"}}`, want: "object: Drydock alone sets it"},
		"of a health check":    {spec: `{"node":"worker-01","remediation":{"check":"gpu"}}`, want: "remediation: Drydock alone sets it"},
		"a name that is taken": {spec: `{"node":"worker-01","requestor":"plans"}`, want: "plans"},
	} {
		o := &mirrored{object: &v1alpha1.NodeMaintenance{
			ObjectMeta: metav1.ObjectMeta{Name: "kernel", UID: "2f9e9c1e-0d5e-4f4e-9b1d-0a6f6f3f3c11"}, Spec: v1alpha1.Spec{Raw: []byte(c.spec)},
		}}
		err := o.decode()
		switch {
		case c.want == "":
			if err != nil || o.asked.Requestor != "kernel" || !o.owns(o.asked) {
				t.Errorf("%s: %v, asked %+v", name, err, o.asked)
			}
		case err == nil || !contains(err, c.want):
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func contains(err error, text string) bool { return strings.Contains(err.Error(), text) }
