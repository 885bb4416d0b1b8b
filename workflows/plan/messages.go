package plan

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/notices"
	"drydock/rules/rollout"
	"drydock/workflows/inbox"
)

// office takes the messages of people and scripts.
type office struct {
	*core
	flights *flights
	news    *bulletin
	// pause pauses the plan.
	pause func(why string)
}

// listen takes every message from the first moment on.
func (o *office) listen(root workflow.Context) error {
	err := workflow.SetQueryHandlerWithOptions(root, api.QueryStatus, func(raw converter.RawValue) (api.PlanStatus, error) {
		asked, err := inbox.Decode[api.PlanStatusRequest](inbox.Payload(raw))
		if err != nil {
			return api.PlanStatus{}, err
		}
		return o.page(asked)
	}, workflow.QueryHandlerOptions{Description: "phase, counts, what it waits for, and a page of the nodes"})
	if err != nil {
		return err
	}
	in := inbox.New(o.ctx, inbox.Ears{
		Arrived: func() { o.signals++; o.dirty = true },
		Known:   o.knows,
		Applied: func(name string, who api.Message, effect string) { o.received(name, who, api.Applied, effect) },
		Refused: func(name string, who api.Message, outcome api.Outcome, why error) {
			o.received(name, who, outcome, "ignored: "+why.Error())
		},
	})
	if err := in.Take(
		inbox.On(api.MsgPause, o.checkPause, o.applyPause),
		inbox.On(api.MsgResume, o.checkResume, o.applyResume),
		inbox.On(api.MsgSkip, o.checkSkip, o.applySkip),
		inbox.On(api.MsgRetry, o.checkRetry, o.applyRetry),
		inbox.On(api.MsgApprove, o.checkApprove, o.applyApprove),
		inbox.On(api.MsgCancel, o.checkCancel, o.applyCancel),
	); err != nil {
		return err
	}
	inbox.Receive(in, api.SignalNodeNews, o.flights.heard)
	o.unread = in.Unread
	in.Open(nil)
	workflow.GoNamed(o.ctx, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		if o.checkCancel(api.Cancel{}) == nil {
			o.received("cancellation of the workflow", api.Message{}, api.Applied, o.applyCancel(api.Cancel{}))
		}
	})
	return nil
}

func (o *office) checkPause(m api.Simple) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	if o.state.Progress.Paused {
		return errors.New("the plan is paused already")
	}
	return nil
}

func (o *office) applyPause(m api.Simple) string {
	o.pause(sentence("paused", m.By, m.Comment))
	return "nothing more is begun; what runs goes on"
}

func (o *office) checkResume(m api.Simple) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	if !o.state.Progress.Paused {
		return errors.New("the plan is not paused")
	}
	return nil
}

func (o *office) applyResume(m api.Simple) string {
	o.state.Progress.Paused = false
	rollout.Forgive(o.state.Nodes)
	o.enter(api.PlanRunning, "")
	o.news.tell(notices.PlanResumed, sentence("resumed", m.By, m.Comment))
	return "the plan goes on"
}

func (o *office) checkApprove(m api.Simple) error {
	if err := o.open(m.Run); err != nil {
		return err
	}
	if c := o.spec.Strategy.Canary; c == nil || !c.Approval {
		return errors.New("the plan needs no approval (strategy.canary.approval)")
	}
	if o.state.Progress.Approved || o.state.Progress.CanaryPassed {
		return errors.New("it was approved already")
	}
	return nil
}

func (o *office) applyApprove(m api.Simple) string {
	o.state.Progress.Approved = true
	o.news.note(sentence("approved", m.By, m.Comment))
	return "the plan goes on once its canary is done"
}

// planned finds a node of the plan.
func (o *office) planned(m api.NodeOfPlan) (*rollout.Node, error) {
	if err := o.open(m.Run); err != nil {
		return nil, err
	}
	if m.Node == "" {
		return nil, errors.New("node: is missing: say which node of the plan")
	}
	n := o.node(m.Node)
	if n == nil {
		return nil, fmt.Errorf("node: the plan has no node %.253q", m.Node)
	}
	return n, nil
}

func (o *office) checkSkip(m api.NodeOfPlan) error {
	n, err := o.planned(m)
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

func (o *office) applySkip(m api.NodeOfPlan) string {
	n, err := o.planned(m)
	if err != nil {
		return "ignored: " + err.Error()
	}
	why := sentence("skipped", m.By, m.Comment)
	if n.State == rollout.Waiting {
		n.State, n.Since, n.Note = rollout.Skipped, o.now().Unix(), bounds.Cut(why, maxNote)
		return m.Node + " is left out"
	}
	if o.state.Skipping == nil {
		o.state.Skipping = map[string]bool{}
	}
	o.state.Skipping[m.Node] = true
	o.flights.tell(m.Node, api.MsgCancel, api.Cancel{Message: o.said(why), Run: n.RunID, BeforeReady: true})
	return m.Node + " is left out, unless it is Ready already: then it is finished"
}

func (o *office) checkRetry(m api.NodeOfPlan) error {
	n, err := o.planned(m)
	if err == nil && n.State != rollout.Failed && n.State != rollout.Skipped && n.State != rollout.Held {
		err = fmt.Errorf("node %s is %s: retry is for nodes that failed or were skipped", m.Node, n.State.Word())
	}
	return err
}

func (o *office) applyRetry(m api.NodeOfPlan) string {
	n, err := o.planned(m)
	if err != nil {
		return "ignored: " + err.Error()
	}
	if n.State == rollout.Held {
		o.flights.tell(m.Node, api.MsgRetry, api.Simple{Message: o.said(sentence("retry", m.By, m.Comment)), Run: n.RunID})
		return "the maintenance of " + m.Node + " is told to try again"
	}
	n.State, n.Since, n.Note, n.Tries, n.NotBefore, n.Forgiven = rollout.Waiting, o.now().Unix(), "", 0, 0, false
	o.state.Digest = matchAgain
	return m.Node + " is begun anew in its turn"
}

func (o *office) checkCancel(m api.Cancel) error {
	if m.Release || m.BeforeReady {
		return errors.New("release, beforeReady: are a maintenance's: a plan never gives back nodes that are worked on")
	}
	return o.open(m.Run)
}

func (o *office) applyCancel(m api.Cancel) string {
	o.flights.stop(api.PlanCancelled, sentence("cancelled", m.By, m.Comment))
	return "nothing more is begun; nodes that are not Ready are given back, those that are Ready are finished"
}

// sentence says who did something, and why.
func sentence(what, by, why string) string {
	if by != "" {
		what += " by " + by
	}
	if why != "" {
		what += ": " + why
	}
	return bounds.Cut(what, bounds.Text)
}
