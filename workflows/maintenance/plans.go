package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/drainplan"
	"drydock/rules/schedule"
	"drydock/rules/spec"
)

// targetState is what the next run of the maintenance has to know. The zero value knows no target.
type targetState struct {
	// Revision is that of the latest signal, and the next six fields are its content.
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
	// Reported is the last report to the lockstep. Owed: the lockstep wants one, whether or not something changed.
	Reported *standing `json:"told,omitempty"`
	Owed     bool      `json:"owed,omitempty"`
}

// standing is how far a maintenance is: Rise is the count of targetState.Rises up to which the node is drained.
type standing struct {
	Revision   int       `json:"revision,omitempty"`
	Rise       int       `json:"rise,omitempty"`
	Phase      api.Phase `json:"phase"`
	Drained    bool      `json:"drained,omitempty"`
	Pending    int       `json:"pending,omitempty"`
	Evacuating int       `json:"evacuating,omitempty"`
	Waiting    string    `json:"waiting,omitempty"`
}

// plans are the ones that the maintenance is for. Those that share it say, by their lockstep, how far to drain its node,
// and get reports of how far it is. The one that began it learns when somebody has to decide about the node, and when no longer.
type plans struct {
	*core
	requestors *requestors
	validator  *validator
	*targetState
	// sending is set while a report is on its way to the lockstep, closed once the end was reported.
	sending, closed bool
	// sentMeanwhile: a report went to the lockstep since the present drain began, which may come there after the drain's own.
	sentMeanwhile bool
	sentAt        time.Time
	// reportedHeld is what the plan that began the maintenance knows; reporting is set while a signal to it is on its way.
	reportedHeld, reporting bool
}

const (
	// reportWithin delays reports that nobody waits for, so that one report has all that happens meanwhile.
	reportWithin = 5 * time.Second
	// reportEvery is the shortest time between two reports, but for the one that the node is drained.
	reportEvery = time.Second
	// reportAgainFirst and reportAgainLast bound the pause before a report is repeated to a lockstep that sends nothing: it may
	// have been started anew, and know nothing.
	reportAgainFirst = 5 * time.Minute
	reportAgainLast  = time.Hour
	// maxLeap is how far a revision may be ahead of the one before: whoever sends a forged one must not shut out all later
	// ones, which go on from there.
	maxLeap = 1 << 42
	// maxPlans bounds the names of plans, shownTargets the targets that the status has.
	maxPlans     = 100
	shownTargets = 50
)

func (p *plans) lockstepID() string { return api.LockstepID(p.cluster) }

// receive takes a target, which anybody can send. One that comes with the start is read before it is known
// whether there are plans.
func (p *plans) receive(n api.NodeTarget) {
	if p.control.refuse() != nil || p.journal.ending() != nil || p.journal.phase() == api.Validating {
		p.ask()
		return
	}
	err := p.thisRun(n.Run)
	if err == nil && p.journal.status().Spec.Node != "" && !p.spec.Lockstep {
		err = errors.New("no plans share this maintenance (lockstep)")
	}
	if err == nil {
		err = p.take(n)
	}
	if err != nil {
		p.journal.received(api.SignalTarget, api.Message{}, api.Ignored, ignored+err.Error())
		return
	}
	p.show()
}

// begin begins with what came before the specification was read; what was not meant for the maintenance is forgotten.
func (p *plans) begin() {
	if !p.spec.Lockstep {
		*p.targetState = targetState{}
	}
	p.show()
}

// show says how far the maintenance is to go, and what it waits for by now.
func (p *plans) show() {
	if !p.spec.Lockstep {
		return
	}
	p.slot.join(p.Gang)
	p.journal.change(func(s *api.Status) {
		s.Lockstep = &api.LockstepStatus{
			Revision: p.Revision, Targets: p.Targets[:min(len(p.Targets), shownTargets)], Last: p.Last, Plans: p.Plans,
		}
	})
	if p.journal.status().Phase == api.Cordoned || p.stands() {
		p.journal.waiting(p.waitedFor())
	}
	p.requestors.show()
}

// take takes a target; the error says why it does not count. An older one changes nothing, and pods that were to leave stay so.
func (p *plans) take(n api.NodeTarget) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if n.Revision-p.Revision > maxLeap {
		return fmt.Errorf("revision: %d is too far ahead of %d", n.Revision, p.Revision)
	}
	if n.Revision <= p.Revision {
		p.Owed = true // it asks, or does not know what the latest is
		return nil
	}
	p.Owed = p.Owed || n.Tell
	asked, err := drainplan.New(n.Targets, nil)
	if err != nil {
		return err
	}
	all, more := drainplan.Union(p.Targets, asked.Entries())
	if len(all) > api.MaxTargets {
		return fmt.Errorf("targets: with those before they are %d entries: at most %d are taken", len(all), api.MaxTargets)
	}
	if more {
		p.Targets, p.Rises = all, p.Rises+1
	}
	p.Revision, p.Last, p.Gang = n.Revision, n.Last, n.Gang
	p.Further = n.Further && !n.Last
	p.Waits = bounds.Cut(n.Waits, bounds.Text)
	p.Plans = n.Plans[:min(len(n.Plans), maxPlans)]
	bounds.Fit(&p.Plans)
	return nil
}

// awaitFirst waits until the plans have said how far to go: before that no slot is asked for.
func (p *plans) awaitFirst() error {
	if !p.spec.Lockstep || p.Revision > 0 {
		return nil
	}
	if s := p.journal.status(); s.Phase != api.Pending || len(s.Transitions) == 0 {
		p.journal.enter(api.Pending, "")
	}
	p.journal.waiting(fmt.Sprintf(`its first target: no plan has said yet how far to drain the node. Workflow %s sends it (signal %q) where a `+
		`maintenance plan of strategy allAtOnce has the node; %q ends it`, p.lockstepID(), api.SignalTarget, api.MsgCancel))
	if err := p.control.awaitOrContinue(func() bool { return p.Revision > 0 }); err != nil {
		return err
	}
	p.journal.waiting("")
	return nil
}

// holdCordoned holds the node as long as the plans do not drain it.
func (p *plans) holdCordoned() error {
	if !p.spec.Lockstep || p.begun() {
		return nil
	}
	if p.journal.status().Phase != api.Cordoned { // otherwise a run before this one began
		p.journal.enter(api.Cordoned, "")
	}
	p.journal.waiting(p.waitedFor())
	p.hold.showPhase()
	p.hold.showConditions()
	return p.control.awaitOrContinue(p.begun)
}

// waitedFor is what a node waits for that is not to be drained, or not further.
func (s *targetState) waitedFor() string {
	return cmp.Or(s.Waits, "the plans that share it: "+strings.Join(s.Plans, ", "))
}

// behind reports whether the node is to be drained further than it is.
func (s *targetState) behind() bool { return s.Rises > s.Drained }

// stands reports whether a node in the middle of its drain is drained as far as its plans have come, and is drained further once
// other nodes are as far.
func (p *plans) stands() bool {
	return p.spec.Lockstep && p.Further && p.begun() && !p.behind() && p.journal.status().Phase == api.Draining
}

// begun reports whether there are pods which are to leave, or have left.
func (s *targetState) begun() bool { return s.Rises > 0 }

// turns reports whether a Ready node is to be drained further, or that its requestor's time is to begin or to end.
func (p *plans) turns() bool { return p.spec.Lockstep && (p.behind() || p.Last != p.Given) }

// turn gives a Ready node to its requestors once nothing more is to be drained, and takes it back where there is again:
// whether by now, or once another plan goes on.
func (p *plans) turn(give, takeBack func()) (behind bool) {
	if !p.turns() {
		return false
	}
	if p.Given {
		p.Given = false
		takeBack()
	}
	if !p.behind() && p.Last {
		give()
	}
	return p.behind()
}

// gives reports whether a Ready node is its requestors', and remembers it.
func (p *plans) gives() bool {
	p.Given = p.spec.Lockstep && p.Last && !p.behind()
	return p.Given || !p.spec.Lockstep
}

// waited is what a node waits for that is drained to its targets, empty where that is its requestors' word.
func (p *plans) waited() string {
	if !p.spec.Lockstep || p.Last && p.Waits == "" {
		return ""
	}
	return p.waitedFor()
}

// release forgets what was done to a node that was given back.
func (p *plans) release() { p.Drained, p.Given = 0, false }

func (p *plans) plan() *spec.Plan {
	return &spec.Plan{Tiers: p.Targets, Include: []drainplan.PodType{}, Static: spec.SkipStatic}
}

// ask makes a report due whether or not something changed.
func (p *plans) ask() { p.Owed = p.spec.Lockstep }

// idle reports that the plans know what there is to know.
func (p *plans) idle() bool {
	return (!p.spec.Lockstep || !p.sending && !p.due()) && (p.planID == "" || !p.reporting && p.held() == p.reportedHeld)
}

// due reports whether the lockstep lacks something. That a node is to be drained further it knows.
func (p *plans) due() bool {
	if p.Owed || p.Reported == nil {
		return true
	}
	now := p.standing()
	if now.Phase == api.Draining {
		now.Revision, now.Drained = p.Reported.Revision, p.Reported.Drained
	}
	return now != *p.Reported
}

// standing is how far the maintenance is. What is given back is not drained.
func (p *plans) standing() standing {
	s := p.journal.status()
	now := standing{
		Revision: p.Revision, Rise: p.Drained, Phase: s.Phase, Waiting: s.WaitingFor,
		Drained: p.begun() && !p.behind() && !s.Phase.Ended(),
	}
	if p.stands() || s.Phase == api.Ready {
		now.Waiting = "" // the lockstep itself has said for what
	}
	if d := s.Drain; d != nil && s.Phase == api.Draining {
		now.Evacuating = min(d.Terminating, d.Remaining)
		now.Pending = d.Remaining - now.Evacuating
	}
	return now
}

func (p *plans) progress(now standing) api.NodeProgress {
	s := p.journal.status()
	n := api.NodeProgress{
		Node: s.Spec.Node, RunID: s.RunID, Phase: now.Phase, Revision: now.Revision, Targets: p.Targets, Gang: p.Gang, Plans: p.Plans,
		Drained: now.Drained, Pending: now.Pending, Evacuating: now.Evacuating, Waiting: now.Waiting, Ended: now.Phase.Ended(),
	}
	if n.Ended {
		n.Failure = s.Failure
	}
	return n
}

// emptiedProgress is the report that the node is empty. The drain sends it, which saves a workflow task for every tier of every node.
func (p *plans) emptiedProgress() api.NodeProgress {
	p.sentMeanwhile = p.sending
	return p.progress(standing{Revision: p.Revision, Phase: api.Draining, Drained: true})
}

// noteEmptied notes that the node is drained as far as it was to be when it had risen so often, and whether the drain
// reported that, and no later report could arrive after it.
func (p *plans) noteEmptied(rises int, reported bool) {
	p.Drained = rises
	if reported && !p.sentMeanwhile && !p.behind() {
		p.Reported = &standing{Revision: p.Revision, Rise: rises, Phase: api.Draining, Drained: true}
	}
}
