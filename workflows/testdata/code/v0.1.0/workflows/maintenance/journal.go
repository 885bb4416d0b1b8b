package maintenance

import (
	"cmp"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/markdown"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/record"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"slices"
	"strings"
	"time"
)

// journal is the account of a maintenance and the only writer of its status: phases, transitions, messages, and the
// lifecycle events that the outside is told.
type journal struct {
	*identity
	ctx workflow.Context
	s   api.Status
	// inform hears of every state that the outside is told of.
	inform func(notices.Event)
	// heard are the IDs of the latest messages, so that one which comes twice is applied once.
	heard []string
}

func newJournal(ctx workflow.Context, i *identity) *journal {
	return &journal{identity: i, ctx: ctx, s: api.Status{
		WorkflowID: i.workflowID, RunID: i.runID, Phase: api.Pending, Since: workflow.Now(ctx), Attempt: 1,
	}}
}

// errEnding refuses what comes when a maintenance is ending, or has ended.
var errEnding = errors.New("the maintenance is ending")

// status is the present status. It is changed by change only.
func (j *journal) status() api.Status { return j.s }

func (j *journal) phase() api.Phase { return j.s.Phase }

// change is how a part writes what it knows into the status. Whatever was said, it stays within its bounds; the
// specification was checked when it came.
func (j *journal) change(write func(*api.Status)) {
	write(&j.s)
	specified := j.s.Spec
	j.s.Spec = spec.Maintenance{}
	bounds.Fit(&j.s)
	j.s.Spec = specified
}

// enter changes the phase and notes when.
func (j *journal) enter(phase api.Phase, message string) {
	now := workflow.Now(j.ctx)
	if j.isFresh() || j.s.Phase != phase {
		j.s.Phase, j.s.Since = phase, now
	}
	j.transition(api.Transition{Phase: phase, At: now, Message: bounds.Cut(message, bounds.Text)})
	j.s.WaitingFor = ""
	j.describe()
}

// isFresh tells that no phase was entered yet.
func (j *journal) isFresh() bool { return len(j.s.Transitions) == 0 }

// waiting says in words what has to happen next.
func (j *journal) waiting(what string) {
	j.s.WaitingFor = bounds.Cut(what, bounds.Text)
	j.describe()
}

// note records something noteworthy that is neither a message nor a change of phase.
func (j *journal) note(what string) {
	j.transition(api.Transition{Phase: j.s.Phase, At: workflow.Now(j.ctx), Message: bounds.Cut(what, bounds.Text)})
	j.describe()
}

// maxTransitions bounds those in the status and in the result: a maintenance may be given back for months. The first
// ones say how it began.
const (
	maxTransitions  = 100
	keepTransitions = 20
)

func (j *journal) transition(t api.Transition) {
	before := len(j.s.Transitions)
	j.s.Transitions = bounded(j.s.Transitions, t)
	if len(j.s.Transitions) == before {
		j.s.TransitionsDropped++
	}
}

// bounded appends to a list that keeps its first entries and its latest.
func bounded[T any](list []T, next T) []T {
	list = append(list, next)
	if len(list) > maxTransitions {
		list = slices.Delete(list, keepTransitions, keepTransitions+1)
	}
	return list
}

// moment is a number that no earlier or later state of this maintenance has.
func (j *journal) moment() int { return len(j.s.Transitions) + j.s.TransitionsDropped }

// maxMessages bounds the messages kept in the status, maxHeard the IDs of messages; the history has them all.
const (
	maxMessages = 30
	maxHeard    = 200
)

// received records a message and what became of it.
func (j *journal) received(name string, who api.Message, outcome api.Outcome, effect string) {
	entry := api.Received{
		At: workflow.Now(j.ctx), ID: who.ID, Name: name, By: who.By, Comment: who.Comment, Outcome: outcome, Effect: effect,
	}
	bounds.Fit(&entry)
	j.s.Messages = append(j.s.Messages, entry)
	if extra := len(j.s.Messages) - maxMessages; extra > 0 {
		j.s.Messages = j.s.Messages[extra:]
	}
	if who.ID != "" {
		j.heard = append(j.heard, who.ID)
		j.heard = j.heard[max(len(j.heard)-maxHeard, 0):]
	}
	workflow.GetLogger(j.ctx).Info("message", "name", name, "by", entry.By, "effect", entry.Effect)
}

// knows tells that a message was received before.
func (j *journal) knows(id string) bool { return slices.Contains(j.heard, id) }

// observeBlockers keeps account of what was in the way, and for how long.
func (j *journal) observeBlockers(now []record.Blocker) {
	var dropped int
	bounds.Fit(&now)
	j.s.BlockersSeen, dropped = record.Observe(j.s.BlockersSeen, now, workflow.Now(j.ctx))
	j.s.MoreBlockersSeen += dropped
}

// requestorFailed keeps the node out of service until somebody decides.
func (j *journal) requestorFailed(reason string) {
	j.s.Failure = bounds.Cut(reason, bounds.Text)
	j.s.ReadyDeadline = nil
	j.enter(api.RequestorFailed, reason)
	j.tell(notices.MaintenanceIncomplete, reason)
}

func (j *journal) inPhase(allowed ...api.Phase) error {
	if slices.Contains(allowed, j.s.Phase) {
		return nil
	}
	return fmt.Errorf("the maintenance is %s, and not %v", j.s.Phase, allowed)
}

// ending refuses what comes when the maintenance is ending, or has ended.
func (j *journal) ending() error {
	if j.s.Phase == api.Releasing || j.s.Phase.Ended() {
		return errEnding
	}
	return nil
}

// heldByRequestor tells that the node was Ready: it may be half flashed.
func (j *journal) heldByRequestor() bool {
	return j.s.Phase == api.Ready || j.s.Phase == api.RequestorFailed || j.s.Phase == api.Validating
}

// describe shows the state in the Temporal UI.
func (j *journal) describe() {
	var text strings.Builder
	fmt.Fprintf(&text, "**%s** since %s", j.s.Phase, j.s.Since.UTC().Format("2006-01-02 15:04:05Z"))
	if j.s.WaitingFor != "" {
		fmt.Fprintf(&text, "\n\nwaiting for %s", markdown.Text(j.s.WaitingFor))
	}
	if j.s.Failure != "" {
		fmt.Fprintf(&text, "\n\n%s", markdown.Text(j.s.Failure))
	}
	if d := j.s.Drain; d != nil {
		fmt.Fprintf(&text, "\n\n%d of %d pods evicted, %d remaining", d.Evicted, d.Total, d.Remaining)
		for _, b := range d.Blockers {
			fmt.Fprintf(&text, "\n- %s %s: %s", markdown.Text(b.Pod), markdown.Text(b.Reason), markdown.Text(b.Message))
		}
	}
	workflow.SetCurrentDetails(j.ctx, text.String())
}

// attribute sets search attributes where the namespace has them; each call is billed.
func (j *journal) attribute(updates ...temporal.SearchAttributeUpdate) {
	if !j.prepared.SearchAttributes {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(j.ctx, updates...); err != nil {
		workflow.GetLogger(j.ctx).Warn("search attributes not set", "error", err)
	}
}

// sentence is what somebody did, with who and why where that was said.
func sentence(what, by, why string) string {
	if by != "" {
		what += " by " + by
	}
	if why != "" {
		what += ": " + why
	}
	return what
}

// instant is a time as people read it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wasTold tells whether the outside was told of a state.
func (j *journal) wasTold(state notices.State) bool {
	return slices.ContainsFunc(j.s.States, func(s api.LifecycleState) bool { return s.State == state })
}

// tell notes that the maintenance has come into a state that the outside knows (NotifyMaintenance, Maintenance Status),
// and has its channels told that there is something new.
func (j *journal) tell(state notices.State, message string) {
	entered := api.LifecycleState{
		Sequence: 1, State: state, At: workflow.Now(j.ctx), Message: bounds.Cut(message, bounds.Text), Phase: j.s.Phase,
	}
	if n := len(j.s.States); n > 0 {
		entered.Sequence = j.s.States[n-1].Sequence + 1
	}
	entered.ID = api.EventID(j.workflowID, j.runID, entered.Moment())
	if d := j.s.Drain; d != nil {
		for _, b := range d.Blockers[:min(blockersTold, len(d.Blockers))] {
			entered.Blockers = append(entered.Blockers, bounds.Cut(b.Pod+": "+b.Message, bounds.Text))
		}
		entered.MoreBlockers = len(d.Blockers) + d.MoreBlockers - len(entered.Blockers)
	}
	j.s.States = bounded(j.s.States, entered)
	j.inform(j.eventOf(entered))
}

// eventOf is a state as the channels are told of it.
func (j *journal) eventOf(s api.LifecycleState) notices.Event { return api.EventOf(j.s, j.cluster, s) }

// blockersTold is how many blockers an event names.
const blockersTold = 5

// tellEnd tells how a maintenance ends: that its end was asked for, before anything is undone.
func (j *journal) tellEnd(end ending) {
	if end.Phase == api.Failed || end.Phase == api.NodeGone {
		j.tell(notices.MaintenanceIncomplete, end.Message)
	}
	j.tell(notices.MaintenanceEnded, end.Message)
}

// tellEnded tells the end itself. A node that did not get its maintenance is back all the same.
func (j *journal) tellEnded(end ending) {
	if end.Phase == api.Completed {
		j.tell(notices.MaintenanceComplete, end.Message)
		return
	}
	j.tell(notices.MaintenanceCancelled, cmp.Or(end.Message, string(end.Phase)))
}
