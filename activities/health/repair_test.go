package health

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/mock"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/mocks"
	"google.golang.org/protobuf/types/known/timestamppb"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	rules "drydock.dev/drydock/rules/health"
)

const repairID = "node-maintenance/n1/health-workers"

// maintenances are those of a namespace: at most one, with a status that it says.
type maintenances struct {
	*mocks.Client
	status  string
	running bool
	inputs  []string
	sent    []string
}

func newMaintenances() *maintenances {
	m := &maintenances{Client: activitytest.Granting()}
	m.On("DescribeWorkflowExecution", mock.Anything, repairID, "").Return(
		func(context.Context, string, string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
			if m.status == "" {
				return nil, serviceerror.NewNotFound("there is none")
			}
			status := enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
			if m.running {
				status = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
			}
			return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: repairID, RunId: "later"}, FirstRunId: "first", Status: status, StartTime: timestamppb.New(since.Time),
			}}, nil
		})
	m.On("QueryWorkflow", mock.Anything, repairID, "", api.QueryStatus).Return(
		func(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
			value := &mocks.Value{}
			value.On("Get", mock.Anything).Return(func(into any) error { return json.Unmarshal([]byte(m.status), into) })
			return value, nil
		}, nil)
	m.On("ExecuteWorkflow", mock.Anything, mock.Anything, api.NodeMaintenanceType, mock.Anything).Return(
		func(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
			if m.running {
				return nil, serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", "later")
			}
			text, err := json.Marshal(args[0])
			m.inputs = append(m.inputs, o.ID+" "+string(text))
			run := &mocks.WorkflowRun{}
			run.On("GetRunID").Return("begun")
			return run, err
		})
	m.On("SignalWorkflow", mock.Anything, repairID, "", mock.Anything, mock.Anything).Return(
		func(_ context.Context, _, _, name string, payload any) error {
			if !m.running {
				return serviceerror.NewNotFound("it does not run")
			}
			text, err := json.Marshal(payload)
			m.sent = append(m.sent, name+" "+string(text))
			return err
		})
	return m
}

const (
	ours   = `{"phase":"Draining","spec":{"remediation":{"check":"workers"}}}`
	theirs = `{"phase":"Draining","spec":{}}`
)

func TestAMaintenanceIsBegunForANodeAsItIsNow(t *testing.T) {
	ill := []rules.UnhealthyCondition{{Type: "Ready", Status: "Unknown"}}
	for name, c := range map[string]struct {
		prepare func(s *site, m *maintenances, in *RepairInput)
		want    func(BegunRepair) bool
		begins  bool
	}{
		"an ill node": {func(*site, *maintenances, *RepairInput) {}, func(b BegunRepair) bool { return b.RunID == "begun" && !b.Adopted }, true},
		"one that runs": {func(_ *site, m *maintenances, _ *RepairInput) { m.running, m.status = true, ours },
			func(b BegunRepair) bool { return b.RunID == "first" && b.Adopted && b.StartedAt.Equal(since.Time) }, false},
		"somebody else's": {func(_ *site, m *maintenances, _ *RepairInput) { m.running, m.status = true, theirs },
			func(b BegunRepair) bool { return strings.Contains(b.Refused, "drydock cancel n1") }, false},
		"no node":                   {func(_ *site, _ *maintenances, in *RepairInput) { in.Node = "n9" }, func(b BegunRepair) bool { return b.Refused == "the node is gone" }, false},
		"another node of its name":  {func(_ *site, _ *maintenances, in *RepairInput) { in.UID = "uid-0" }, func(b BegunRepair) bool { return b.Replaced && b.RunID == "" }, false},
		"a node that has recovered": {func(s *site, _ *maintenances, _ *RepairInput) { s.server.Set(worker("n1", "True")) }, func(b BegunRepair) bool { return b.Refused == recovered }, false},
		"a recovery after a lost word": {func(s *site, m *maintenances, _ *RepairInput) {
			s.server.Set(worker("n1", "True"))
			m.running, m.status = true, ours
		}, func(b BegunRepair) bool { return b.RunID == "first" }, false},
		"an excluded node": {func(s *site, _ *maintenances, _ *RepairInput) {
			s.server.Set(worker("n1", "Unknown", activitytest.Labelled(k8s.ExcludeLabel, "true")))
		}, func(b BegunRepair) bool { return strings.Contains(b.Refused, k8s.ExcludeLabel) }, false},
		"a node under maintenance": {func(s *site, _ *maintenances, _ *RepairInput) {
			s.server.Set(worker("n1", "Unknown", activitytest.Marked("node-maintenance/n1/ops", "r")))
		}, func(b BegunRepair) bool { return strings.Contains(b.Refused, "node-maintenance/n1/ops") }, false},
		"the control plane, without a slot": {func(_ *site, _ *maintenances, in *RepairInput) { in.ControlPlane, in.Slot = true, "" },
			func(b BegunRepair) bool { return b.NeedsSlot && b.RunID == "" }, false},
		"the control plane": {func(s *site, _ *maintenances, in *RepairInput) {
			in.ControlPlane = true
			s.server.Set(worker("m2", "Unknown", activitytest.Labelled("node-role.kubernetes.io/control-plane", "")))
		}, func(b BegunRepair) bool { return strings.Contains(b.Indispensable, "majority") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, m := newSite(t, worker("n1", "Unknown")), newMaintenances()
			s.acts.Temporal = m
			m.On("DescribeWorkflowExecution", mock.Anything, mock.Anything, "").Return(nil, serviceerror.NewNotFound("there is none"))
			in := RepairInput{Check: "workers", Node: "n1", UID: "uid-1", Slot: "r-run/1", Why: "Ready is Unknown", Conditions: ill,
				Repair: rules.Repair{Input: json.RawMessage(`{"work":"power-off"}`), OutOfService: true}}
			c.prepare(s, m, &in)
			begun, err := activitytest.Call(t, s.acts.BeginRepair, in)
			if err != nil || !c.want(begun) || (len(m.inputs) == 1) != c.begins {
				t.Errorf("%+v, %v, began %q", begun, err, m.inputs)
			}
			want := repairID + ` {"node":"n1","outOfService":true,"reason":"health check workers: Ready is Unknown","remediation":{"check":"workers"},"work":"power-off"}`
			if c.begins && m.inputs[0] != want {
				t.Errorf("began %s, want %s", m.inputs[0], want)
			}
		})
	}
}

func TestTheMaintenanceThatRunsIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		status  string
		running bool
		want    string
	}{"ours": {ours, true, "first"}, "ours has ended": {ours, false, ""}, "somebody else's": {theirs, true, ""}, "none": {"", false, ""}} {
		s, m := newSite(t), newMaintenances()
		s.acts.Temporal, m.status, m.running = m, c.status, c.running
		if found, err := activitytest.Call(t, s.acts.FindRepair, RepairInput{Check: "workers", Node: "n1"}); err != nil || found.RunID != c.want {
			t.Errorf("%s: %+v, %v", name, found, err)
		}
	}
}

func TestAMaintenanceIsSignalledToEnd(t *testing.T) {
	for name, c := range map[string]struct {
		in   EndRepairInput
		runs bool
		want []string
	}{
		"of a healthy node": {EndRepairInput{Healthy: true, Why: "the node is healthy"}, true, []string{
			`cancel {"by":"health check workers","comment":"the node is healthy","beforeReady":true,"run":"first"}`,
			`done {"by":"health check workers","comment":"the node is healthy","run":"first"}`,
		}},
		"whose time is over":  {EndRepairInput{Why: "late"}, true, []string{`cancel {"by":"health check workers","comment":"late","release":true,"run":"first"}`}},
		"that does not run":   {EndRepairInput{Healthy: true}, false, nil},
		"given back, and not": {EndRepairInput{}, false, nil},
	} {
		s, m := newSite(t), newMaintenances()
		s.acts.Temporal, m.running = m, c.runs
		c.in.Check, c.in.Node, c.in.RunID = "workers", "n1", "first"
		env := activitytest.Environment()
		activitytest.CalledBy(env, activitytest.Task{
			Type: api.NodeRemediationType, WorkflowID: api.RemediationID("", "workers", "n1"), Queue: api.DefaultTaskQueue,
		})
		env.RegisterActivity(s.acts.EndRepair)
		_, err := env.ExecuteActivity(s.acts.EndRepair, c.in)
		if err != nil || strings.Join(m.sent, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s: %v, reported %q, want %q", name, err, m.sent, c.want)
		}
	}
}
