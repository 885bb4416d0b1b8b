package plan

import (
	"errors"
	"fmt"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/notices"
	"drydock/rules/rollout"
	"drydock/workflows/inbox"
)

// handlers are the messages to a plan whose nodes go one after the other.
func (r *rolling) handlers() []inbox.Handler {
	return []inbox.Handler{
		inbox.On(api.MsgPause, r.checkPause, r.applyPause),
		inbox.On(api.MsgResume, r.checkResume, r.applyResume),
		inbox.On(api.MsgSkip, r.checkSkip, r.applySkip),
		inbox.On(api.MsgRetry, r.checkRetry, r.applyRetry),
		inbox.On(api.MsgApprove, r.checkApprove, r.applyApprove),
		refusing[api.SetStage](api.MsgSetStage, "the plan is rolling and has no stages: its nodes go in their turn").Since(changeStages),
		refusing[api.SetSelector](api.MsgSetSelector, "the plan is rolling, and its nodes are chosen for good: leave some out with skip, or start another plan").Since(changeStages),
	}
}

// listen takes what maintenances say of themselves.
func (r *rolling) listen(in *inbox.Inbox) { inbox.Receive(in, api.SignalNodeNews, r.flights.heard) }

func (r *rolling) checkPause(m api.Simple) error {
	if err := r.open(m.Run); err != nil {
		return err
	}
	if r.state.Progress.Paused {
		return errors.New("the plan is paused already")
	}
	return nil
}

func (r *rolling) applyPause(m api.Simple) string {
	r.pause(sentence("paused", m.By, m.Comment))
	return "nothing more is begun; what runs goes on"
}

func (r *rolling) checkResume(m api.Simple) error {
	if err := r.open(m.Run); err != nil {
		return err
	}
	if !r.state.Progress.Paused {
		return errors.New("the plan is not paused")
	}
	return nil
}

func (r *rolling) applyResume(m api.Simple) string {
	r.state.Progress.Paused = false
	rollout.Forgive(r.state.Nodes)
	r.enter(api.PlanRunning, "")
	r.news.tell(notices.PlanResumed, sentence("resumed", m.By, m.Comment))
	return "the plan goes on"
}

func (r *rolling) checkApprove(m api.Simple) error {
	if err := r.open(m.Run); err != nil {
		return err
	}
	if c := r.spec.Strategy.Canary; c == nil || !c.Approval {
		return errors.New("the plan needs no approval (strategy.canary.approval)")
	}
	if r.state.Progress.Approved || r.state.Progress.CanaryPassed {
		return errors.New("it was approved already")
	}
	return nil
}

func (r *rolling) applyApprove(m api.Simple) string {
	r.state.Progress.Approved = true
	r.news.note(sentence("approved", m.By, m.Comment))
	return "the plan goes on once its canary is done"
}

// planned finds a node of the plan.
func (r *rolling) planned(m api.NodeOfPlan) (*rollout.Node, error) {
	if err := r.open(m.Run); err != nil {
		return nil, err
	}
	if m.Node == "" {
		return nil, errors.New("node: is missing: say which node of the plan")
	}
	n := r.node(m.Node)
	if n == nil {
		return nil, fmt.Errorf("node: the plan has no node %.253q", m.Node)
	}
	return n, nil
}

func (r *rolling) checkSkip(m api.NodeOfPlan) error {
	n, err := r.planned(m)
	switch {
	case err != nil:
		return err
	case n.State == rollout.Held:
		return fmt.Errorf("node %s is out of service and needs a decision: repair it and send its maintenance done, or give it back with cancel and release", m.Node)
	case n.State.Over():
		return fmt.Errorf("node %s is %s", m.Node, n.State.Word())
	}
	return nil
}

func (r *rolling) applySkip(m api.NodeOfPlan) string {
	n, err := r.planned(m)
	if err != nil {
		return "ignored: " + err.Error()
	}
	why := sentence("skipped", m.By, m.Comment)
	if n.State == rollout.Waiting {
		n.State, n.Since, n.Note = rollout.Skipped, r.now().Unix(), bounds.Cut(why, maxNote)
		return m.Node + " is left out"
	}
	if r.state.Skipping == nil {
		r.state.Skipping = map[string]bool{}
	}
	r.state.Skipping[m.Node] = true
	r.flights.tell(m.Node, api.MsgCancel, api.Cancel{Message: r.said(why), Run: n.RunID, BeforeReady: true})
	return m.Node + " is left out, unless it is Ready already: then it is finished"
}

func (r *rolling) checkRetry(m api.NodeOfPlan) error {
	n, err := r.planned(m)
	if err == nil && n.State != rollout.Failed && n.State != rollout.Skipped && n.State != rollout.Held {
		err = fmt.Errorf("node %s is %s: retry is for nodes that failed or were skipped", m.Node, n.State.Word())
	}
	return err
}

func (r *rolling) applyRetry(m api.NodeOfPlan) string {
	n, err := r.planned(m)
	if err != nil {
		return "ignored: " + err.Error()
	}
	if n.State == rollout.Held {
		r.flights.tell(m.Node, api.MsgRetry, api.Simple{Message: r.said(sentence("retry", m.By, m.Comment)), Run: n.RunID})
		return "the maintenance of " + m.Node + " is told to try again"
	}
	n.State, n.Since, n.Note, n.Tries, n.NotBefore, n.Forgiven = rollout.Waiting, r.now().Unix(), "", 0, 0, false
	r.state.Digest = matchAgain
	return m.Node + " is begun anew in its turn"
}
