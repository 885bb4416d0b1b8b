package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/meter"
)

// journal is the only writer of the status: phases, transitions, messages, and lifecycle events for channels.
type journal struct {
	*identity
	ctx    workflow.Context
	s      *api.Status
	outbox *outbox
	// seen are the IDs of the latest messages: one that comes twice is applied once.
	seen *[]string
	// judging are the messages that are being judged, in the order of their records. dropped counts the records that were dropped
	// from the status.
	judging []*judgement
	dropped int
}

// judgement is a message that is being judged; its effect is empty until that is known. Record is its number among all messages.
type judgement struct {
	record int
	effect string
}

func (v *judgement) settled() bool { return v.effect != "" }

func newJournal(ctx workflow.Context, i *identity, s *state, o *outbox) *journal {
	s.Status = api.Status{
		WorkflowID: i.workflowID, RunID: i.runID, Phase: api.Pending, Since: workflow.Now(ctx), Attempt: 1,
		CreatedAt: workflow.GetInfo(ctx).WorkflowStartTime,
	}
	return &journal{identity: i, ctx: ctx, outbox: o, s: &s.Status, seen: &s.Seen}
}

var errEnding = errors.New("the maintenance is ending")

// status is the present status. Only change changes it.
func (j *journal) status() api.Status { return *j.s }

func (j *journal) phase() api.Phase { return j.s.Phase }

// change writes the status, and keeps it within its bounds. The bounds of the specification were checked before.
func (j *journal) change(write func(*api.Status)) {
	write(j.s)
	specified := j.s.Spec
	j.s.Spec = spec.Maintenance{}
	bounds.Fit(j.s)
	j.s.Spec = specified
	j.describe()
}

func (j *journal) enter(phase api.Phase, message string) {
	now := workflow.Now(j.ctx)
	if j.isFresh() || j.s.Phase != phase {
		if !j.isFresh() {
			meter.Phases.Took(j.ctx, string(j.s.Phase), now.Sub(j.s.Since))
		}
		if phase.Ended() {
			meter.Ended.Count(j.ctx, string(phase))
			meter.Duration.Took(j.ctx, string(phase), now.Sub(j.s.CreatedAt))
		}
		j.s.Phase, j.s.Since = phase, now
	}
	j.transition(api.Transition{Phase: phase, At: now, Message: bounds.Cut(message, bounds.Text)})
	j.s.WaitingFor = ""
	j.describe()
}

// ensure enters a phase, unless it is the present one already: then a run before this one has entered it.
func (j *journal) ensure(phase api.Phase, message string) {
	if j.isFresh() || j.s.Phase != phase {
		j.enter(phase, message)
	}
}

func (j *journal) isFresh() bool { return len(j.s.Transitions) == 0 }

func (j *journal) waiting(what string) {
	j.s.WaitingFor = bounds.Cut(what, bounds.Text)
	j.describe()
}

// note records an event that is neither a message nor a change of phase.
func (j *journal) note(what string) {
	j.transition(api.Transition{Phase: j.s.Phase, At: workflow.Now(j.ctx), Message: bounds.Cut(what, bounds.Text)})
	j.describe()
}

// maxTransitions bounds the transitions in the status: a node may be given back again and again for months. The first keepTransitions
// stay: they say how the maintenance began.
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

// maxMessages and maxSeen bound the messages and their IDs in the status; the history has all.
const (
	maxMessages = 30
	maxSeen     = 200
)

func (j *journal) received(name string, who api.Message, outcome api.Outcome, effect string) {
	entry := api.Received{
		At: workflow.Now(j.ctx), ID: who.ID, Name: name, By: who.By, Comment: who.Comment, Outcome: outcome, Effect: effect,
	}
	bounds.Fit(&entry)
	j.s.Messages = append(j.s.Messages, entry)
	if outcome == api.Judged {
		j.judging[len(j.judging)-1].record = j.dropped + len(j.s.Messages) - 1
	}
	extra := max(len(j.s.Messages)-maxMessages, 0)
	j.s.Messages = j.s.Messages[extra:]
	j.dropped += extra
	if who.ID != "" {
		seen := append(*j.seen, who.ID)
		*j.seen = seen[max(len(seen)-maxSeen, 0):]
	}
	j.describe()
	workflow.GetLogger(j.ctx).Info("message", "name", name, "by", entry.By, "effect", entry.Effect)
}

// judge begins the judgement of the message that is being received, settle ends it.
func (j *journal) judge() *judgement {
	v := &judgement{}
	j.judging = append(j.judging, v)
	return v
}

func (j *journal) settle(v *judgement, effect string) {
	v.effect = effect
	j.judging = slices.DeleteFunc(j.judging, func(other *judgement) bool { return other == v })
	j.rewrite(v, func(m *api.Received) { m.Effect, m.Outcome = effect, outcomeOf(effect) })
}

// rewrite changes the record of a message that is being judged, unless it was dropped from the status.
func (j *journal) rewrite(v *judgement, write func(*api.Received)) {
	j.change(func(s *api.Status) {
		if i := v.record - j.dropped; i >= 0 && i < len(s.Messages) {
			write(&s.Messages[i])
		}
	})
}

// Known, Applied and Refused implement inbox.Account.
func (j *journal) Known(id string) bool { return slices.Contains(*j.seen, id) }

func (j *journal) Applied(name string, who api.Message, effect string) {
	j.received(name, who, outcomeOf(effect), effect)
}

func (j *journal) Refused(name string, who api.Message, outcome api.Outcome, why error) {
	j.received(name, who, outcome, ignored+why.Error())
}

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
	j.announce(notices.MaintenanceIncomplete, reason)
}

func (j *journal) inPhase(allowed ...api.Phase) error {
	if slices.Contains(allowed, j.s.Phase) {
		return nil
	}
	names := make([]string, len(allowed))
	for i, phase := range allowed {
		names[i] = string(phase)
	}
	return fmt.Errorf("%s is %s, and not %s", cmp.Or(j.spec.Node, "the maintenance"), j.s.Phase, strings.Join(names, " or "))
}

func (j *journal) ending() error {
	if j.s.Phase == api.Releasing || j.s.Phase.Ended() {
		return errEnding
	}
	return nil
}

// heldByRequestor reports whether the node is Ready or past that: it may be half flashed.
func (j *journal) heldByRequestor() bool {
	return j.s.Phase == api.Ready || j.s.Phase == api.RequestorFailed || j.s.Phase == api.Validating
}

// describe shows the status in the Temporal UI.
func (j *journal) describe() {
	workflow.SetCurrentDetails(j.ctx, document.Details(views.Maintenance(api.MaintenanceOf(*j.s), views.Brief())))
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

func sentence(what, by, why string) string {
	if by != "" {
		what += " by " + by
	}
	if why != "" {
		what += ": " + why
	}
	return what
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (j *journal) wasAnnounced(state notices.State) bool {
	return slices.ContainsFunc(j.s.States, func(s api.LifecycleState) bool { return s.State == state })
}

// announce records a lifecycle event (NotifyMaintenance, Maintenance Status), and sends it to the channels.
func (j *journal) announce(state notices.State, message string) {
	entered := api.LifecycleState{
		Sequence: 1, State: state, At: workflow.Now(j.ctx), Message: bounds.Cut(message, bounds.Text), Phase: j.s.Phase,
	}
	if n := len(j.s.States); n > 0 {
		entered.Sequence = j.s.States[n-1].Sequence + 1
	}
	entered.ID = api.EventID(j.workflowID, j.runID, entered.Moment())
	if d := j.s.Drain; d != nil {
		for _, b := range d.Blockers[:min(maxBlockersNamed, len(d.Blockers))] {
			entered.Blockers = append(entered.Blockers, bounds.Cut(b.Pod+": "+b.Message, bounds.Text))
		}
		entered.MoreBlockers = len(d.Blockers) + d.MoreBlockers - len(entered.Blockers)
	}
	j.s.States = bounded(j.s.States, entered)
	j.outbox.put(j.eventOf(entered))
}

func (j *journal) eventOf(s api.LifecycleState) notices.Event { return api.EventOf(*j.s, j.cluster, s) }

const maxBlockersNamed = 5
