package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

// costCard is what one maintenance with the default input of an empty node costs, the scheduler's share included:
// history events, billable actions as Temporal Cloud counts them, and requests to the API server beyond its watches.
func (b *bench) costCard(ctx context.Context) []Figure {
	world.Say("cost card of one maintenance")
	c := &costs{bench: b, scheduler: api.SchedulerID(""), id: api.MaintenanceID("", world.NodeName(0), "cost")}
	before := c.spent(ctx)
	mark := must(b.audit.mark())
	c.maintain(ctx)
	after := c.spent(ctx)
	mine := c.history(ctx, c.id)
	requests, events := b.audit.requests(theWorker, mark)
	return []Figure{
		atMost("history events of one maintenance", float64(mine.events+after.events-before.events), "events", 80),
		report("- of these its own", float64(mine.events), "events"),
		atMost("billable actions of one maintenance", float64(mine.actions+after.actions-before.actions), "actions", 20),
		report("heartbeats beside them", after.heartbeats-before.heartbeats, "heartbeats"),
		atMost("API requests of one maintenance", float64(requests+events), "requests", 9),
	}
}

// costs are those of one maintenance, the scheduler's share included.
type costs struct {
	*bench
	scheduler, id string
}

// spending is what the scheduler and the worker have spent so far.
type spending struct {
	tally
	heartbeats float64
}

// spent reads what was spent once the scheduler has nothing left to do.
func (b *costs) spent(ctx context.Context) spending {
	noError(b.untilIdle(ctx, b.scheduler))
	return spending{b.history(ctx, b.scheduler), b.beats(ctx)}
}

func (b *costs) maintain(ctx context.Context) {
	noError(b.start(ctx, world.NodeName(0), "cost", ""))
	noError(b.untilPhase(ctx, b.id, api.Ready))
	noError(b.Temporal.Client.SignalWorkflow(ctx, b.id, "", api.MsgDone, nil))
	noError(b.Temporal.Client.GetWorkflow(ctx, b.id, "").Get(ctx, nil))
}

type tally struct{ events, actions int }

// billable are the events by which Temporal Cloud counts actions. A signal between workflows is counted where it is
// received.
var billable = map[enums.EventType]int{
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_STARTED:                           1,
	enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:                              1,
	enums.EVENT_TYPE_TIMER_STARTED:                                        1,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:                          1,
	enums.EVENT_TYPE_MARKER_RECORDED:                                      1,
	enums.EVENT_TYPE_UPSERT_WORKFLOW_SEARCH_ATTRIBUTES:                    1,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED:                   1,
	enums.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:             1,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW:                  1,
	enums.EVENT_TYPE_WORKFLOW_EXECUTION_OPTIONS_UPDATED:                   1,
	enums.EVENT_TYPE_NEXUS_OPERATION_SCHEDULED:                            1,
	enums.EVENT_TYPE_REQUEST_CANCEL_EXTERNAL_WORKFLOW_EXECUTION_INITIATED: 1,
}

// history is that of a workflow's latest run.
func (b *bench) history(ctx context.Context, id string) tally {
	return b.historyOf(ctx, id, "")
}

func (b *bench) historyOf(ctx context.Context, id, run string) tally {
	var t tally
	events := b.Temporal.Client.GetWorkflowHistory(ctx, id, run, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event := must(events.Next())
		t.events++
		t.actions += billable[event.EventType]
	}
	return t
}

// untilIdle waits until a workflow has nothing under way: no activity, no task.
func (b *bench) untilIdle(ctx context.Context, id string) error {
	return poll(ctx, id+" to be idle", func() (bool, error) {
		d, err := b.Temporal.Client.DescribeWorkflowExecution(ctx, id, "")
		if err != nil {
			return false, nil //nolint:nilerr // not started yet
		}
		return len(d.PendingActivities) == 0 && d.PendingWorkflowTask == nil, nil
	})
}

// untilQuiet waits until nothing has happened to workflows for a while.
func (b *bench) untilQuiet(ctx context.Context, while time.Duration, ids ...string) error {
	length, since := int64(0), time.Now()
	return poll(ctx, strings.Join(ids, " and ")+" to be quiet", func() (bool, error) {
		now, busy := int64(0), false
		for _, id := range ids {
			d, err := b.Temporal.Client.DescribeWorkflowExecution(ctx, id, "")
			if missing := new(serviceerror.NotFound); errors.As(err, &missing) {
				return false, nil // it has not begun yet
			}
			if err != nil {
				return false, err
			}
			now += d.GetWorkflowExecutionInfo().GetHistoryLength()
			busy = busy || d.PendingWorkflowTask != nil
		}
		if now != length || busy {
			length, since = now, time.Now()
		}
		return time.Since(since) >= while, nil
	})
}

func (b *bench) untilPhase(ctx context.Context, id string, phase api.Phase) error {
	return poll(ctx, fmt.Sprintf("%s to be %s", id, phase), func() (bool, error) {
		status, err := world.Ask[api.Status](ctx, b.Temporal.Client, id, api.QueryStatus)
		return status.Phase == phase, err
	})
}

func poll(ctx context.Context, what string, done func() (bool, error)) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		}
	}
}

// beats reads from the worker how many heartbeats it sent.
func (b *bench) beats(ctx context.Context) float64 {
	request := must(http.NewRequestWithContext(ctx, http.MethodGet, b.worker.URL+"/metrics", nil))
	response, err := http.DefaultClient.Do(request)
	noError(err)
	defer response.Body.Close()
	body := must(io.ReadAll(response.Body))
	total := 0.0
	for line := range strings.Lines(string(body)) {
		// temporal_request_attempt counts the same requests again.
		if strings.HasPrefix(line, "temporal_request{") && strings.Contains(line, `operation="RecordActivityTaskHeartbeat"`) {
			fields := strings.Fields(line)
			total += must(strconv.ParseFloat(fields[len(fields)-1], 64))
		}
	}
	return total
}
