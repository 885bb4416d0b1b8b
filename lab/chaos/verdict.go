package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

// verdict is what the nodes, the audit log and the proxies tell of the run.
func (a *attempt) verdict(ctx context.Context) error {
	var problems []error
	for _, node := range a.nodes {
		problems = append(problems, world.Eventually(ctx, patience, "node "+node+" is as it was", func() error {
			after, err := a.imprint(ctx, node)
			if err == nil && after != a.undamaged[node] {
				err = fmt.Errorf("before %s, after %s", a.undamaged[node], after)
			}
			return err
		}))
	}
	problems = append(problems, a.nothingLeft(ctx))
	most, err := a.observer.mostHeld(a.name)
	if want := shapeFor(a.cell).slots; err == nil && most != want {
		err = fmt.Errorf("%d nodes were held at one instant, want %d", most, want)
	}
	problems = append(problems, err)
	ended, err := witness.EndedPods(a.audit, a.from, a.name)
	problems = append(problems, err)
	least := 6
	if a.cell.step.says != nil {
		least-- // it may be one that is skipped
	}
	switch wanted := shapeFor(a.cell); {
	case wanted.profiles && a.cell.step.profile == drains:
		least = 4 // agents stay, and the pool is not on the node that is first
	case wanted.profiles:
		least = 0
	case wanted.heals != "":
		least = 0
	case wanted.slots > 1:
		least = lockstepPods
	}
	if err == nil && len(ended) < least {
		problems = append(problems, fmt.Errorf("only %d pods were evicted or deleted", len(ended)))
	}
	accepted := map[string]int{}
	for _, e := range ended {
		uid, known := a.api.uidOf(e.AuditID)
		if !known {
			problems = append(problems, fmt.Errorf("the end of pod %s was not asked for through the proxy with its UID", e.Object.Name))
			continue
		}
		if accepted[uid]++; accepted[uid] > 1 && !a.observer.wasLeaving(uid, e.Received) {
			problems = append(problems, fmt.Errorf("the end of pod %s was accepted a second time while it was not terminating", e.Object.Name))
		}
	}
	return errors.Join(problems...)
}

// restWithin bounds the work that outlives a maintenance: what a killed worker was at is tried again after a minute or two.
const restWithin = 4 * time.Minute

// nothingLeft waits until no workflow but the scheduler is open and no slot is held or asked for, and then judges what
// those outside were told.
func (a *attempt) nothingLeft(ctx context.Context) error {
	err := world.Eventually(ctx, restWithin, "no workflow is open, and no slot held", func() error {
		return errors.Join(a.openWorkflows(ctx), a.openSlots(ctx))
	})
	problems := []error{err}
	for _, m := range a.maintained() {
		described, err := a.temporal.Client.DescribeWorkflowExecution(ctx, m.id, "")
		if err != nil {
			problems = append(problems, err)
			continue
		}
		problems = append(problems, a.receiver.heard(described.WorkflowExecutionInfo.FirstRunId, m.hooks()), a.allSettled(ctx, m))
	}
	return errors.Join(problems...)
}

// allSettled reports messages of which a maintenance that has ended does not know what became.
func (l *lane) allSettled(ctx context.Context, m maintained) error {
	status, err := world.Ask[api.Status](ctx, l.temporal.Client, m.id, api.QueryStatus)
	if err != nil {
		return fmt.Errorf("asking the maintenance of %s that has ended: %w", m.node, err)
	}
	for _, message := range status.Messages {
		if message.Outcome == api.Judged {
			return fmt.Errorf("nobody knows what became of %s to %s: %s", message.Name, m.node, message.Effect)
		}
	}
	return nil
}

func (l *lane) openWorkflows(ctx context.Context) error {
	open, err := l.running(ctx)
	open = slices.DeleteFunc(open, func(id string) bool { return stays(l, id) })
	if err == nil && len(open) > 0 {
		err = fmt.Errorf("%d are: %s", len(open), strings.Join(open[:min(len(open), 5)], ", "))
	}
	return err
}

// running are the IDs of the workflows of the lane's Drydock that run.
func (l *lane) running(ctx context.Context) (ids []string, err error) {
	page, err := l.temporal.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", l.queue()),
	})
	for _, e := range page.GetExecutions() {
		ids = append(ids, e.Execution.WorkflowId)
	}
	return ids, err
}

// stays reports a workflow that is always open.
func stays(l *lane, id string) bool {
	switch id {
	case api.SchedulerID(l.cluster):
		return true
	case api.HealthCheckID(l.cluster, checkName):
		return l.shape.heals != ""
	case api.ProfilesID(l.cluster):
		return l.shape.profiles
	}
	return false
}

func (l *lane) openSlots(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	state, err := world.Ask[api.State](ctx, l.temporal.Client, api.SchedulerID(l.cluster), api.QueryState)
	if err != nil {
		return err
	}
	if state.Rebuilding || len(state.Holders) > 0 || state.PendingAll > 0 || state.StraysAll > 0 {
		return fmt.Errorf("the scheduler tells of %d holders, %d that wait, %d stray marks, rebuilding %v",
			len(state.Holders), state.PendingAll, state.StraysAll, state.Rebuilding)
	}
	return nil
}
