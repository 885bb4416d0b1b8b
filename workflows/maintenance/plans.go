package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
)

type targetState struct {
	// NodeTarget is the latest target; its Targets are those of all.
	api.NodeTarget
	// Rises counts how often Targets rose, Drained is the count up to which the node is drained.
	Rises   int `json:"rises,omitempty"`
	Drained int `json:"drained,omitempty"`
	// Given is set while nothing more is to be drained, and the requestor's time runs.
	Given bool `json:"given,omitempty"`
	// Reported is the last report to the lockstep. Owed is set where the lockstep wants one although nothing changed.
	Reported *standing `json:"reported,omitempty"`
	Owed     bool      `json:"owed,omitempty"`
}

// standing is how far a maintenance is. Rise is the count of targetState.Rises up to which the node is drained.
type standing struct {
	Revision   int       `json:"revision,omitempty"`
	Rise       int       `json:"rise,omitempty"`
	Phase      api.Phase `json:"phase"`
	Drained    bool      `json:"drained,omitempty"`
	Pending    int       `json:"pending,omitempty"`
	Evacuating int       `json:"evacuating,omitempty"`
	Waiting    string    `json:"waiting,omitempty"`
}

// plans are the plans of the maintenance. The lockstep of those that share it sends how far to drain the node, and gets reports of how far
// it is. The plan that began it gets a report when somebody has to decide about the node, and when no longer.
type plans struct {
	*core
	requestors *requestors
	validator  *validator
	*targetState
	// sending is set while a report is on its way to the lockstep, closed once the end was reported.
	sending, closed bool
	// sentMeanwhile is set where a report went to the lockstep since the drain began: it may arrive after the drain's own.
	sentMeanwhile bool
	sentAt        time.Time
	// reportedHeld is what the plan that began the maintenance knows; reporting is set while a signal to it is on its way.
	reportedHeld, reporting bool
}

const (
	// reportWithin delays reports that are not urgent, so that one report has all changes of that time.
	reportWithin = 5 * time.Second
	// reportEvery is the shortest time between two reports, except the one that the node is drained.
	reportEvery = time.Second
	// reportAgainFirst and reportAgainLast bound the pause before a report is repeated to a lockstep that sends nothing: it may
	// be a new one that knows nothing.
	reportAgainFirst = 5 * time.Minute
	reportAgainLast  = time.Hour
	// maxLeap is how far a revision may be ahead of the one before: a forged one must not shut out all later ones.
	maxLeap = 1 << 42
	// maxPlans bounds the names of plans, shownTargets the targets that the status has.
	maxPlans     = 100
	shownTargets = 50
)

func (p *plans) lockstepID() string { return api.LockstepID(p.cluster) }

// receive takes a target, which anybody can send. One that comes with the start is read before the specification is.
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

// begin keeps the target that came before the specification was read, if plans share the maintenance.
func (p *plans) begin() {
	if !p.spec.Lockstep {
		*p.targetState = targetState{}
	}
	p.show()
}

// show shows how far the maintenance is to go, and what it waits for now.
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

// take takes a target, or returns why it does not count. An older one changes nothing, and no target takes back an earlier one's pods.
func (p *plans) take(n api.NodeTarget) error {
	if err := n.Validate(); err != nil {
		return err
	}
	if n.Revision-p.Revision > maxLeap {
		return fmt.Errorf("revision: %d is too far ahead of %d", n.Revision, p.Revision)
	}
	if n.Revision <= p.Revision {
		p.Owed = true // its sender does not know the latest
		return nil
	}
	p.Owed = p.Owed || n.Report
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
	p.NodeTarget = api.NodeTarget{
		Revision: n.Revision, Targets: p.Targets, Last: n.Last, Further: n.Further && !n.Last, Gang: n.Gang,
		Waits: bounds.Cut(n.Waits, bounds.Text), Plans: n.Plans[:min(len(n.Plans), maxPlans)],
	}
	bounds.Fit(&p.Plans)
	return nil
}

// awaitFirst waits for the first target: without it no slot is requested.
func (p *plans) awaitFirst() error {
	if !p.spec.Lockstep || p.Revision > 0 {
		return nil
	}
	p.journal.ensure(api.Pending, "")
	p.journal.waiting(fmt.Sprintf(`its first target: no plan has said yet how far to drain the node. Workflow %s sends it (signal %q) where a `+
		`maintenance plan of strategy allAtOnce has the node; %q ends it`, p.lockstepID(), api.SignalTarget, api.MsgCancel))
	if err := p.control.awaitOrContinue(func() bool { return p.Revision > 0 }); err != nil {
		return err
	}
	p.journal.waiting("")
	return nil
}

func (p *plans) holdCordoned() error {
	if !p.spec.Lockstep || p.begun() {
		return nil
	}
	p.journal.ensure(api.Cordoned, "")
	p.journal.waiting(p.waitedFor())
	p.hold.showPhase()
	p.hold.showConditions()
	return p.control.awaitOrContinue(p.begun)
}

// waitedFor is what a node waits for that is not drained now.
func (s *targetState) waitedFor() string {
	return cmp.Or(s.Waits, "the plans that share it: "+strings.Join(s.Plans, ", "))
}

// behind reports whether the node is to be drained further than it is.
func (s *targetState) behind() bool { return s.Rises > s.Drained }

// stands reports whether a Draining node is drained to its targets, and waits until other nodes are, to be drained further.
func (p *plans) stands() bool {
	return p.spec.Lockstep && p.Further && p.begun() && !p.behind() && p.journal.status().Phase == api.Draining
}

// begun reports whether a target has named pods to drain.
func (s *targetState) begun() bool { return s.Rises > 0 }

// turns reports whether a Ready node is to be drained further, or its requestor's time is to begin or to end.
func (p *plans) turns() bool { return p.spec.Lockstep && (p.behind() || p.Last != p.Given) }

// turn gives a Ready node to its requestors once nothing more is to be drained, and takes it back where a plan drains it further.
func (p *plans) turn() (behind bool) {
	if !p.turns() {
		return false
	}
	if p.Given {
		p.Given = false
		p.requestors.setDeadline(0)
	}
	if !p.behind() && p.Last {
		p.requestors.handOver("")
	}
	return p.behind()
}

// gives reports whether a Ready node is its requestors' now, and remembers that.
func (p *plans) gives() bool {
	p.Given = p.spec.Lockstep && p.Last && !p.behind()
	return p.Given || !p.spec.Lockstep
}

// waited is what a node waits for that is drained to its targets, empty if it waits for its requestors.
func (p *plans) waited() string {
	if !p.spec.Lockstep || p.Last && p.Waits == "" {
		return ""
	}
	return p.waitedFor()
}

func (p *plans) ask() { p.Owed = p.spec.Lockstep }

// idle reports whether the plans and the lockstep have the latest report.
func (p *plans) idle() bool {
	return (!p.spec.Lockstep || !p.sending && !p.due()) && (p.planID == "" || !p.reporting && p.held() == p.reportedHeld)
}

// due reports whether the lockstep lacks a report. It knows by itself that a node is to be drained further.
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

func (p *plans) standing() standing {
	s := p.journal.status()
	now := standing{
		Revision: p.Revision, Rise: p.Drained, Phase: s.Phase, Waiting: s.WaitingFor,
		Drained: p.begun() && !p.behind() && !s.Phase.Ended(),
	}
	if p.stands() || s.Phase == api.Ready {
		now.Waiting = "" // the lockstep knows
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

// emptiedProgress is the report that the node is empty. The drain sends it, which saves a workflow task per tier and node.
func (p *plans) emptiedProgress() api.NodeProgress {
	p.sentMeanwhile = p.sending
	return p.progress(standing{Revision: p.Revision, Phase: api.Draining, Drained: true})
}

// noteEmptied notes that the node is drained up to a count of rises. Reported is set where the drain reported that; it is the lockstep's
// latest report unless another was sent meanwhile.
func (p *plans) noteEmptied(rises int, reported bool) {
	p.Drained = rises
	if reported && !p.sentMeanwhile && !p.behind() {
		p.Reported = &standing{Revision: p.Revision, Rise: rises, Phase: api.Draining, Drained: true}
	}
}
