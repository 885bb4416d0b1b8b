package plan

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/rollout"
	"drydock/workflows/inbox"
)

// handlers are the messages to a plan whose nodes go through stages together.
func (s *stages) handlers() []inbox.Handler {
	const rolls = "the plan is of strategy allAtOnce: "
	return []inbox.Handler{
		inbox.On(api.MsgSetStage, s.checkStage, s.applyStage).Answered(s),
		inbox.On(api.MsgSetSelector, s.checkSelector, s.applySelector),
		refusing[api.Simple](api.MsgPause, rolls+"its nodes go together, and none is begun later: stop the drains with freeze --running, or end it with set-stage Complete"),
		refusing[api.Simple](api.MsgResume, rolls+"it is never paused: go on with set-stage"),
		refusing[api.Simple](api.MsgApprove, rolls+"it has no canary: go on with set-stage"),
		refusing[api.NodeOfPlan](api.MsgSkip, rolls+"leave a node out with set-selector before its stage is set, or cancel its maintenance (requestor plans)"),
		refusing[api.NodeOfPlan](api.MsgRetry, rolls+"send retry to the node's maintenance (requestor plans); one that has ended is begun anew where set-selector leaves its node out and then chooses it again"),
	}
}

// listen takes what the lockstep says.
func (s *stages) listen(in *inbox.Inbox) {
	inbox.Receive(in, api.SignalPlanProgress, func(p api.PlanProgress) { s.heard(p) })
}

func (s *stages) checkStage(m api.SetStage) error {
	if err := s.open(m.Run); err != nil {
		return err
	}
	return s.Stage.To(m.Stage)
}

func (s *stages) applyStage(m api.SetStage) string {
	s.enter(m.Stage, m.Message)
	switch m.Stage {
	case rollout.Cordon:
		return "stage Cordon: its nodes become unschedulable"
	case rollout.Drain:
		return "stage Drain: its nodes become unschedulable, and their pods leave tier by tier"
	default:
		return "stage Complete: its nodes are given back, and then the plan ends"
	}
}

// answerWithin bounds how long whoever sets the stage waits to hear that the lockstep refuses it.
const answerWithin = 5 * time.Second

// Answer is what the sender of set-stage gets.
func (s *stages) Answer(ctx workflow.Context, effect string) (string, error) {
	return effect, s.settle(ctx)
}

// settle waits for the lockstep's answer to the present intent. One that does not come in time changes nothing: it is waited
// for, and a refusal stands in the status.
func (s *stages) settle(ctx workflow.Context) error {
	asked := s.Revision
	_, err := workflow.AwaitWithTimeout(ctx, answerWithin, func() bool {
		return s.Answered >= asked || s.refused.revision >= asked || s.state.Phase.Ended() || s.Stage == rollout.Complete
	})
	if err == nil && s.refused.revision >= asked {
		return fmt.Errorf("the stage is refused, and is %s again: %s", s.Stage, s.refused.why)
	}
	return nil //nolint:nilerr // what is applied is applied, whoever waits to hear of it
}

func (s *stages) checkSelector(m api.SetSelector) error {
	if err := s.open(m.Run); err != nil {
		return err
	}
	if s.Stage == rollout.Complete {
		return errors.New("the plan is in stage Complete, and takes no more nodes")
	}
	return m.Check()
}

func (s *stages) applySelector(m api.SetSelector) string {
	s.Selection, s.spec.Selection = &m.Selection, m.Selection
	s.state.Digest, s.roster.seen, s.dirty = matchAgain, time.Time{}, true
	s.roster.rest()
	s.roster.look()
	s.news.note(sentence("its nodes are chosen otherwise", m.By, m.Comment))
	return "its nodes are chosen anew; those that it holds stay until it is completed"
}
