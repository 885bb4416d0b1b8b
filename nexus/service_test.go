package nexus

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nexus-rpc/sdk-go/nexus"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/maintain"
	"drydock.dev/drydock/maintain/maintaintest"
)

func requested(t *testing.T, text string) (r api.NexusRequest) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

const caller = "tenant/bios-2.4"

func TestEachOperationStartsItsWorkflow(t *testing.T) {
	s := &server{config.Nexus{Endpoint: "drydock", Work: []string{"firmware"}}, "c1"}
	requestor, work := maintain.RequestorOf(caller), `"work": {"endpoint": "firmware", "service": "s", "operation": "o"}`
	for _, c := range []struct {
		begin             func(*server, api.NexusRequest, string) (started, error)
		request, kind, id string
	}{
		{(*server).maintainNode, `{"maintenance": {"node": "a"}}`, api.NodeMaintenanceType, "c1/node-maintenance/a/" + requestor},
		{(*server).maintainNode, `{"maintenance": {"node": "a", "requestor": "me"}}`, api.NodeMaintenanceType, "c1/node-maintenance/a/me"},
		{(*server).maintainNode, `{"maintenance": {"node": "a", "requestor": "me"}, ` + work + `}`, api.NexusOperationType, "c1/nexus-operation/a/me"},
		{(*server).checkNode, `{"maintenance": {"node": "a"}}`, api.PreflightType, "c1/preflight/a/r1"},
		{(*server).runPlan, `{"plan": {"nodes": ["a"]}, "name": "bios"}`, api.MaintenancePlanType, "c1/maintenance-plan/bios"},
		{(*server).runPlan, `{"plan": {"nodes": ["a"]}}`, api.MaintenancePlanType, "c1/maintenance-plan/" + maintain.PlanOf(caller)},
		{(*server).runPlan, `{"plan": {"nodes": ["a"]}, "name": "bios", ` + work + `}`, api.NexusOperationType, "c1/nexus-operation//bios"},
	} {
		r := requested(t, c.request)
		err := s.complete(&r, caller)
		var w started
		if err == nil {
			w, err = c.begin(s, r, "r1")
		}
		if err != nil || w.kind != c.kind || w.id != c.id {
			t.Errorf("%s starts %s %s (%v), and not %s %s", c.request, w.kind, w.id, err, c.kind, c.id)
		}
	}
}

func TestARequestThatIsWrongIsRefusedWithItsFields(t *testing.T) {
	s := &server{config.Nexus{Endpoint: "drydock", Work: []string{"firmware"}}, "c1"}
	for _, c := range []struct {
		begin         func(*server, api.NexusRequest, string) (started, error)
		request, want string
	}{
		{(*server).maintainNode, `{}`, "maintenance, plan: one of them"},
		{(*server).maintainNode, `{"maintenance": {}, "plan": {}}`, "maintenance, plan: one of them"},
		{(*server).maintainNode, `{"maintenance": {"node": 1}}`, "maintenance.node"},
		{(*server).maintainNode, `{"maintenance": {"node": "a", "requestor": "/"}}`, "maintenance.requestor"},
		{(*server).maintainNode, `{"maintenance": {"node": "a", "lockstep": true}}`, "lockstep"},
		{(*server).maintainNode, `{"maintenance": {"node": "a", "reportTo": {"workflow": "w", "signal": "done"}}}`, "reportTo.signal"},
		{(*server).maintainNode, `{"maintenance": {"node": "a"}, "awaitDecision": true}`, "awaitDecision"},
		{(*server).maintainNode, `{"maintenance": {"node": "a"}, "work": {"endpoint": "firmware", "service": "s"}}`, "work.operation"},
		{(*server).maintainNode, `{"maintenance": {"node": "a"}, "work": {"endpoint": "other", "service": "s", "operation": "o"}}`, "work.endpoint"},
		{(*server).maintainNode, `{"plan": {"nodes": ["a"]}}`, "maintenance: is missing"},
		{(*server).checkNode, `{"maintenance": {"node": "a"}, "work": {"endpoint": "firmware", "service": "s", "operation": "o"}}`, "work: is of"},
		{(*server).runPlan, `{"maintenance": {"node": "a"}}`, "plan: is missing"},
		{(*server).runPlan, `{"plan": {"nodes": ["a"]}, "name": "A"}`, "name: "},
		{(*server).runPlan, `{"plan": {"nodes": ["a"], "strategy": {"maxParallel": 0}}}`, "strategy.maxParallel"},
	} {
		r := requested(t, c.request)
		err := s.complete(&r, caller)
		if err == nil {
			_, err = c.begin(s, r, "r1")
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, and not %s", c.request, err, c.want)
		}
	}
	r := requested(t, `{"maintenance": {"node": "a"}}`)
	if err := s.complete(&r, ""); err == nil || !strings.Contains(err.Error(), "maintenance.requestor") {
		t.Errorf("nobody is known to call, and %v", err)
	}
}

func TestTheCallerIsKnownByItsLink(t *testing.T) {
	link := temporalnexus.ConvertLinkWorkflowEventToNexusLink(&commonpb.Link_WorkflowEvent{
		Namespace: "tenant", WorkflowId: "bios-2.4", RunId: "r", Reference: &commonpb.Link_WorkflowEvent_EventRef{
			EventRef: &commonpb.Link_WorkflowEvent_EventReference{EventId: 5, EventType: enums.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED},
		},
	})
	if of := callerOf([]nexus.Link{{Type: "other"}, link}); of != caller {
		t.Errorf("it is %q", of)
	}
}

// operations returns a test environment for NexusOperation. The caller's operation in it returns what ends returns.
func operations(t *testing.T, ends func(held api.NexusHeld) error) (*testsuite.TestWorkflowEnvironment, *maintaintest.Maintenances) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the machine may be busy
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "nexus-operation/a/me", TaskQueue: "drydock"})
	maintenances := maintaintest.Register(env)
	service := nexus.NewService("s")
	service.MustRegister(nexus.NewSyncOperation("o", func(_ context.Context, held api.NexusHeld, _ nexus.StartOperationOptions) (string, error) {
		return "", ends(held)
	}))
	env.RegisterNexusService(service)
	env.RegisterWorkflowWithOptions(Operation, workflow.RegisterOptions{Name: api.NexusOperationType})
	return env, maintenances
}

const withWork = `"work": {"endpoint": "e", "service": "s", "operation": "o", "input": {"version": "2.4"}}}`

func TestTheCallersOperationWorksOnTheNode(t *testing.T) {
	env, maintenances := operations(t, func(held api.NexusHeld) error {
		if held.Node != "a" || held.Requestor != "me" || held.WorkflowID != "node-maintenance/a/me" || string(held.Input) != `{"version":"2.4"}` {
			return nexus.NewOperationFailedErrorf("held %+v", held)
		}
		return nil
	})
	env.ExecuteWorkflow(api.NexusOperationType, json.RawMessage(`{"maintenance": {"node": "a", "requestor": "me", "reason": "BIOS"}, `+withWork))
	var result api.NexusResult
	if err := errors.Join(env.GetWorkflowError(), env.GetWorkflowResult(&result)); err != nil || result != (api.NexusResult{Node: "a", Requestor: "me", Phase: api.Completed}) {
		t.Errorf("it ended with %+v, %v", result, err)
	}
	if told := maintenances.Told(); !slices.Equal(told, []string{"a: done"}) {
		t.Errorf("told %q", told)
	}
}

func TestAFailedOperationLeavesTheNodeToADecision(t *testing.T) {
	env, maintenances := operations(t, func(api.NexusHeld) error { return nexus.NewOperationFailedErrorf("wrong checksum") })
	env.ExecuteWorkflow(api.NexusOperationType, json.RawMessage(`{"plan": {"nodes": ["a", "b"], "strategy": {"maxFailures": 2}}, "name": "bios", `+withWork))
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "plan bios ended Incomplete") {
		t.Errorf("it ended with %v", err)
	}
	if told := maintenances.Told(); len(told) != 2 || !strings.Contains(told[0], "a: failed: ") || !strings.Contains(told[1], "wrong checksum") {
		t.Errorf("told %q", told)
	}
}

func TestAnOperationWithoutWorkIsRefused(t *testing.T) {
	env, _ := operations(t, nil)
	env.ExecuteWorkflow(api.NexusOperationType, json.RawMessage(`{"maintenance": {"node": "a", "requestor": "me"}}`))
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "work: is missing") {
		t.Errorf("it ended with %v", err)
	}
}
