package caller

import (
	"context"
	"encoding/json"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
)

// claim is an input that claims something.
type claim Subject

func (c claim) About() Subject { return Subject(c) }

func TestWhatAnInputClaimsIsItsCallers(t *testing.T) {
	maintenance := Identity{
		Type: api.NodeMaintenanceType, WorkflowID: "east/node-maintenance/w-01/kernel", RunID: "r-2", Cluster: "east", FirstRunID: "r-1",
		Parent: "east/maintenance-plan/q3",
	}
	alone, shared, elsewhere, old := maintenance, maintenance, maintenance, maintenance
	alone.Parent, shared.WorkflowID, elsewhere.Cluster, old.FirstRunID = "", "east/node-maintenance/w-01/plans", "west", ""
	foreign := Identity{Type: api.NodeMaintenanceType, WorkflowID: "started-by-hand", RunID: "r-1", Cluster: "east", FirstRunID: "r-1"}
	unnamed := Identity{Type: api.NodeMaintenanceType, WorkflowID: "node-maintenance/w-01/kernel", RunID: "r-1", FirstRunID: "r-1"}
	scheduler := Identity{Type: api.SchedulerType, WorkflowID: "east/drydock-scheduler", Cluster: "east", FirstRunID: "s-1"}
	repair := Identity{Type: api.NodeRemediationType, WorkflowID: "east/node-remediation/workers/w-01", Cluster: "east", FirstRunID: "r-1"}
	check := Identity{Type: api.HealthCheckType, WorkflowID: "east/health-check/workers", Cluster: "east", FirstRunID: "r-1"}
	transition := Identity{Type: api.ProfileTransitionType, WorkflowID: "east/profile-transition/kernel/w-01", Cluster: "east", FirstRunID: "r-1"}
	plan := Identity{Type: api.MaintenancePlanType, WorkflowID: "east/maintenance-plan/q3", Cluster: "east", FirstRunID: "r-1"}
	for name, c := range map[string]struct {
		who     Identity
		input   any
		allowed bool
	}{
		"its node":                   {maintenance, claim{Node: "w-01", RunID: "r-1"}, true},
		"another node":               {maintenance, claim{Node: "w-02", RunID: "r-1"}, false},
		"its node without a cluster": {unnamed, claim{Node: "w-01", RunID: "r-1"}, true},
		"another run":                {maintenance, claim{Node: "w-01", RunID: "r-2"}, false},
		"a first run that the server does not tell": {old, claim{Node: "w-01", RunID: "r-1", Request: "r-1/1"}, true},
		"its requestor":                                  {maintenance, claim{Node: "w-01", Requestor: "kernel"}, true},
		"another requestor":                              {maintenance, claim{Node: "w-01", Requestor: "plans"}, false},
		"the requestor of plans":                         {shared, claim{Node: "w-01", Requestor: "plans"}, true},
		"itself as the holder":                           {maintenance, claim{Node: "w-01", WorkflowID: maintenance.WorkflowID}, true},
		"another holder":                                 {maintenance, claim{Node: "w-01", WorkflowID: "east/node-maintenance/w-01/bios"}, false},
		"its slot":                                       {maintenance, claim{Request: "r-1/3", Scheduler: "east/drydock-scheduler"}, true},
		"another's slot":                                 {maintenance, claim{Request: "r-9/1", Scheduler: "east/drydock-scheduler"}, false},
		"a scheduler of his own":                         {maintenance, claim{Request: "r-1/1", Scheduler: "obliging"}, false},
		"its plan":                                       {maintenance, claim{Parent: "east/maintenance-plan/q3"}, true},
		"another plan":                                   {maintenance, claim{Parent: "east/maintenance-plan/q4"}, false},
		"a plan of none":                                 {alone, claim{Parent: "east/maintenance-plan/q3"}, false},
		"its specification":                              {maintenance, claim{Spec: json.RawMessage(`{"node":"w-01","requestor":"kernel"}`)}, true},
		"another's specification":                        {maintenance, claim{Spec: json.RawMessage(`{"node":"w-02","requestor":"kernel"}`)}, false},
		"a specification that is none":                   {maintenance, claim{Spec: json.RawMessage(`[]`)}, false},
		"a cluster that is not the queue's":              {elsewhere, claim{Node: "w-01"}, false},
		"a maintenance under another ID":                 {foreign, claim{Node: "w-01"}, false},
		"what claims nothing":                            {foreign, "a name", true},
		"a dead maintenance":                             {scheduler, claim{Node: "w-01", WorkflowID: maintenance.WorkflowID, RunID: "r-1"}, true},
		"a living maintenance":                           {scheduler, claim{Node: "w-01", WorkflowID: maintenance.WorkflowID, RunID: "r-1", Alive: true}, false},
		"a dead maintenance of another node":             {scheduler, claim{Node: "w-02", WorkflowID: maintenance.WorkflowID, RunID: "r-1"}, false},
		"a remediation that holds a slot":                {scheduler, claim{WorkflowID: repair.WorkflowID, RunID: "r-1"}, true},
		"the node of a remediation, for a scheduler":     {scheduler, claim{Node: "w-01", WorkflowID: repair.WorkflowID, RunID: "r-1"}, false},
		"a check, for the scheduler":                     {scheduler, claim{WorkflowID: check.WorkflowID}, false},
		"its slot of the control plane":                  {repair, claim{Check: "workers", Node: "w-01", Request: "r-1/1"}, true},
		"another's slot of the control plane":            {repair, claim{Check: "workers", Node: "w-01", Request: "r-2/1"}, false},
		"a maintenance of another cluster":               {scheduler, claim{Node: "w-01", WorkflowID: unnamed.WorkflowID, RunID: "r-1"}, false},
		"no maintenance, for the scheduler":              {scheduler, claim{Node: "w-01", RunID: "s-1"}, false},
		"the node of a remediation":                      {repair, claim{Check: "workers", Node: "w-01", RunID: "r-1"}, true},
		"another node of a remediation":                  {repair, claim{Check: "workers", Node: "w-02"}, false},
		"another check":                                  {repair, claim{Check: "control-plane", Node: "w-01"}, false},
		"a check":                                        {check, claim{Check: "workers", RunID: "r-1"}, true},
		"another check's nodes":                          {check, claim{Check: "others", RunID: "r-1"}, false},
		"the node of a transition":                       {transition, claim{Profile: "kernel", Node: "w-01", RunID: "r-1"}, true},
		"another node of a transition":                   {transition, claim{Profile: "kernel", Node: "w-02"}, false},
		"the maintenance of a transition":                {transition, claim{Node: "w-01", Requestor: "profile-kernel"}, true},
		"a maintenance that it did not begin":            {transition, claim{Node: "w-01", Requestor: "kernel"}, false},
		"the intent of a plan":                           {plan, claim{Plan: "q3", RunID: "r-1"}, true},
		"the intent of another plan":                     {plan, claim{Plan: "q4", RunID: "r-1"}, false},
		"any node, for the doctor":                       {Identity{Type: api.DoctorType, WorkflowID: "east/drydock-doctor", Cluster: "east"}, claim{Node: "w-02", Scheduler: "east/drydock-scheduler"}, true},
		"a dead maintenance, for a scheduler of his own": {Identity{Type: api.SchedulerType, WorkflowID: "east/obliging", Cluster: "east"}, claim{Node: "w-01", WorkflowID: maintenance.WorkflowID, RunID: "r-1"}, false},
		"any node, for the profiles":                     {Identity{Type: api.ProfilesType, WorkflowID: api.ProfilesID("east"), Cluster: "east"}, claim{Node: "w-02"}, true},
		"any node, for profiles of his own":              {Identity{Type: api.ProfilesType, WorkflowID: "east/obliging", Cluster: "east"}, claim{Node: "w-02"}, false},
		"a scheduler that is none":                       {Identity{Type: api.DoctorType, WorkflowID: "east/drydock-doctor", Cluster: "east"}, claim{Scheduler: "payroll"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.who.Check(c.input)
			if isForeign(err) == c.allowed || c.allowed && err != nil {
				t.Errorf("got %v, want allowed: %v", err, c.allowed)
			}
		})
	}
}

func TestAnActivityComparesItsInputWithTheServersWord(t *testing.T) {
	described := &workflowservice.DescribeWorkflowExecutionResponse{
		ExecutionConfig: (&server{queue: "drydock"}).response().ExecutionConfig,
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Type: &commonpb.WorkflowType{Name: api.NodeMaintenanceType}, FirstRunId: "r-0",
			ParentExecution: &commonpb.WorkflowExecution{WorkflowId: "maintenance-plan/q3"},
		},
	}
	callers := New(&server{answer: described}, "drydock")
	for _, c := range []struct {
		input   claim
		refused bool
	}{
		{claim{Node: "w-01", RunID: "r-0", Parent: "maintenance-plan/q3"}, false},
		{claim{Node: "w-01", RunID: "r-1"}, true},
		{claim{Node: "w-02", RunID: "r-0"}, true},
		{claim{Node: "w-01", RunID: "r-0", Parent: "maintenance-plan/q4"}, true},
	} {
		if err := callers.check(t.Context(), call("ReleaseNode", api.NodeMaintenanceType), c.input); isForeign(err) != c.refused || !c.refused && err != nil {
			t.Errorf("%+v: got %v, want refused: %v", c.input, err, c.refused)
		}
	}
}

func TestARefusedInputDoesNotReachItsActivity(t *testing.T) {
	for node, refused := range map[string]bool{"w-01": false, "w-02": true} {
		ran := false
		env := activitytest.Environment()
		activitytest.CalledBy(env, task(api.NodeMaintenanceType, "node-maintenance/w-01/kernel", "drydock-drains"),
			New(&server{kind: api.NodeMaintenanceType, queue: "drydock"}, "drydock"))
		do := func(context.Context, claim) error {
			ran = true
			return nil
		}
		env.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: "ReleaseNode"})
		if _, err := env.ExecuteActivity("ReleaseNode", claim{Node: node}); isForeign(err) != refused || ran == refused {
			t.Errorf("node %s: %v, ran: %v", node, err, ran)
		}
	}
}

// TestAnUnknownRunIsRefusedInTime: a server that does not know the run yet, which another region has, must not end a workflow of ours.
func TestAnUnknownRunIsRefusedInTime(t *testing.T) {
	callers := New(&server{err: serviceerror.NewNotFound("no such run")}, "drydock")
	info := call("ReleaseNode", api.NodeMaintenanceType)
	for attempt, refused := range map[int32]bool{1: false, patience - 1: false, patience: true, 100: true} {
		info.Attempt = attempt
		if err := callers.check(t.Context(), info); err == nil || isForeign(err) != refused {
			t.Errorf("attempt %d: got %v, want refused: %v", attempt, err, refused)
		}
	}
	info.Attempt = 100
	callers = New(&server{err: serviceerror.NewUnavailable("down")}, "drydock")
	if err := callers.check(t.Context(), info); err == nil || isForeign(err) {
		t.Errorf("a server that does not answer refuses: %v", err)
	}
}
