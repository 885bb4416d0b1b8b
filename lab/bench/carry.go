package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows"
	"drydock.dev/drydock/workflows/scheduler"
)

const (
	carried = 15000
	// carryCluster has a scheduler of its own, and no worker for its activities.
	carryCluster = "carry"
)

// carry has a scheduler continue as new with thousands of requests that wait. Every node and every run has a name that
// a compressor can make nothing of, and so has every requestor or each of fifty.
func (b *bench) carry(ctx context.Context) (figures []Figure) {
	queue := api.TaskQueue(carryCluster, api.DefaultTaskQueue)
	w := worker.New(b.Temporal.Client, queue, worker.Options{LocalActivityWorkerOnly: true, Interceptors: workflows.Interceptors()})
	w.RegisterWorkflowWithOptions(carrying, workflow.RegisterOptions{Name: api.SchedulerType})
	noError(w.Start())
	defer w.Stop()
	for _, c := range []struct {
		name       string
		requestors int
		most       float64
	}{
		{"50 requestors", 50, 5 << 18},
		{"as many requestors", carried, 2 << 20},
	} {
		size, took := carryOnce(ctx, b, queue, c.requestors)
		figures = append(figures,
			atMost(fmt.Sprintf("continue-as-new, %d requests by %s", carried, c.name), float64(size), "bytes", c.most),
			report("- signal to answer by the next run", ms(took), "ms"))
	}
	return figures
}

// carrying is the scheduler from its second run on: in a first one it takes no state from whoever starts it.
func carrying(ctx workflow.Context, state scheduler.State, packed []byte) error {
	if workflow.GetInfo(ctx).ContinuedExecutionRunID == "" {
		return workflow.NewContinueAsNewError(ctx, api.SchedulerType, state, packed)
	}
	return scheduler.Scheduler(ctx, state, packed)
}

func carryOnce(ctx context.Context, b *bench, queue string, requestors int) (size int, took time.Duration) {
	temporal, id := b.Temporal.Client, api.SchedulerID(carryCluster)
	packed, first := packedRequests(requestors)
	state := scheduler.State{
		Limits:  api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(1)}},
		Freezes: []schedule.Freeze{{By: "bench"}}, Rebuilt: true, ContinueAfter: 1,
	}
	starter := must(temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue}, api.SchedulerType, state, packed))
	defer func() { b.note(temporal.TerminateWorkflow(ctx, id, "", "measured")) }()
	run := b.nextRun(ctx, id, starter.GetRunID(), carried)
	began := time.Now()
	noError(temporal.SignalWorkflow(ctx, id, "", api.SignalSlotRelease, api.SlotRelease{RequestID: first}))
	b.nextRun(ctx, id, run, carried-1)
	took = time.Since(began)
	events := temporal.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
	event := must(events.Next())
	return proto.Size(event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetInput()), took
}

// nextRun waits for the run after another one, and for so many requests in its state.
func (b *bench) nextRun(ctx context.Context, id, after string, pending int) (run string) {
	noError(poll(ctx, "the next run", func() (bool, error) {
		d, err := b.Temporal.Client.DescribeWorkflowExecution(ctx, id, "")
		if err != nil || d.WorkflowExecutionInfo.Execution.RunId == after {
			return false, err
		}
		run = d.WorkflowExecutionInfo.Execution.RunId
		state, err := b.stateOf(ctx, id, api.StateRequest{Limit: 1})
		if err == nil && state.PendingAll != pending {
			err = fmt.Errorf("%d requests are left of %d", state.PendingAll, pending)
		}
		return true, err
	}))
	return run
}

func (b *bench) stateOf(ctx context.Context, id string, page api.StateRequest) (api.State, error) {
	return world.Ask[api.State](ctx, b.Temporal.Client, id, api.QueryState, page)
}

// packedRequests are the second argument of the scheduler, and the ID of the first request in it.
func packedRequests(requestors int) (packed []byte, first string) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func(length int) string {
		name := make([]byte, length)
		for i := range name {
			name[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[random.IntN(36)]
		}
		return string(name)
	}
	var names []string
	for range requestors {
		names = append(names, word(40))
	}
	columns := map[string][]any{}
	add := func(column string, value any) { columns[column] = append(columns[column], value) }
	for i := range carried {
		run := fmt.Sprintf("0190b1c%x-%04x-7%03x-8%03x-%012x",
			random.IntN(16), random.IntN(1<<16), random.IntN(1<<12), random.IntN(1<<12), random.Int64N(1<<48))
		if i == 0 {
			first = run + "/1"
		}
		add("id", "/1")
		add("runId", run)
		add("node", word(63))
		add("requestor", names[i%requestors])
		add("priority", 0)
		add("created", time.Unix(1782900000, random.Int64N(int64(time.Hour))).UTC())
		add("told", schedule.Frozen)
		add("seen", false)
	}
	return must(api.Pack(columns)), first
}
