package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// maxRuns bounds the runs of one maintenance that are read, in either direction.
const maxRuns = 20

// memory is what the history of a maintenance says of its node: the answers of activities, which nobody but the server writes.
type memory struct {
	// Prior is what its last hold of the node answered; nil if none did, or the release has put everything back.
	Prior *Prior
	// Began: it began to hold the node, whatever became of the answer. Released: it gave the node back.
	Began, Released bool

	// read: there is a history, whole. last is Prior, also after a release; unknown: it gave back what it had held, and its history does
	// not tell what was there before.
	read, unknown bool
	last          *Prior
}

// Recall is what to go by where somebody takes the mark of a maintenance off that has ended: the last thing that its history says of
// the node, which may show again what it showed before a release. Nothing is undone where the history does not say that it held the node.
// The mark counts where the history is gone, or does not tell what was there before: there is nothing else.
func Recall(ctx context.Context, temporal client.Client, h k8s.Holder, node string, uid types.UID) (k8s.Known, error) {
	m, err := remembers(ctx, temporal, k8s.CordonedBy{WorkflowID: h.WorkflowID, RunID: h.RunID, Run: h.Run}, node, uid, nil)
	known := k8s.Known{Prior: m.last, Cordons: cordons{temporal, node, h.RunID}}
	if m.read && m.last == nil && !m.Began && !m.unknown {
		known.Prior = &Prior{}
	}
	return known, err
}

// remembers reads the history of a maintenance that a mark names, for those who cannot ask the maintenance itself. Where that is
// no maintenance of this worker's, or its history is gone, nothing is remembered.
func remembers(ctx context.Context, temporal client.Client, of k8s.CordonedBy, node string, uid types.UID, left *int) (memory, error) {
	var m memory
	first, found, err := readRun(ctx, temporal, of, runNamed(of), node, left)
	if err != nil || !found {
		return m, err
	}
	chain := []run{first}
	for range maxRuns { // back to the run that held the node
		oldest := chain[0]
		if oldest.hasChanges() || oldest.previous == "" {
			break
		}
		r, found, err := readRun(ctx, temporal, of, oldest.previous, node, left)
		if err != nil || !found {
			return m, err
		}
		chain = append([]run{r}, chain...)
	}
	for range maxRuns { // and on to the last
		next := chain[len(chain)-1].next
		if next == "" {
			break
		}
		r, found, err := readRun(ctx, temporal, of, next, node, left)
		if err != nil || !found {
			return m, err
		}
		chain = append(chain, r)
	}
	if chain[len(chain)-1].next != "" {
		return m, nil // what came after is not known
	}
	m.read = true
	for _, r := range chain {
		for _, e := range r.changes {
			e.apply(&m, uid)
		}
	}
	return m, nil
}

// runNamed is the run at which reading begins: the one that the mark says acts for the maintenance, which is no older than the
// first.
func runNamed(of k8s.CordonedBy) string {
	if of.Run != "" {
		return of.Run
	}
	return of.RunID
}

// run is what matters of one run of a maintenance.
type run struct {
	// changes change what is remembered, in their order.
	changes []change
	// previous and next are those that it continues and that continue it; empty if there are none.
	previous, next string
}

func (r run) hasChanges() bool { return len(r.changes) > 0 }

// change is one thing that a run did to the node: exactly one of its fields.
type change struct {
	began            bool
	taken, untainted bool
	held             *Held
	released         *Released
}

// apply changes what is remembered of the node.
func (e change) apply(m *memory, uid types.UID) {
	switch {
	case e.began:
		m.Began = true
	case e.taken, e.untainted:
		m.outOfService(e.taken)
	case e.held != nil:
		m.held(*e.held, uid)
	case e.released != nil:
		m.released(*e.released)
	}
}

// readRun reads one run. It is not found where it is not of that chain, or not of a maintenance of this worker's.
func readRun(ctx context.Context, temporal client.Client, of k8s.CordonedBy, id, node string, left *int) (r run, found bool, err error) {
	scheduled := map[int64]string{}
	started, found, err := readHistory(ctx, temporal, of, id, api.NodeMaintenanceType, left, func(event *historypb.HistoryEvent) {
		r.next = event.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		r.note(event, scheduled, node)
	})
	r.previous = started.GetContinuedExecutionRunId()
	return r, found, err
}

// readHistory reads the history of one run, of a workflow of that type and of this worker's task queue, event by event. It is not found
// where the run is another's, or gone. Left is how many events may still be read; nil bounds nothing. Errors: errTooLong.
func readHistory(ctx context.Context, temporal client.Client, of k8s.CordonedBy, id, kind string, left *int, hear func(*historypb.HistoryEvent)) (
	started *historypb.WorkflowExecutionStartedEventAttributes, found bool, err error,
) {
	events := temporal.GetWorkflowHistory(ctx, of.WorkflowID, id, false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		if left != nil {
			if *left--; *left < 0 {
				return nil, false, errTooLong
			}
		}
		event, err := events.Next()
		var gone *serviceerror.NotFound
		var malformed *serviceerror.InvalidArgument // a mark names what it likes
		switch {
		case errors.As(err, &gone), errors.As(err, &malformed):
			return nil, false, nil
		case err != nil:
			return nil, false, fmt.Errorf("reading the history of workflow %s: %w", of.WorkflowID, err)
		case started != nil:
			hear(event)
			continue
		}
		started = event.GetWorkflowExecutionStartedEventAttributes()
		if started.GetWorkflowType().GetName() != kind || started.GetTaskQueue().GetName() != activity.GetInfo(ctx).TaskQueue ||
			started.GetFirstExecutionRunId() != of.RunID {
			return nil, false, nil
		}
	}
	return started, started != nil, nil
}

// note keeps what an event says of the node.
func (r *run) note(event *historypb.HistoryEvent, scheduled map[int64]string, node string) {
	if a := event.GetActivityTaskScheduledEventAttributes(); a != nil {
		var about struct {
			Node string `json:"node"`
		}
		// What cannot be read is about nothing.
		if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &about); err != nil || about.Node != node {
			return
		}
		kind := a.GetActivityType().GetName()
		scheduled[event.GetEventId()] = kind
		switch kind {
		case "HoldNode", "AdoptNode":
			r.changes = append(r.changes, change{began: true})
		case "TakeOutOfService":
			r.changes = append(r.changes, change{taken: true})
		}
		return
	}
	completed := event.GetActivityTaskCompletedEventAttributes()
	result := completed.GetResult()
	switch scheduled[completed.GetScheduledEventId()] {
	case "HoldNode", "AdoptNode":
		var held Held
		if converter.GetDefaultDataConverter().FromPayloads(result, &held) == nil {
			r.changes = append(r.changes, change{held: &held})
		}
	case "AwaitOutOfService":
		r.changes = append(r.changes, change{untainted: true})
	case "ReleaseNode":
		var released Released
		if converter.GetDefaultDataConverter().FromPayloads(result, &released) == nil {
			r.changes = append(r.changes, change{released: &released})
		}
	}
}

func (m *memory) held(held Held, uid types.UID) {
	m.Released, m.Prior = false, nil
	if held.Prior == nil {
		return // version 0.1.0 remembers nothing
	}
	m.Began = false // the answer is known, and may be about another node of the name
	if held.Prior.UID == uid {
		m.Prior, m.last = held.Prior, held.Prior
	}
}

func (m *memory) outOfService(is bool) {
	if m.Prior != nil {
		changed := *m.Prior
		changed.OutOfService = is
		m.Prior, m.last = &changed, &changed
	}
}

// released forgets what was put back. Where others hold the node still, it stays as it was changed.
func (m *memory) released(released Released) {
	m.Began, m.Released, m.unknown = false, true, m.unknown || m.Began
	if len(released.OtherHolders) == 0 {
		m.Prior = nil
	}
}

// cordons finds out from histories whose cordon the last holder of a node has to undo.
type cordons struct {
	temporal     client.Client
	node, holder string
}

// Left reports whether the cordon is the last holder's to undo: a maintenance made the node unschedulable and left it so for others that
// hold it, or a profile's transition left it to that holder to uncordon the node.
func (c cordons) Left(ctx context.Context, by k8s.CordonedBy, uid types.UID) (left bool, err error) {
	err = bounded(ctx, func(ctx context.Context, events *int) error {
		_, _, of, err := api.ParseProfileTransitionID(by.WorkflowID)
		if err == nil {
			was, err := wasLeftTo(ctx, c.temporal, by, uid, c.holder, events)
			left = was && of == c.node
			return err
		}
		m, err := remembers(ctx, c.temporal, by, c.node, uid, events)
		left = m.Prior != nil && m.Prior.Cordoned
		return err
	})
	return left, err
}

// wasLeftTo reports whether the history of a profile's transition says that it left it to a maintenance to uncordon the node.
func wasLeftTo(ctx context.Context, temporal client.Client, by k8s.CordonedBy, uid types.UID, holder string, left *int) (was bool, err error) {
	carries := map[int64]bool{}
	started, found, err := readHistory(ctx, temporal, by, runNamed(by), api.ProfileTransitionType, left, func(event *historypb.HistoryEvent) {
		if a := event.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "CarryTransition" {
			var about api.ProfileTransitionInput
			err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &about)
			carries[event.GetEventId()] = err == nil && about.UID == string(uid)
		}
		if a := event.GetActivityTaskCompletedEventAttributes(); carries[a.GetScheduledEventId()] {
			var carried struct {
				LeftTo []string `json:"leftTo"`
			}
			err := converter.GetDefaultDataConverter().FromPayloads(a.GetResult(), &carried)
			was = err == nil && slices.Contains(carried.LeftTo, holder)
		}
	})
	// A transition never continues as new: a run that does not begin its chain was begun by somebody else.
	return was && found && started.GetContinuedExecutionRunId() == "", err
}

// Bounds of what is read to confirm what other holders of a node have done. A mark names whom and as many as it likes, and a hold
// or a release has 30 s.
const (
	maxConfirmed  = 8
	maxEvents     = 20_000
	confirmWithin = 10 * time.Second
)

// errTooLong: as many events were read as may be.
var errTooLong = errors.New("there are more events than are read")

// bounded reads histories within these bounds. What is not read by then confirms nothing, and fails nothing.
func bounded(ctx context.Context, read func(ctx context.Context, left *int) error) error {
	within, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	left := maxEvents
	err := read(within, &left)
	if errors.Is(err, errTooLong) || err != nil && within.Err() != nil && ctx.Err() == nil {
		activity.GetLogger(ctx).Warn("what other holders of the node have changed is not confirmed: it takes too long to read", "error", err)
		return nil
	}
	return err
}

// confirm adds to what a maintenance remembers of a node what those say who held it before.
func (n *Activities) confirm(ctx context.Context, node string, held k8s.Held) (*Prior, error) {
	prior := held.Prior
	err := bounded(ctx, func(ctx context.Context, left *int) error {
		for _, h := range held.Others[:min(len(held.Others), maxConfirmed)] {
			m, err := remembers(ctx, n.Temporal, k8s.CordonedBy{WorkflowID: h.WorkflowID, RunID: h.RunID, Run: h.Run}, node, held.UID, left)
			if err != nil {
				return err
			}
			if m.Prior != nil {
				prior = prior.Confirmed(*m.Prior)
			}
		}
		return nil
	})
	return prior, err
}
