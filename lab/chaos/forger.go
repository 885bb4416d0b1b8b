package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	commandpb "go.temporal.io/api/command/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/durationpb"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// subject is what the input of an activity names of its caller. Its name is that of the requestor, the check, the profile or the plan.
type subject struct{ node, name, workflow, run string }

// fields are an input's, by their JSON names.
type fields map[string]any

// with is a copy in which one field is another.
func (f fields) with(name string, value any) fields {
	f = maps.Clone(f)
	f[name] = value
	return f
}

// claim is a call of an activity with a well-formed input that names one thing which is not its caller's.
type claim struct {
	activity string
	input    fields
	// refused is in the text of the refusal; empty is that of an input that names what is another's.
	refused string
}

const (
	// forgedAtOnce bounds the claims under way.
	forgedAtOnce = 8
	// namesAnother, otherSlot, otherSignal and otherTarget are in the texts by which the worker refuses what an input claims.
	namesAnother = "its input names"
	otherSlot    = "is not one of workflow"
	otherSignal  = "sends no signal"
	otherTarget  = "does not send signal"
)

// forgery are workflows of a type of Drydock's on the worker's own task queue, one for each claim. Whoever starts one asks for its first
// task, and calls the activity in the answer to that: the worker's code never decides anything in it.
type forgery struct {
	kind string
	// id is an ID as the type has them.
	id func(cluster, node, name string) string
	// claims are what they call; own is the workflow itself, other is somebody else's maintenance.
	claims func(cluster string, own, other subject) []claim
}

var forgeries = []forgery{
	{api.NodeMaintenanceType, api.MaintenanceID, maintenanceClaims},
	{api.NodeRemediationType, func(cluster, node, name string) string { return api.RemediationID(cluster, name, node) }, remediationClaims},
	{api.ProfileTransitionType, func(cluster, node, name string) string { return api.ProfileTransitionID(cluster, name, node) }, transitionClaims},
	{api.HealthCheckType, func(cluster, _, name string) string { return api.HealthCheckID(cluster, name) }, checkClaims},
	{api.MaintenancePlanType, func(cluster, _, name string) string { return api.PlanID(cluster, name) }, planClaims},
	{api.SchedulerType, func(cluster, _, name string) string { return cluster + "/" + name }, schedulerClaims},
}

func maintenanceClaims(cluster string, own, other subject) []claim {
	slot := fields{"scheduler": api.SchedulerID(cluster), "requestId": own.run + "/1"}
	specification := fields{"node": own.node, "requestor": own.name}
	node := fields{"node": own.node, "runId": own.run}
	hold := node.with("requestor", own.name).with("slot", slot).with("maintenance", specification).with("cordon", true).with("phase", api.Cordoning)
	seen := fields{"node": own.node, "requestor": own.name, "workflowID": own.workflow, "runID": own.run}
	hook := fields{"hook": "after-drain", "key": forged, "subject": seen}
	work := fields{"work": reboots, "key": forged, "subject": seen.with("node", other.node)}
	claims := []claim{
		{activity: "HoldNode", input: hold.with("node", other.node)},
		{activity: "HoldNode", input: hold.with("requestor", other.name)},
		{activity: "HoldNode", input: hold.with("runId", other.run)},
		{activity: "HoldNode", input: hold.with("maintenance", specification.with("node", other.node))},
		{activity: "HoldNode", input: hold.with("maintenance", specification.with("requestor", other.name))},
		{activity: "HoldNode", input: hold.with("slot", slot.with("requestId", other.run+"/1")), refused: otherSlot},
		{activity: "HoldNode", input: hold.with("slot", slot.with("scheduler", other.workflow))},
		{activity: "AskSlot", input: slot.with("requestId", other.run+"/1"), refused: otherSlot},
		{activity: "Drain", input: node.with("runId", other.run)},
		{activity: "ReleaseNode", input: node.with("runId", other.run)},
		{activity: "ReleaseNode", input: node.with("workflowId", other.workflow)},
		{activity: "ReleaseNode", input: node.with("plan", fields{"workflowId": api.PlanID(cluster, forged), "name": api.SignalNodeNews})},
		{activity: "ReleaseNode", input: node.with("then", fields{"workflowId": other.workflow, "name": api.MsgDone}), refused: otherSignal},
		{activity: "CallHook", input: hook.with("subject", seen.with("node", other.node))},
		{activity: "CallHook", input: hook.with("subject", seen.with("requestor", other.name))},
		{activity: "CallHook", input: hook.with("subject", seen.with("workflowID", other.workflow))},
		{activity: "Validate", input: fields{"key": forged, "subject": seen.with("runID", other.run)}},
		{activity: "BeginWork", input: work},
		{activity: "EndWork", input: work},
		{activity: "JudgeAmendment", input: fields{"maintenance": specification.with("node", other.node)}},
	}
	for _, name := range []string{
		"Drain", "ReleaseNode", "AnnouncePhase", "ShowConditions", "Untaint", "WaitForPods", "FindPod", "TakeOutOfService", "AwaitOutOfService",
	} {
		claims = append(claims, claim{activity: name, input: node.with("node", other.node)})
	}
	return claims
}

func remediationClaims(_ string, own, other subject) []claim {
	of := fields{"check": own.name, "node": own.node, "runId": own.run}
	claims := []claim{
		{activity: "EnsureObject", input: of.with("runId", other.run)},
		{activity: "EnsureObject", input: of.with("slot", other.run+"/1"), refused: otherSlot},
		{activity: "BeginRepair", input: of.with("slot", other.run+"/1"), refused: otherSlot},
		{activity: "MarkObjects", input: fields{"check": checkName}},
	}
	for _, name := range []string{"EnsureObject", "TakeLease", "BeginRepair", "EndRepair", "WatchRemediation", "RemoveObjects"} {
		claims = append(claims, claim{activity: name, input: of.with("node", other.node)}, claim{activity: name, input: of.with("check", checkName)})
	}
	return claims
}

func transitionClaims(_ string, own, other subject) []claim {
	of := fields{"profile": own.name, "node": own.node, "runId": own.run}
	claims := []claim{
		{activity: "CarryTransition", input: of.with("runId", other.run)},
		{activity: "EndProfileMaintenance", input: fields{"node": own.node, "requestor": other.name}},
		{activity: "Drain", input: fields{"node": other.node, "runId": own.run}},
	}
	for _, name := range []string{"CarryTransition", "RunTriggerJob", "MaintainForProfile"} {
		claims = append(claims, claim{activity: name, input: of.with("node", other.node)}, claim{activity: name, input: of.with("profile", drains)})
	}
	return claims
}

func checkClaims(_ string, own, other subject) []claim {
	return []claim{
		{activity: "WatchHealth", input: fields{"check": checkName, "runId": own.run}},
		{activity: "WatchHealth", input: fields{"check": own.name, "runId": other.run}},
		{activity: "FindRemediations", input: fields{"check": checkName}},
	}
}

func planClaims(cluster string, own, other subject) []claim {
	intent := fields{"name": own.name, "runId": own.run, "stage": "Cordon", "nodes": []string{other.node}}
	send := fields{"lockstep": api.LockstepID(cluster), "intent": intent}
	return []claim{
		{activity: "SendIntent", input: send.with("intent", intent.with("name", chaosRequestor))},
		{activity: "SendIntent", input: send.with("intent", intent.with("runId", other.run))},
		{activity: "SendIntent", input: send.with("lockstep", other.workflow), refused: otherTarget},
		{activity: "FindBegun", input: fields{"runId": other.run, "requestor": own.name}},
	}
}

// schedulerClaims are of a second scheduler: the cluster's own runs, and under another ID none acts.
func schedulerClaims(_ string, own, other subject) []claim {
	release := fields{"node": other.node, "workflowId": other.workflow, "runId": other.run}
	return []claim{
		{activity: "ReleaseNode", input: release, refused: "acts on nothing"},
		{activity: "ReleaseNode", input: release.with("orphan", true).with("node", own.node), refused: "acts on nothing"},
		{activity: "ReleaseNode", input: release.with("orphan", true), refused: "acts on nothing"},
	}
}

// forge sends all claims of all forgeries, and returns those that were not refused.
func forge(ctx context.Context, a *attempt) error {
	ctx, cancel := context.WithTimeout(ctx, 2*refusesWithin)
	defer cancel()
	other := subject{node: a.nodes[0], name: "somebody", workflow: api.MaintenanceID(a.cluster, a.nodes[0], "somebody"), run: newUUID()}
	running, _, err := a.executions(ctx)
	if err != nil {
		return err
	}
	if len(running) > 0 {
		other = subject{node: running[0].node, name: running[0].requestor, workflow: running[0].id, run: running[0].first}
	}
	node := a.nodes[0]
	if node == other.node {
		node = a.nodes[1]
	}
	var mu sync.Mutex
	var problems []error
	var sending errgroup.Group
	sending.SetLimit(forgedAtOnce)
	for _, f := range forgeries {
		for i := range f.claims(a.cluster, subject{}, subject{}) {
			sending.Go(func() error {
				if err := f.send(ctx, a, i, node, other); err != nil {
					mu.Lock()
					defer mu.Unlock()
					problems = append(problems, fmt.Errorf("claim %d of a forged %s: %w", i, f.kind, err))
				}
				return nil
			})
		}
	}
	_ = sending.Wait() // it never fails
	return errors.Join(problems...)
}

// send starts a workflow that makes one claim, and compares how the activity ended with what the claim deserves.
func (f forgery) send(ctx context.Context, a *attempt, i int, node string, other subject) error {
	service, queue := a.temporal.Client.WorkflowService(), &taskqueuepb.TaskQueue{Name: a.queue()}
	own := subject{node: node, name: fmt.Sprintf("%s-%d", forged, i)}
	own.workflow = f.id(a.cluster, own.node, own.name)
	started, err := service.StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowId: own.workflow, WorkflowType: &commonpb.WorkflowType{Name: f.kind}, TaskQueue: queue,
		Identity: intrudes, RequestId: newUUID(), WorkflowRunTimeout: durationpb.New(refusesWithin), RequestEagerExecution: true,
	})
	if err != nil {
		return err
	}
	own.run = started.GetRunId()
	// The worker gets its next task, and cannot make sense of it: it may have failed the workflow by now.
	defer func() {
		_ = a.temporal.Client.TerminateWorkflow(context.WithoutCancel(ctx), own.workflow, own.run, "chaos: it was forged")
	}()
	if started.GetEagerWorkflowTask() == nil {
		return errors.New("the server did not hand out its first task to who started it")
	}
	c := f.claims(a.cluster, own, other)[i]
	input, err := converter.GetDefaultDataConverter().ToPayloads(c.input)
	if err != nil {
		return err
	}
	if _, err := service.RespondWorkflowTaskCompleted(ctx, &workflowservice.RespondWorkflowTaskCompletedRequest{
		Namespace: client.DefaultNamespace, Identity: intrudes, TaskToken: started.GetEagerWorkflowTask().GetTaskToken(),
		Commands: []*commandpb.Command{{
			CommandType: enums.COMMAND_TYPE_SCHEDULE_ACTIVITY_TASK,
			Attributes: &commandpb.Command_ScheduleActivityTaskCommandAttributes{ScheduleActivityTaskCommandAttributes: &commandpb.ScheduleActivityTaskCommandAttributes{
				ActivityId: forged, ActivityType: &commonpb.ActivityType{Name: c.activity}, TaskQueue: queue, Input: input,
				ScheduleToCloseTimeout: durationpb.New(refusesWithin), StartToCloseTimeout: durationpb.New(attemptWithin),
			}},
		}},
	}); err != nil {
		return err
	}
	var end *historypb.HistoryEvent
	err = world.Eventually(ctx, refusesWithin, "activity "+c.activity+" ends", func() (err error) {
		end, err = activityEnd(ctx, a.temporal.Client, own.workflow, own.run)
		return err
	})
	if err == nil {
		err = c.isRefused(end)
	}
	if err != nil {
		return fmt.Errorf("%s with %v: %w", c.activity, c.input, err)
	}
	return nil
}

// activityEnd is the event with which the activity of a run has ended.
func activityEnd(ctx context.Context, temporal client.Client, id, run string) (*historypb.HistoryEvent, error) {
	for history := temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); history.HasNext(); {
		event, err := history.Next()
		if err != nil {
			return nil, err
		}
		switch event.GetEventType() {
		case enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED, enums.EVENT_TYPE_ACTIVITY_TASK_FAILED, enums.EVENT_TYPE_ACTIVITY_TASK_TIMED_OUT:
			return event, nil
		}
	}
	return nil, errors.New("it has not")
}

// isRefused compares how the activity ended with what the claim deserves.
func (c claim) isRefused(end *historypb.HistoryEvent) error {
	failure := end.GetActivityTaskFailedEventAttributes().GetFailure()
	kind, text := failure.GetApplicationFailureInfo().GetType(), cmp.Or(c.refused, namesAnother)
	if kind == api.ErrorForeignCaller && strings.Contains(failure.GetMessage(), text) {
		return nil
	}
	return fmt.Errorf("got %s %s %q, want %s: ... %s", end.GetEventType(), kind, failure.GetMessage(), api.ErrorForeignCaller, text)
}
