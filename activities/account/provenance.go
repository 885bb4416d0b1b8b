package account

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
)

const (
	// maxRead bounds the events that are read for one record, and maxProven the runs.
	maxRead   = 100_000
	maxProven = 64
)

// chain reads the runs of a workflow from the last one back to the first. Each run but the first was given its state by the run before
// it: that state is as good as a history where a worker of ours wrote it.
type chain struct {
	from        client.Client
	ref         api.Reference
	kind, queue string
	read        int
	self        *execution.Self
	// tasks counts the workflow tasks by the verified principal that answered them; empty is nobody.
	tasks map[string]int
}

// Proof is what was found out about the runs of a workflow that has ended. It takes whole histories, and is not made again by
// every attempt to write a record.
type Proof struct {
	// Last is the last run, of which it was; empty if there is no proof yet.
	Last       string            `json:"last,omitempty"`
	Provenance record.Provenance `json:"provenance,omitzero"`
	// Broken says which run no worker of ours can have written: nothing that comes from there is true.
	Broken string `json:"broken,omitempty"`

	self *execution.Self
}

// NewProof is no proof yet. Self knows whom the server takes this worker for.
func NewProof(self *execution.Self) Proof { return Proof{self: self} }

// prove finds out what the server vouches for of all that was handed from run to run, unless that is known of this last run.
func (p *Proof) prove(ctx context.Context, from client.Client, ref api.Reference, last *workflowpb.WorkflowExecutionInfo) error {
	run := last.GetExecution().GetRunId()
	if p.Last == run {
		return nil
	}
	c := chain{
		from: from, ref: ref, kind: last.GetType().GetName(), queue: activity.GetInfo(ctx).TaskQueue, self: p.self, tasks: map[string]int{},
	}
	proven, broken, err := c.prove(ctx, run)
	if err == nil {
		p.Last, p.Provenance, p.Broken = run, proven, broken
	}
	return err
}

// prove begins with the last run.
func (c *chain) prove(ctx context.Context, run string) (p record.Provenance, broken string, err error) {
	var next *historypb.WorkflowExecutionStartedEventAttributes
	for run != "" {
		if p.Runs == maxProven || c.read >= maxRead {
			p.Claimed = append(p.Claimed, fmt.Sprintf("run %s and those before it were not read: there are too many", run))
			break
		}
		h, err := c.history(ctx, run)
		var notFound *serviceerror.NotFound
		switch {
		case errors.As(err, &notFound) && p.Runs > 0:
			p.Claimed = append(p.Claimed, fmt.Sprintf("run %s is not kept any more: what it handed on cannot be checked", run))
			run = ""
			continue
		case err != nil:
			return p, "", err
		}
		if broken = c.broken(run, h, next); broken != "" {
			return p, broken, nil
		}
		p.Runs++
		if h.partly {
			p.Claimed = append(p.Claimed, fmt.Sprintf("run %s was read in part: it is too long", run))
		}
		run, next = before(h.started), h.started
	}
	return p, "", c.answered(ctx, &p)
}

// before is the run that handed a run its state, empty if none did: a retry and a cron schedule begin with the first input again.
func before(started *historypb.WorkflowExecutionStartedEventAttributes) string {
	if started.GetInitiator() != enums.CONTINUE_AS_NEW_INITIATOR_WORKFLOW {
		return ""
	}
	return started.GetContinuedExecutionRunId()
}

// runHistory is the part of a run's history that is read.
type runHistory struct {
	started *historypb.WorkflowExecutionStartedEventAttributes
	end     *historypb.HistoryEvent
	partly  bool
}

func (c *chain) history(ctx context.Context, run string) (h runHistory, err error) {
	events := c.from.GetWorkflowHistory(ctx, c.ref.WorkflowID, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			return h, fmt.Errorf("reading the history of workflow %s, run %s: %w", c.ref.WorkflowID, run, err)
		}
		if started := event.GetWorkflowExecutionStartedEventAttributes(); started != nil {
			h.started = started
		}
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			c.tasks[execution.WorkerOf(event)]++
		}
		h.end = event
		if c.read++; c.read > maxRead {
			h.partly = true
			break
		}
	}
	if h.started == nil {
		return h, fmt.Errorf("the history of workflow %s, run %s, has no beginning", c.ref.WorkflowID, run)
	}
	return h, nil
}

// broken returns why no worker of ours can have written what a run passed to the next one, empty if one can.
func (c *chain) broken(run string, h runHistory, next *historypb.WorkflowExecutionStartedEventAttributes) string {
	kind, queue := h.started.GetWorkflowType().GetName(), h.started.GetTaskQueue().GetName()
	switch passed := h.end.GetWorkflowExecutionContinuedAsNewEventAttributes(); {
	case kind != c.kind:
		return fmt.Sprintf("run %s is a %s, and not a %s", run, kind, c.kind)
	case queue != c.queue:
		return fmt.Sprintf("run %s is on task queue %q, and not on %q", run, queue, c.queue)
	case next != nil && !h.partly && (passed == nil || !proto.Equal(passed.GetInput(), next.GetInput())):
		return fmt.Sprintf("run %s did not pass on what the run after it was given", run)
	}
	return ""
}

// answered adds who answered the workflow tasks, as far as the server verified it: anyone who polls the task queue can answer one.
func (c *chain) answered(ctx context.Context, p *record.Provenance) error {
	if c.tasks[""] > 0 {
		p.Claimed = append(p.Claimed, "the server did not verify who answered the workflow tasks")
	}
	delete(c.tasks, "")
	if len(c.tasks) == 0 {
		return nil
	}
	own, err := c.self.Principal(ctx, c.from, func(principal string) bool { return c.tasks[principal] > 0 })
	if err != nil {
		return err
	}
	if c.tasks[own] > 0 {
		p.Worker = own
		delete(c.tasks, own)
	}
	if others := slices.Sorted(maps.Keys(c.tasks)); len(others) > 0 {
		p.Claimed = append(p.Claimed, fmt.Sprintf("workflow tasks were answered by %s; the worker that wrote this is %q", strings.Join(others, ", "), own))
	}
	return nil
}
