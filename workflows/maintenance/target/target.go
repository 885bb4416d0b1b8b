// Package target is the part of a maintenance that plans share which takes their word on how far its node is to be drained,
// and tells them how far it is.
package target

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/drainplan"
	"drydock/rules/schedule"
	"drydock/rules/spec"
)

// Host is the maintenance. Shared tells whether plans share it at all, Lockstep is the ID of the workflow that decides for them.
type Host struct {
	Lockstep func() string
	Shared   func() bool
	Status   func() api.Status
	// Ends tells that the node is drained no more, ThisRun refuses what is meant for another run, and Refused records that.
	Ends    func() bool
	ThisRun func(run string) error
	Refused func(why error)
	// Change writes the status, Enter the phase and Waiting what is waited for. Show shows the phase on the node, and Follow
	// says anew who is waited for.
	Change  func(func(*api.Status))
	Enter   func(api.Phase)
	Waiting func(string)
	Show    func()
	Follow  func()
	// Join has the slot asked for with a gang; nil asks for it singly.
	Join func(gang *schedule.Gang)
	// Await waits for a condition as a step does: an error is what ends the maintenance, or its run. AwaitUpTo waits for one
	// beside it, at most for a time; ok tells that it came true. Life is the context that no cancellation reaches.
	Life      workflow.Context
	Await     func(condition func() bool) error
	AwaitUpTo func(ctx workflow.Context, limit time.Duration, summary string, condition func() bool) (ok bool, err error)
}

// State is what the next run of the maintenance has to know. The zero State has heard nothing.
type State struct {
	// Revision is that of the latest word, and the next six are its.
	Revision int               `json:"revision,omitempty"`
	Targets  []drainplan.Entry `json:"targets,omitempty"`
	Waits    string            `json:"waits,omitempty"`
	Last     bool              `json:"last,omitempty"`
	Further  bool              `json:"further,omitempty"`
	Gang     *schedule.Gang    `json:"gang,omitempty"`
	Plans    []string          `json:"plans,omitempty"`
	// Rises counts how often Targets rose, Drained is the count up to which the node is drained.
	Rises   int `json:"rises,omitempty"`
	Drained int `json:"drained,omitempty"`
	// Given: nothing more is to be drained, and the requestor's time runs.
	Given bool `json:"given,omitempty"`
	// Told is what the lockstep was told last. Owed: it wants an answer, whether or not something changed.
	Told *Standing `json:"told,omitempty"`
	Owed bool      `json:"owed,omitempty"`
}

// Standing is how far a maintenance is: Rise is the count of State.Rises up to which the node is drained.
type Standing struct {
	Revision   int       `json:"revision,omitempty"`
	Rise       int       `json:"rise,omitempty"`
	Phase      api.Phase `json:"phase"`
	Drained    bool      `json:"drained,omitempty"`
	Pending    int       `json:"pending,omitempty"`
	Evacuating int       `json:"evacuating,omitempty"`
	Waiting    string    `json:"waiting,omitempty"`
}

// Target is how far one maintenance is to go.
type Target struct {
	Host
	State
	// telling is set while the lockstep is being told, over once it was told of the end.
	telling, over bool
	// spoken: a word went to the lockstep since the present drain began, which may come there after the drain's own.
	spoken bool
	toldAt time.Time
}

const (
	// tellWithin is how soon the lockstep is told of what nobody waits for: what happens meanwhile is told with it.
	tellWithin = 5 * time.Second
	// tellEvery is the shortest time between two words to the lockstep, but for the one that the node is drained.
	tellEvery = time.Second
	// tellAgainFirst and tellAgainLast bound the pause after which a lockstep that says nothing is told again: it may have
	// been started anew, and know nothing.
	tellAgainFirst = 5 * time.Minute
	tellAgainLast  = time.Hour
	// maxLeap is how far a revision may be ahead of the one before: whoever sends a forged one must not shut out all later
	// ones, which go on from there.
	maxLeap = 1 << 42
	// maxPlans bounds the names of plans, shownTargets the targets that the status has.
	maxPlans     = 100
	shownTargets = 50
)

// Receive takes the word of the plans, which anybody can send. One that comes with the start is read before it is known
// whether there are plans.
func (t *Target) Receive(n api.NodeTarget) {
	if t.Ends() {
		t.Ask()
		return
	}
	err := t.ThisRun(n.Run)
	if err == nil && t.Status().Spec.Node != "" && !t.Shared() {
		err = errors.New("no plans share this maintenance (lockstep)")
	}
	if err == nil {
		err = t.take(n)
	}
	if err != nil {
		t.Refused(err)
		return
	}
	t.show()
}

// Begin begins with what came before the specification was read; what was not meant for the maintenance is forgotten.
func (t *Target) Begin() {
	if !t.Shared() {
		t.State = State{}
	}
	t.show()
}

// show says how far the maintenance is to go, and what it waits for by now.
func (t *Target) show() {
	if !t.Shared() {
		return
	}
	t.Join(t.Gang)
	t.Change(func(s *api.Status) {
		s.Lockstep = &api.LockstepStatus{
			Revision: t.Revision, Targets: t.Targets[:min(len(t.Targets), shownTargets)], Last: t.Last, Plans: t.Plans,
		}
	})
	if t.Status().Phase == api.Cordoned || t.Stands() {
		t.Waiting(t.waitedFor())
	}
	t.Follow()
}

// take takes a word; the error says why it does not count. An older one changes nothing, and what was to leave stays so.
func (t *Target) take(n api.NodeTarget) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if n.Revision-t.Revision > maxLeap {
		return fmt.Errorf("revision: %d is too far ahead of %d", n.Revision, t.Revision)
	}
	if n.Revision <= t.Revision {
		t.Owed = true // it asks, or does not know what the latest is
		return nil
	}
	t.Owed = t.Owed || n.Tell
	asked, err := drainplan.New(n.Targets, nil)
	if err != nil {
		return err
	}
	all, more := drainplan.Union(t.Targets, asked.Entries())
	if len(all) > api.MaxTargets {
		return fmt.Errorf("targets: with those before they are %d entries: at most %d are taken", len(all), api.MaxTargets)
	}
	if more {
		t.Targets, t.Rises = all, t.Rises+1
	}
	t.Revision, t.Last, t.Gang = n.Revision, n.Last, n.Gang
	t.Further = n.Further && !n.Last
	t.Waits = bounds.Cut(n.Waits, bounds.Text)
	t.Plans = n.Plans[:min(len(n.Plans), maxPlans)]
	bounds.Fit(&t.Plans)
	return nil
}

// AwaitFirst waits until the plans have said how far to go: before that no slot is asked for.
func (t *Target) AwaitFirst() error {
	if !t.Shared() || t.Revision > 0 {
		return nil
	}
	if s := t.Status(); s.Phase != api.Pending || len(s.Transitions) == 0 {
		t.Enter(api.Pending)
	}
	t.Waiting(fmt.Sprintf(`its first target: no plan has said yet how far to drain the node. Workflow %s sends it (signal %q) where a `+
		`maintenance plan of strategy allAtOnce has the node; %q ends it`, t.Lockstep(), api.SignalTarget, api.MsgCancel))
	if err := t.Await(func() bool { return t.Revision > 0 }); err != nil {
		return err
	}
	t.Waiting("")
	return nil
}

// HoldCordoned holds the node as long as the plans do not drain it.
func (t *Target) HoldCordoned() error {
	if !t.Shared() || t.begun() {
		return nil
	}
	if t.Status().Phase != api.Cordoned { // otherwise a run before this one began
		t.Enter(api.Cordoned)
	}
	t.Waiting(t.waitedFor())
	t.Show()
	return t.Await(t.begun)
}

// waitedFor is what a node waits for that is not to be drained, or not further.
func (s *State) waitedFor() string {
	return cmp.Or(s.Waits, "the plans that share it: "+strings.Join(s.Plans, ", "))
}

// Behind tells that the node is to be drained further than it is.
func (s *State) Behind() bool { return s.Rises > s.Drained }

// Stands tells that a node in the middle of its drain is drained as far as its plans have come, and is drained further once
// other nodes are as far.
func (t *Target) Stands() bool {
	return t.Shared() && t.Further && t.begun() && !t.Behind() && t.Status().Phase == api.Draining
}

// begun tells that there are pods which are to leave, or have left.
func (s *State) begun() bool { return s.Rises > 0 }

// Turns tells that a Ready node is to be drained further, or that its requestor's time is to begin or to end.
func (t *Target) Turns() bool { return t.Shared() && (t.Behind() || t.Last != t.Given) }

// Turn gives a Ready node to its requestors once nothing more is to be drained, and takes it back where there is again:
// whether by now, or once another plan goes on.
func (t *Target) Turn(give, takeBack func()) (behind bool) {
	if !t.Turns() {
		return false
	}
	if t.Given {
		t.Given = false
		takeBack()
	}
	if !t.Behind() && t.Last {
		give()
	}
	return t.Behind()
}

// Gives tells that a Ready node is its requestors', and remembers it.
func (t *Target) Gives() bool {
	t.Given = t.Shared() && t.Last && !t.Behind()
	return t.Given || !t.Shared()
}

// Waited is what a node waits for that is drained to its targets, empty where that is its requestors' word.
func (t *Target) Waited() string {
	if !t.Shared() || t.Last && t.Waits == "" {
		return ""
	}
	return t.waitedFor()
}

// Release forgets what was done to a node that was given back.
func (t *Target) Release() { t.Drained, t.Given = 0, false }

// Plan is the targets as a drain's tiers; nothing is added to them.
func (t *Target) Plan() *spec.Plan {
	return &spec.Plan{Tiers: t.Targets, Include: []drainplan.PodType{}, Static: spec.SkipStatic}
}

// Ask has the lockstep told whether or not something changed.
func (t *Target) Ask() { t.Owed = t.Shared() }

// Idle tells that the lockstep knows what there is to know.
func (t *Target) Idle() bool { return !t.Shared() || !t.telling && !t.due() }

// due tells that the lockstep has to be told something. That a node is to be drained further it said itself.
func (t *Target) due() bool {
	if t.Owed || t.Told == nil {
		return true
	}
	now := t.standing()
	if now.Phase == api.Draining {
		now.Revision, now.Drained = t.Told.Revision, t.Told.Drained
	}
	return now != *t.Told
}

// standing is how far the maintenance is. What is given back is not drained.
func (t *Target) standing() Standing {
	s := t.Status()
	now := Standing{
		Revision: t.Revision, Rise: t.Drained, Phase: s.Phase, Waiting: s.WaitingFor,
		Drained: t.begun() && !t.Behind() && !s.Phase.Ended(),
	}
	if t.Stands() || s.Phase == api.Ready {
		now.Waiting = "" // the lockstep itself has said for what
	}
	if d := s.Drain; d != nil && s.Phase == api.Draining {
		now.Evacuating = min(d.Terminating, d.Remaining)
		now.Pending = d.Remaining - now.Evacuating
	}
	return now
}

// progress is what the lockstep is told of it.
func (t *Target) progress(now Standing) api.NodeProgress {
	s := t.Status()
	p := api.NodeProgress{
		Node: s.Spec.Node, RunID: s.RunID, Phase: now.Phase, Revision: now.Revision, Targets: t.Targets, Gang: t.Gang, Plans: t.Plans,
		Drained: now.Drained, Pending: now.Pending, Evacuating: now.Evacuating, Waiting: now.Waiting, Ended: now.Phase.Ended(),
	}
	if p.Ended {
		p.Failure = s.Failure
	}
	return p
}

// Emptied is what the lockstep is told once the drain has emptied the node; the drain says it, which saves a task for every
// tier of every node.
func (t *Target) Emptied() api.NodeProgress {
	t.spoken = t.telling
	return t.progress(Standing{Revision: t.Revision, Phase: api.Draining, Drained: true})
}

// NoteEmptied notes that the node is drained as far as it was to be when it had risen so often, and whether the lockstep was
// told that and nothing that it could hear after that.
func (t *Target) NoteEmptied(rises int, told bool) {
	t.Drained = rises
	if told && !t.spoken && !t.Behind() {
		t.Told = &Standing{Revision: t.Revision, Rise: rises, Phase: api.Draining, Drained: true}
	}
}

// Open begins to tell the lockstep.
func (t *Target) Open() {
	if t.Shared() {
		workflow.GoNamed(t.Life, "report to the lockstep", t.report)
	}
}

// report tells the lockstep of every change as long as the maintenance runs, and again where it hears nothing from there.
func (t *Target) report(ctx workflow.Context) {
	pause := tellAgainFirst
	for {
		revision := t.Revision
		news, err := t.AwaitUpTo(ctx, pause, "tell the lockstep again", func() bool { return t.over || t.due() })
		if err != nil {
			return
		}
		if pause = min(2*pause, tellAgainLast); news || t.Revision != revision {
			pause = tellAgainFirst
		}
		if t.due() && !t.Owed {
			if _, err := t.AwaitUpTo(ctx, tellWithin, "the next word to the lockstep", func() bool { return t.over || t.Owed || t.emptied() }); err != nil {
				return
			}
			if !t.over && !t.due() {
				continue
			}
		}
		if early := tellEvery - workflow.Now(ctx).Sub(t.toldAt); early > 0 && !t.over {
			if _, err := t.AwaitUpTo(ctx, early, "the next answer to the lockstep", func() bool { return t.over || t.emptied() }); err != nil {
				return
			}
		}
		if t.over {
			return
		}
		t.tell(ctx)
	}
}

// emptied tells that the node has been drained to its targets since the last word, which the other nodes wait for. Targets are
// few, so that this need not wait its turn.
func (t *Target) emptied() bool {
	now := t.standing()
	return now.Drained && (t.Told == nil || !t.Told.Drained || t.Told.Rise != now.Rise)
}

func (t *Target) tell(ctx workflow.Context) {
	now := t.standing()
	t.telling, t.spoken, t.Owed, t.Told, t.toldAt = true, true, false, &now, workflow.Now(ctx)
	defer func() { t.telling = false }()
	if err := workflow.SignalExternalWorkflow(ctx, t.Lockstep(), "", api.SignalNodeProgress, t.progress(now)).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Info("the lockstep was not told", "error", err)
	}
}

// Close tells the lockstep of the end, as the last word.
func (t *Target) Close() {
	if !t.Shared() {
		return
	}
	t.over = true
	if err := workflow.Await(t.Life, func() bool { return !t.telling }); err != nil {
		workflow.GetLogger(t.Life).Error("wait interrupted", "error", err)
	}
	t.tell(t.Life)
}
