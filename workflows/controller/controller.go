// Package controller is the frame of the workflows that look at a cluster and decide. A workflow has a state, messages, and a Decide that
// returns all that should be under way now. The frame begins and stops effects and watches accordingly and feeds their outcomes back. It
// restores and hands over the state, and owns order, bounds, backoff, the timer, and what people are shown.
package controller

import (
	"cmp"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
)

// Controller is the state of a workflow, with its decisions. Its JSON fields go to the next run. Its methods use fields and arguments
// only: no Temporal, no clock, no order of a map. A field that is not written as JSON is set before Run and not changed.
type Controller interface {
	// Begin sets the state of a workflow that has none from an earlier run.
	Begin(now time.Time)
	// Decide returns all that should be under way now. Called again at once, it returns the same.
	Decide(t Turn) Decision
	// Outcome takes the outcome of an effect, or the report of a watch. Err is set where one failed.
	Outcome(o Outcome, now time.Time)
	// Reset forgets what may have changed since the point to which the run was reset.
	Reset(now time.Time)
	// Cancel takes a cancellation of the workflow, once in a run. The next run may be cancelled again.
	Cancel(now time.Time)
	// Page is what people are shown in the Temporal UI.
	Page(now time.Time) Page
	base() *Base
}

// Key names an effect or a watch, as in {"begin", "worker-07"}. One of a key is under way at a time.
type Key struct {
	Kind string `json:"kind"`
	Of   string `json:"of,omitempty"`
}

// Turn is the time of a decision, and what is under way then.
type Turn struct {
	Now      time.Time
	room     int
	underWay map[Key]bool
	// kinds counts what is under way, by the kinds of the keys.
	kinds    map[string]int
	children map[string]bool
}

// At is a turn for tests.
func At(now time.Time, underWay ...Key) Turn {
	t := Turn{Now: now, room: maxUnderWay, underWay: map[Key]bool{}, kinds: map[string]int{}}
	for _, k := range underWay {
		t.add(k)
	}
	return t
}

func (t Turn) add(k Key) {
	t.underWay[k] = true
	t.kinds[k.Kind]++
}

// UnderWay reports whether an effect is under way: it has begun, and its outcome is not known.
func (t Turn) UnderWay(k Key) bool { return t.underWay[k] }

// AnyUnderWay reports whether an effect of one of these kinds is under way.
func (t Turn) AnyUnderWay(kinds ...string) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool { return t.kinds[kind] > 0 })
}

// Room is how many effects can begin now. The first of Decision.Effects do.
func (t Turn) Room() int { return t.room }

// Follows reports whether the end of this run of a child will be an Outcome. Children of an earlier run of this workflow are not followed,
// nor is a child that was terminated: a reset terminates a run too, and the child goes on under its workflow ID.
func (t Turn) Follows(run string) bool { return t.children[run] }

// Decision is all that should be under way.
type Decision struct {
	// Effects begin, the most urgent first, unless one of the key is under way or rests.
	Effects []Effect
	// Watches run; others are stopped.
	Watches []Watch
	// Wake is when to decide again, and Why the reason. A time in the past means at once, without a timer.
	Wake time.Time
	Why  string
	// More: the decision was split, and Decide is called again once other coroutines have run, at most maxMore times.
	More bool
	// End ends the workflow once nothing is under way and no message is unread.
	End *End
}

// End is how a workflow ends.
type End struct{ Err error }

// WakeAt moves Wake to an earlier time; the zero time changes nothing.
func (d *Decision) WakeAt(at time.Time, why string) {
	if !at.IsZero() && (d.Wake.IsZero() || at.Before(d.Wake)) {
		d.Wake, d.Why = at, why
	}
}

// What an Outcome is about.
type What int

// Done is the end of an effect, Reported the report of a watch, Ended the end of a child that this run started. Terminated: the run of such a
// child was terminated. A reset does that too, and the child goes on under its workflow ID: the controller has to find out which it was.
const (
	Done What = iota
	Reported
	Ended
	Terminated
)

// Outcome is the outcome of an effect, the report of a watch, or the end of a child.
type Outcome struct {
	Key  Key
	What What
	// Begun is the Effect or the Watch with the content that it began with.
	Begun any
	// Run is the run of a child.
	Run string
	Err error
	// Stale: it began before a reset of this run.
	Stale bool
	// result is nil for none.
	result *commonpb.Payload
}

// Get returns Err, or decodes the result.
func (o Outcome) Get(result any) error {
	if o.Err != nil || o.result == nil {
		return o.Err
	}
	return converter.GetDefaultDataConverter().FromPayload(o.result, result)
}

func (o *Outcome) take(ctx workflow.Context, f workflow.Future) {
	var raw converter.RawValue
	o.Err = f.Get(ctx, &raw)
	o.result = raw.Payload()
}

// Came is an outcome for tests: an error, or a result.
func Came(begun, result any) Outcome {
	o := Outcome{Begun: begun}
	o.Err, _ = result.(error)
	o.result, _ = converter.GetDefaultDataConverter().ToPayload(result)
	switch begun := begun.(type) {
	case Effect:
		o.Key = begun.meta().Key
	case Watch:
		o.Key, o.What = begun.Key, Reported
	}
	return o
}

// Info identifies a run.
type Info struct {
	Cluster, WorkflowID string
	// Run is the first run of the chain, Current this one.
	Run, Current string
	TaskQueue    string
	Started      time.Time
}

// Identify returns the Info of this run. The cluster is that of the task queue; the workflow compares it with its ID by Check.
func Identify(ctx workflow.Context) Info {
	info := workflow.GetInfo(ctx)
	return Info{
		Cluster:    api.ClusterOf(info.TaskQueueName),
		WorkflowID: info.WorkflowExecution.ID,
		Run:        cmp.Or(info.FirstRunID, info.OriginalRunID, info.WorkflowExecution.RunID),
		Current:    info.WorkflowExecution.RunID,
		TaskQueue:  info.TaskQueueName,
		Started:    info.WorkflowStartTime,
	}
}
