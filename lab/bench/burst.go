package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/schedule"
)

// burstNodes are asked for by so many requestors each that the requests are as many as wished.
const burstNodes = 250

// burst is how long the scheduler takes to know of thousands of requests made at once, and why each of them waits; then
// how long it takes to tell each. Those who ask are workflows that nobody works on: what they do costs the scheduler
// nothing, and what it tells them is in their histories.
func (b *bench) burst(ctx context.Context) []Figure {
	worker := must(b.startWorker(ctx, "worker", "scheduler: {maxParallel: 1}\n"))
	defer func() { b.note(worker.Stop(time.Minute)) }()
	id := api.SchedulerID("")
	noError(b.untilIdle(ctx, id))
	idle := b.idleEvents(ctx, id)
	n := b.sizes.burst
	world.Say("burst: %d requests for %d nodes", n, burstNodes)
	asking := make([]api.SlotRequest, n)
	noError(inParallel(ctx, n, requestsAtOnce, func(ctx context.Context, i int) (err error) {
		asking[i], err = b.requester(ctx, i)
		return err
	}))
	began := time.Now()
	noError(inParallel(ctx, n, requestsAtOnce, func(ctx context.Context, i int) error {
		return b.Temporal.Client.SignalWorkflow(ctx, id, "", api.SignalSlotRequest, asking[i])
	}))
	sent := time.Since(began)
	noError(poll(ctx, "all requests to be seen", func() (bool, error) { return b.allExplained(ctx, id, n) }))
	seen := time.Since(began)
	noError(b.untilTold(ctx, asking))
	told := time.Since(began)
	runs, largest := b.schedulerRuns(ctx, id)
	return []Figure{
		atMost(fmt.Sprintf("history of an idle scheduler in %s", idleFor), float64(idle), "events", 0),
		report("burst, requests at once", float64(n), "requests"),
		report("- until all were sent", sent.Seconds(), "s"),
		atMost("- until all are in the state with a reason", seen.Seconds(), "s", 30),
		report("- until each was told", told.Seconds(), "s"),
		report("- runs of the scheduler, one continued as the next", float64(runs), "runs"),
		atMost("- events of the longest of them", float64(largest), "events", 20000),
	}
}

// idleFor is longer than the half minute after which workers look after the scheduler.
const idleFor = 35 * time.Second

// idleEvents is by how much the history of a scheduler grows that has nothing to do.
func (b *bench) idleEvents(ctx context.Context, id string) int64 {
	before := must(b.Temporal.Client.DescribeWorkflowExecution(ctx, id, ""))
	noError(world.Sleep(ctx, idleFor))
	after := must(b.Temporal.Client.DescribeWorkflowExecution(ctx, id, ""))
	return after.WorkflowExecutionInfo.HistoryLength - before.WorkflowExecutionInfo.HistoryLength
}

// requester starts the i-th workflow that asks, and returns what it asks for.
func (b *bench) requester(ctx context.Context, i int) (api.SlotRequest, error) {
	node, requestor := world.NodeName(i%burstNodes), fmt.Sprintf("team-%03d", i/burstNodes)
	run, err := b.Temporal.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: api.MaintenanceID("", node, requestor), TaskQueue: "nobody",
	}, "Requester")
	if err != nil {
		return api.SlotRequest{}, err
	}
	return api.SlotRequest{RunID: run.GetRunID(), Request: schedule.Request{
		ID: run.GetRunID() + "/1", Node: node, Requestor: requestor, Created: time.Now(),
	}}, nil
}

// allExplained reports whether each of n requests holds a slot or is on a page of the state with its reason.
func (b *bench) allExplained(ctx context.Context, id string, n int) (bool, error) {
	seen := map[string]bool{}
	for page := (api.StateRequest{Limit: 1000}); ; {
		state, err := b.stateOf(ctx, id, page)
		if err != nil {
			return false, err
		}
		if state.PendingAll+len(state.Holders) < n {
			return false, nil
		}
		for _, h := range state.Holders {
			seen[h.RequestID] = true
		}
		for _, p := range state.Pending {
			if p.Code == schedule.Unobserved || p.Reason == "" {
				return false, nil
			}
			seen[p.ID] = true
		}
		if page.Offset = state.NextOffset; page.Offset == 0 {
			return len(seen) == n, nil
		}
	}
}

func (b *bench) untilTold(ctx context.Context, asking []api.SlotRequest) error {
	return inParallel(ctx, len(asking), requestsAtOnce, func(ctx context.Context, i int) error {
		id := api.MaintenanceID("", asking[i].Node, asking[i].Requestor)
		return poll(ctx, id+" to be told", func() (bool, error) {
			d, err := b.Temporal.Client.DescribeWorkflowExecution(ctx, id, "")
			// A workflow begins with two events: its start, and a task that waits for a worker.
			return err == nil && d.WorkflowExecutionInfo.HistoryLength > 2, err
		})
	})
}

// schedulerRuns counts the runs, from the last one back to the first, and the events of the longest.
func (b *bench) schedulerRuns(ctx context.Context, id string) (runs int, largest int64) {
	for run := ""; ; {
		d := must(b.Temporal.Client.DescribeWorkflowExecution(ctx, id, run))
		runs++
		largest = max(largest, d.WorkflowExecutionInfo.HistoryLength)
		events := b.Temporal.Client.GetWorkflowHistory(ctx, id, d.WorkflowExecutionInfo.Execution.RunId, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		started := must(events.Next())
		if run = started.GetWorkflowExecutionStartedEventAttributes().GetContinuedExecutionRunId(); run == "" {
			return runs, largest
		}
	}
}
