package plan

import (
	"errors"
	"fmt"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/controller"
)

var messages = []controller.Message[*maintenancePlan]{
	{Name: api.MsgPause, Payload: pause{}},
	{Name: api.MsgResume, Payload: resume{}},
	{Name: api.MsgApprove, Payload: approve{}},
	{Name: api.MsgSkip, Payload: skip{}},
	{Name: api.MsgRetry, Payload: retry{}},
	{Name: api.MsgCancel, Payload: cancel{}},
	{Name: api.MsgSetPace, Payload: setPace{}},
	{Name: api.MsgSetStage, Payload: setStage{}},
	{Name: api.MsgSetSelector, Payload: setSelector{}},
	{Name: api.MsgReportTo, Payload: reportTo{}},
	{Name: api.SignalNodeNews, Payload: nodeNews{}, FromWorkflows: true},
	{Name: api.SignalPlanProgress, Payload: progress{}, FromWorkflows: true},
}

// accepts refuses messages to a plan that is being ended, or to an earlier plan of its name.
func (p *maintenancePlan) accepts(run string) error {
	if run != "" && run != p.Info.Run && run != p.Info.Current {
		return fmt.Errorf("it is meant for run %s, and this is run %s", run, p.Info.Run)
	}
	if p.Stop != "" || p.Phase.Ended() {
		return errors.New("the plan is ending")
	}
	return nil
}

// rolls refuses a message that is for rolling plans; instead says what to do with a staged one.
func (p *maintenancePlan) rolls(run, instead string) error {
	if p.Staged != nil {
		return errors.New("the plan is of strategy allAtOnce: " + instead)
	}
	return p.accepts(run)
}

// hasStages refuses a message that is for staged plans; instead says what to do with a rolling one.
func (p *maintenancePlan) hasStages(run, instead string) error {
	if p.Staged == nil {
		return errors.New("the plan is rolling" + instead)
	}
	return p.accepts(run)
}

func sentence(what string, who api.Message) string {
	if who.By != "" {
		what += " by " + who.By
	}
	if who.Comment != "" {
		what += ": " + who.Comment
	}
	return bounds.Cut(what, bounds.Text)
}

// pause keeps anything new from beginning.
type pause struct{ api.Simple }

func (m pause) Check(p *maintenancePlan, _ time.Time) error {
	err := p.rolls(m.Run, "its nodes go together, and none is begun later: stop the drains with freeze --running, or end it with set-stage Complete")
	if err == nil && p.Progress.Paused {
		err = errors.New("the plan is paused already")
	}
	return err
}

func (m pause) Apply(p *maintenancePlan, now time.Time) string {
	p.pause(sentence("paused", m.Message), now)
	return "nothing more is begun; what runs goes on"
}

type resume struct{ api.Simple }

func (m resume) Check(p *maintenancePlan, _ time.Time) error {
	err := p.rolls(m.Run, "it is never paused: go on with set-stage")
	if err == nil && !p.Progress.Paused {
		err = errors.New("the plan is not paused")
	}
	return err
}

func (m resume) Apply(p *maintenancePlan, now time.Time) string {
	p.Progress.Paused = false
	plan.Forgive(p.Nodes)
	p.enter(api.PlanRunning, "", now)
	p.announce(notices.PlanResumed, sentence("resumed", m.Message), now)
	return "the plan goes on"
}

type approve struct{ api.Simple }

func (m approve) Check(p *maintenancePlan, _ time.Time) error {
	if err := p.rolls(m.Run, "it has no canary: go on with set-stage"); err != nil {
		return err
	}
	if c := p.spec.Strategy.Canary; c == nil || !c.Approval {
		return errors.New("the plan needs no approval (strategy.canary.approval)")
	}
	if p.Progress.Approved || p.Progress.CanaryPassed {
		return errors.New("it was approved already")
	}
	return nil
}

func (m approve) Apply(p *maintenancePlan, now time.Time) string {
	p.Progress.Approved = true
	p.note(sentence("approved", m.Message), now)
	return "the plan goes on once its canary is done; a canary that fails has to be approved again"
}

func (p *maintenancePlan) planned(name string) (*plan.Node, error) {
	if name == "" {
		return nil, errors.New("node: is missing: say which node of the plan")
	}
	n := p.node(name)
	if n == nil {
		return nil, fmt.Errorf("node: the plan has no node %.253q", name)
	}
	return n, nil
}

type skip struct{ api.NodeOfPlan }

func (m skip) Check(p *maintenancePlan, _ time.Time) error {
	if err := p.rolls(m.Run, "leave a node out with set-selector before its stage is set, or cancel its maintenance (requestor plans)"); err != nil {
		return err
	}
	n, err := p.planned(m.Node)
	switch {
	case err != nil:
		return err
	case n.State == plan.Held:
		return fmt.Errorf("node %s is out of service and needs a decision: repair it and send its maintenance done, or give it back with cancel and release", m.Node)
	case n.State.Over():
		return fmt.Errorf("node %s is %s", m.Node, n.State.Word())
	}
	return nil
}

func (m skip) Apply(p *maintenancePlan, now time.Time) string {
	n := p.node(m.Node) // it was checked
	why := sentence("skipped", m.Message)
	if p.Refused[m.Node] {
		p.release(n, now)
	}
	if n.State == plan.Waiting {
		setState(n, plan.Skipped, why, now)
		return m.Node + " is left out"
	}
	p.Skipping[m.Node] = true
	p.Orders[m.Node] = order{api.MsgCancel, why}
	return m.Node + " is left out, unless it is Ready already: then it is finished"
}

type retry struct{ api.NodeOfPlan }

func (m retry) Check(p *maintenancePlan, now time.Time) error {
	if err := p.rolls(m.Run, "send retry to the node's maintenance (requestor plans); one that has ended is begun anew where set-selector leaves its node out and then chooses it again"); err != nil {
		return err
	}
	n, err := p.planned(m.Node)
	switch {
	case p.isLate(now) && (n == nil || n.State != plan.Held):
		return errors.New("no node is begun any more: the time of strategy.beginWithin is over")
	case spec.NodeName(m.Node) == nil && p.MayRun && !p.Known && len(p.LateRetries) < plan.MaxAtOnce:
		return nil // the plan was reset, and the node may have failed since
	case err == nil && !canRetry(n):
		return fmt.Errorf("node %s is %s: retry is for nodes that failed or were skipped", m.Node, n.State.Word())
	}
	return err
}

func (m retry) Apply(p *maintenancePlan, now time.Time) string {
	n, why := p.node(m.Node), sentence("retry", m.Message)
	if n == nil || !canRetry(n) {
		p.LateRetries[m.Node] = why
		return m.Node + " is begun anew if it is found to have failed"
	}
	return p.retry(n, why, now)
}

type cancel struct{ api.Cancel }

func (m cancel) Check(p *maintenancePlan, _ time.Time) error {
	if m.Release || m.BeforeReady {
		return errors.New("release, beforeReady: are a maintenance's: a plan never gives back nodes that are worked on")
	}
	return p.accepts(m.Run)
}

func (m cancel) Apply(p *maintenancePlan, now time.Time) string {
	effect := "nothing more is begun; nodes that are not Ready are given back, those that are Ready are finished"
	switch {
	case p.Staged != nil && p.Staged.Stage == plan.Idle && !holding(p.Nodes):
		effect = "the plan ends: it has touched no node"
	case p.Staged != nil:
		effect = "the plan runs stage Complete: its nodes are given back, and then it ends"
	}
	p.stop(api.PlanCancelled, sentence("cancelled", m.Message), now)
	return effect
}

type setPace struct{ api.SetPace }

func (m setPace) Check(p *maintenancePlan, _ time.Time) error {
	if err := p.rolls(m.Run, "its nodes go together, as far as the limits let them"); err != nil {
		return err
	}
	switch {
	case m.MaxParallel.IsZero():
		return errors.New("maxParallel: is missing: say how many nodes at a time")
	case m.MaxParallel.Of(100) == 0:
		return fmt.Errorf("maxParallel: %s lets no node go: want 1 or more, or pause the plan (drydock plan pause)", m.MaxParallel)
	case m.MaxParallel.Equal(p.Progress.Pace(p.spec.Strategy)):
		return fmt.Errorf("the plan works on %s at a time already", m.MaxParallel)
	}
	return nil
}

func (m setPace) Apply(p *maintenancePlan, now time.Time) string {
	before := p.Progress.Pace(p.spec.Strategy)
	p.Progress.MaxParallel = m.MaxParallel
	p.note(sentence(fmt.Sprintf("%s at a time instead of %s", m.MaxParallel, before), m.Message), now)
	return m.MaxParallel.String() + " at a time from now on; what runs goes on"
}

type setStage struct{ api.SetStage }

func (m setStage) Check(p *maintenancePlan, _ time.Time) error {
	if err := p.hasStages(m.Run, " and has no stages: its nodes go in their turn"); err != nil {
		return err
	}
	return p.Staged.Stage.To(m.Stage)
}

func (m setStage) Apply(p *maintenancePlan, now time.Time) string {
	p.enterStage(m.Stage, m.Message, now)
	p.Staged.Set = p.Staged.Revision
	switch m.Stage {
	case plan.Cordon:
		return "stage Cordon: its nodes become unschedulable"
	case plan.Drain:
		return "stage Drain: its nodes become unschedulable, and their pods leave tier by tier"
	default:
		return "stage Complete: its nodes are given back, and then the plan ends"
	}
}

// Settled answers the update whether the lockstep refuses the stage. An answer that does not come in time changes nothing: the plan keeps
// waiting, and the status shows a later refusal.
func (m setStage) Settled(p *maintenancePlan) (done bool, err error) {
	s := p.Staged
	if s.Refused >= s.Set {
		err = fmt.Errorf("the stage is refused, and is %s again: %s", s.Stage, s.RefusedWhy)
	}
	return err != nil || s.Answered >= s.Set || s.Stage == plan.Complete || p.Phase.Ended(), err
}

// setSelector has a staged plan choose its nodes otherwise.
type setSelector struct{ api.SetSelector }

func (m setSelector) Check(p *maintenancePlan, _ time.Time) error {
	if err := p.hasStages(m.Run, ", and its nodes are chosen for good: leave some out with skip, or start another plan"); err != nil {
		return err
	}
	if p.Staged.Stage == plan.Complete {
		return errors.New("the plan is in stage Complete, and takes no more nodes")
	}
	return m.SetSelector.Check()
}

func (m setSelector) Apply(p *maintenancePlan, now time.Time) string {
	p.Staged.Selection = &m.Selection
	p.Digest, p.ListedAt = matchAgain, time.Time{}
	p.note(sentence("its nodes are chosen otherwise", m.Message), now)
	return "its nodes are chosen anew; those that it holds stay until it is completed"
}

// nodeNews is what a maintenance says of itself.
type nodeNews struct{ api.NodeNews }

func (m nodeNews) Check(p *maintenancePlan, _ time.Time) error {
	switch n := p.node(m.Node); {
	case p.Staged != nil:
		return errors.New("the plan has begun no maintenance: the lockstep has")
	case n == nil && p.Known:
		return fmt.Errorf("node: the plan has no node %.253q", m.Node)
	case n != nil && n.RunID != m.RunID && n.RunID != "":
		return fmt.Errorf("it is run %.100s of the maintenance of %s, and the present one is %s", m.RunID, m.Node, n.RunID)
	}
	return nil
}

// Apply keeps the news of a maintenance whose run is not known until it is.
func (m nodeNews) Apply(p *maintenancePlan, now time.Time) string {
	switch n := p.node(m.Node); {
	case n != nil && n.RunID != "":
		p.takeNews(m.NodeNews, now)
	case (!p.Known || p.Sought[m.Node]) && len(p.Early) < plan.MaxAtOnce:
		m.Why = bounds.Words(m.Why, maxNote)
		p.Early[m.Node] = m.NodeNews
	}
	return ""
}
