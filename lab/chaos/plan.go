package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// planning is what a plan, in place of single maintenances, does in a step.
type planning string

const (
	// rolls: it goes over the attempt's nodes.
	rolls planning = "rolls"
	// anew: it is reset while a node is Ready, and has to find out what it had begun.
	anew planning = "anew"
	// hears: the work on the first node fails, of which its maintenance tells the plan, and is done afterwards.
	hears planning = "hears"
	// together: it takes all nodes through its stages together, in lockstep, each by a maintenance that plans share.
	together planning = "together"
)

// plans means that a plan begins the maintenances of the attempt.
func (a *attempt) plans() bool { return a.cell.step.plan != "" || a.cell.step.calls.plans() }

// planName is the name of the plan that the attempt has, where it has one.
func (a *attempt) planName() string { return fmt.Sprintf("%s-%d", chaosRequestor, a.runs) }

func (a *attempt) planID() string { return api.PlanID(a.cluster, a.planName()) }

// roll has a plan maintain the nodes, and waits for its end and theirs.
func (a *attempt) roll(ctx context.Context, fields string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	requestor := a.planName()
	nodes, err := json.Marshal(a.nodes)
	if err != nil {
		return err
	}
	parallel := 2
	if a.cell.step.plan == hears {
		parallel = 1 // a plan that has nothing left to begin ends beside a node that waits for a decision
	}
	input := fmt.Sprintf(`{"nodes":%s,"requestor":%q,"strategy":{"maxParallel":%d,"maxFailures":2},"maintenance":{%s}}`, nodes, requestor, parallel, fields[1:])
	var all []*maintained
	for _, node := range a.nodes {
		all = append(all, a.expect(node, requestor))
	}
	if err := a.start(ctx, input); err != nil {
		return err
	}
	return errors.Join(tend(ctx, a, all), a.planCompletes(ctx))
}

// start starts the plan. The fault may happen before that is done.
func (a *attempt) start(ctx context.Context, input string) error {
	return world.Eventually(ctx, time.Minute, "starting the plan", func() error {
		_, err := a.startWorkflow(ctx, a.planID(), api.MaintenancePlanType, json.RawMessage(input))
		return err
	})
}

// planCompletes waits for the end of the plan, which must be its completion.
func (a *attempt) planCompletes(ctx context.Context) error {
	return world.Eventually(ctx, patience, "the plan has completed", func() error { return a.hasCompleted(ctx) })
}

// hasCompleted says what the plan is where it is not completed.
func (a *attempt) hasCompleted(ctx context.Context) error {
	described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, a.planID(), "")
	if err == nil && described.WorkflowExecutionInfo.Status != enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		err = fmt.Errorf("it is %s: %s", described.WorkflowExecutionInfo.Status, a.planWords(ctx))
	}
	return err
}

// planStatus asks the plan how it stands.
func (a *attempt) planStatus(ctx context.Context) (api.PlanStatus, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return world.Ask[api.PlanStatus](ctx, a.temporal.Client, a.planID(), api.QueryStatus, api.PlanStatusRequest{})
}

// planWords tells a person how the plan stands.
func (a *attempt) planWords(ctx context.Context) string {
	status, err := a.planStatus(ctx)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s, waiting for %q, %s, nodes %+v", status.Phase, status.WaitingFor, status.Failure, status.Nodes)
}

// identify finds out which maintenance the plan began.
func (a *attempt) identify(ctx context.Context, m *maintained) {
	if m.first != "" || !a.plans() {
		return
	}
	if described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, m.id, ""); err == nil {
		m.first = described.WorkflowExecutionInfo.FirstRunId
	}
}

// begunOnce looks whether the plan, or an object, began one maintenance of each node, and that was completed once. An object that was deleted
// and created again asks for another.
func (a *attempt) begunOnce(ctx context.Context) error {
	if !a.plans() && !shapeFor(a.cell).objects && a.caller == nil {
		return nil
	}
	var problems []error
	for _, m := range a.maintained() {
		if !m.whole() {
			continue
		}
		firsts, completed, most := map[string]bool{}, 0, 1
		if a.cell.kind == terminateCaller || a.cell.step.calls.again() || a.cell.kind == deleteObject && m.node == a.nodes[0] || a.cell.kind == deleteDefinition {
			most = 2
		}
		page, err := a.temporal.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowId = '%s' AND StartTime >= '%s'", m.id, a.since.UTC().Format(time.RFC3339Nano)),
		})
		if err != nil {
			return err
		}
		for _, e := range page.Executions {
			described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, m.id, e.Execution.RunId)
			if err != nil {
				return err
			}
			firsts[described.WorkflowExecutionInfo.FirstRunId] = true
			if described.WorkflowExecutionInfo.Status == enums.WORKFLOW_EXECUTION_STATUS_COMPLETED {
				completed++
			}
		}
		if len(firsts) < 1 || len(firsts) > most || completed < 1 || completed > most {
			problems = append(problems, fmt.Errorf("%d maintenances of %s were begun, and %d were completed: want %d", len(firsts), m.node, completed, most))
		}
	}
	return errors.Join(problems...)
}

// resetPlan resets the plan, if there is one that runs.
func (a *attempt) resetPlan(ctx context.Context) (done bool, err error) {
	if !a.plans() {
		return false, nil
	}
	described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, a.planID(), "")
	if err != nil || described.WorkflowExecutionInfo.Status != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return false, err
	}
	err = a.reset(ctx, a.planID(), described.WorkflowExecutionInfo.Execution.RunId)
	if errors.Is(err, errNotBegun) {
		return false, nil
	}
	return err == nil, err
}

// toPlan are messages to a plan that nobody who is in their right mind sends.
func toPlan(node string) []message {
	another := newUUID()
	messages := []message{
		{"chaos-knows-no-such-signal", endless()},
		{api.SignalNodeNews, api.NodeNews{Node: node, RunID: another, Held: true, Why: forged}},
		{api.SignalNodeNews, api.NodeNews{Node: endless(), RunID: another, Held: true, Why: endless()}},
		{api.MsgSkip, api.NodeOfPlan{Node: "no-such-node"}}, {api.MsgSkip, api.NodeOfPlan{Node: node, Run: another}},
		{api.MsgRetry, api.NodeOfPlan{Node: node, Message: api.Message{By: endless(), Comment: endless()}}},
		{api.MsgCancel, api.Cancel{Release: true}}, {api.MsgCancel, json.RawMessage(`{"release":"yes"}`)},
		{api.MsgPause, forged}, {api.MsgPause, api.Simple{Run: another}}, {api.MsgResume, nil}, {api.MsgApprove, nil},
	}
	return append(messages, nonsense(api.SignalNodeNews)...)
}

// mustFail means that the work on a node is to fail before it is done, and has it fail once the node is Ready.
func (a *attempt) mustFail(ctx context.Context, m *maintained) bool {
	if a.cell.step.plan != hears || m.node != a.nodes[0] || !m.whole() || a.trap.place() != "" {
		return false
	}
	if time.Since(m.failed) > doneAgain && a.isReady(m) &&
		a.temporal.Client.SignalWorkflow(ctx, m.id, "", api.MsgFailed, api.FailedMessage{Run: m.first, Reason: "chaos"}) == nil {
		m.failed = time.Now()
	}
	return true
}
