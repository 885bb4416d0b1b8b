package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/workflow"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
)

const runID = "default-test-run-id"

// lockstep is the site of a plan of strategy allAtOnce: its intents are kept, and answered as the test says.
type lockstep struct {
	*site
	intents []api.PlanIntent
	// answer is what the lockstep says to an intent; nil says nothing.
	answer func(api.PlanIntent) []api.PlanProgress
	// after is how long it takes to say so, sends how long an intent is under way.
	after, sends time.Duration
}

func newLockstep(t *testing.T, names ...string) *lockstep {
	l := &lockstep{site: newSite(t, names...), after: time.Second}
	l.answer = l.obey
	l.play()
	return l
}

// play has the lockstep of the present environment answer.
func (l *lockstep) play() {
	l.env.OnActivity(call.Plans.AwaitPlanNodes, mock.Anything, mock.Anything).Return(
		func(ctx context.Context, in planactivity.ListInput) (planactivity.Listed, error) {
			digest := fmt.Sprint(l.nodes)
			if digest == in.Digest {
				return planactivity.Listed{Digest: digest, Unchanged: true}, nil
			}
			return planactivity.Listed{Digest: digest, Nodes: l.nodes, All: len(l.nodes) + 1}, nil
		}).After(20 * time.Second)
	l.env.OnActivity(call.Plans.SendIntent, mock.Anything, mock.Anything).AfterFn(func() time.Duration { return l.sends }).Return(
		func(_ context.Context, in planactivity.IntentInput) error {
			if in.Lockstep != "drydock-plans" {
				l.Errorf("%s is sent an intent", in.Lockstep)
			}
			l.intents = append(l.intents, in.Intent)
			if l.answer == nil {
				return nil
			}
			for _, p := range l.answer(in.Intent) {
				l.say(l.after, p)
			}
			return nil
		})
}

func (l *lockstep) say(after time.Duration, p api.PlanProgress) {
	if p.RunID == "" {
		p.RunID = runID
	}
	l.at(after, func() { l.env.SignalWorkflow(api.SignalPlanProgress, p) })
}

// obey does at once what a plan intends.
func (l *lockstep) obey(i api.PlanIntent) []api.PlanProgress {
	p := api.PlanProgress{Revision: i.Revision}
	for _, name := range i.Nodes {
		n := api.SharedProgress{Node: name, RunID: "d4c1a9b0-0000-4000-8000-000000000001"}
		switch i.Stage {
		case plan.Cordon:
			n.Phase = api.Cordoned
		case plan.Drain:
			n.Phase, n.Drained, n.Message, n.Targets = api.Ready, true, "Drained", i.Tiers
			p.Tier = len(i.Tiers)
		default:
			n.Phase, n.Left, p.Complete = api.Completed, true, true
		}
		p.Nodes = append(p.Nodes, n)
	}
	return []api.PlanProgress{p}
}

func (l *lockstep) set(at time.Duration, stage api.Stage) {
	l.signalAt(at, api.MsgSetStage, api.SetStage{Message: api.Message{By: "amy", Comment: "firmware"}, Stage: stage})
}

// sent are the stages and the nodes of the intents.
func (l *lockstep) sent() string {
	var all []string
	for _, i := range l.intents {
		if text := fmt.Sprintf("%s %s", i.Stage, strings.Join(i.Nodes, ",")); len(all) == 0 || all[len(all)-1] != text {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}

const allAtOnce = `{"all":true,"strategy":{"type":"allAtOnce"}}`

func in(stage string) string {
	return `{"all":true,"stage":"` + stage + `","strategy":{"type":"allAtOnce"}}`
}

// What keeps a gang from its slots keeps all of its nodes: the plan says it once more, where whoever looks at it looks first.
func TestAPlanSaysWhatItsGangWaitsFor(t *testing.T) {
	const tooLarge = "a slot: gang x of 2 nodes goes once limits are raised that it is larger than by itself: drydock limits set --max-parallel 2"
	for stage, want := range map[string]string{
		"Cordon": "its nodes to be cordoned: 0 of 2 are; " + tooLarge,
		"Drain":  "0 of 2 nodes are drained up to it; " + tooLarge,
	} {
		l := newLockstep(t, "a", "b")
		why := map[string]string{"a": tooLarge, "b": tooLarge}
		l.answer = func(i api.PlanIntent) []api.PlanProgress {
			if i.Stage == plan.Complete {
				return l.obey(i)
			}
			p := api.PlanProgress{Revision: i.Revision}
			for _, name := range i.Nodes {
				p.Nodes = append(p.Nodes, api.SharedProgress{
					Node: name, RunID: "d4c1a9b0-0000-4000-8000-000000000001", Phase: api.Pending, Message: why[name],
				})
			}
			return []api.PlanProgress{p}
		}
		l.at(time.Minute, func() {
			if w := l.status().WaitingFor; !strings.HasSuffix(w, want) {
				t.Errorf("in %s it waits for %s", stage, w)
			}
			why["b"] = "a slot: node b is in maintenance"
		})
		l.say(10*time.Minute, api.PlanProgress{Repeat: true})
		l.at(20*time.Minute, func() {
			if w := l.status().WaitingFor; strings.Contains(w, "gang") {
				t.Errorf("in %s nodes that wait for different things wait for %s", stage, w)
			}
		})
		l.set(30*time.Minute, plan.Complete)
		l.ended(in(stage), api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
	}
}

func TestAPlanGoesThroughItsStages(t *testing.T) {
	l := newLockstep(t, "a", "b")
	l.at(time.Minute, func() {
		s := l.status()
		if s.Stages == nil || s.Stages.Stage != plan.Idle || s.Counts.Waiting != 2 || len(l.intents) > 0 {
			t.Errorf("in Idle: %+v, %+v, %d intents", s.Stages, s.Counts, len(l.intents))
		}
	})
	l.set(2*time.Minute, plan.Cordon)
	l.at(3*time.Minute, func() {
		s := l.status()
		if s.Counts.Running != 2 || s.Stages.Nodes.Cordoned != 2 || s.WaitingFor != "its stage to be set: Drain or Complete" || s.Stages.Drained.Status {
			t.Errorf("in Cordon: %+v, %+v, %s", s.Counts, s.Stages, s.WaitingFor)
		}
	})
	l.set(4*time.Minute, plan.Drain)
	l.at(5*time.Minute, func() {
		s := l.status()
		if !s.Stages.Drained.Status || s.Stages.Tier != 12 || s.Nodes[0].Drain == nil || !s.Nodes[0].Drain.Drained || len(s.Nodes[0].Drain.Targets) != 12 {
			t.Errorf("in Drain: %+v, %+v", s.Stages, s.Nodes)
		}
	})
	l.set(6*time.Minute, plan.Complete)
	s := l.ended(allAtOnce, api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
	if want := "Cordon a,b; Drain a,b; Complete a,b"; l.sent() != want {
		t.Errorf("it sent %s, want %s", l.sent(), want)
	}
	var begun []string
	for _, b := range s.Stages.Begun {
		begun = append(begun, fmt.Sprintf("%s %s %s", b.Stage, b.By, b.Comment))
	}
	if want := []string{"Idle  ", "Cordon amy firmware", "Drain amy firmware", "Complete amy firmware"}; !slices.Equal(begun, want) {
		t.Errorf("stages %q, want %q", begun, want)
	}
	first := l.intents[0]
	if first.Name != "kernel" || first.RunID != runID || len(first.Tiers) != 12 || string(first.Maintenance) != `{"readyTimeout":"0s"}` || first.CreatedAt.IsZero() {
		t.Errorf("it sent %+v", first)
	}
}

func TestAPlanSaysOnceWhereOlderOnesHaveGoneFurther(t *testing.T) {
	const forwarded = "fast-forwarded on node a by older"
	l := newLockstep(t, "a")
	l.answer = func(i api.PlanIntent) []api.PlanProgress {
		p := l.obey(i)[0]
		if i.Stage == plan.Drain {
			p.Forwarded = forwarded
		}
		return []api.PlanProgress{p, p}
	}
	l.set(time.Minute, plan.Complete)
	said := 0
	for _, e := range l.ended(in("Drain"), api.PlanCompleted, plan.Counts{Total: 1, Done: 1}).Events {
		if e.Message == forwarded {
			said++
		}
	}
	if said != 1 {
		t.Errorf("it says so %d times", said)
	}
}

func TestStagesAreSkippedAndRefused(t *testing.T) {
	l := newLockstep(t, "a")
	l.set(time.Minute, plan.Cordon)
	l.at(2*time.Minute, func() {
		l.env.UpdateWorkflowNoRejection(api.MsgSetStage, "u1", t, api.SetStage{Stage: plan.Complete})
	})
	l.set(90*time.Second, plan.Idle)
	l.signalAt(91*time.Second, api.MsgPause, nil)
	l.signalAt(92*time.Second, api.MsgRetry, api.NodeOfPlan{Node: "a"})
	s := l.ended(allAtOnce, api.PlanCompleted, plan.Counts{Total: 1, Done: 1})
	var effects []string
	for _, m := range s.Messages {
		if m.Outcome == api.Ignored {
			effects = append(effects, m.Effect)
		}
	}
	for i, want := range []string{"Idle comes before Cordon", "freeze --running", "send retry to the node's maintenance"} {
		if i >= len(effects) || !strings.Contains(effects[i], want) {
			t.Errorf("%d is refused as %q, want %q", i, effects, want)
		}
	}
}

func TestAPlanIsCancelledInAnyStage(t *testing.T) {
	for stage, want := range map[string]string{"Idle": "", "Cordon": "Cordon a; Complete a", "Drain": "Drain a; Complete a"} {
		l := newLockstep(t, "a")
		l.signalAt(time.Minute, api.MsgCancel, api.Cancel{Message: api.Message{By: "amy"}})
		counts := plan.Counts{Total: 1, Done: 1}
		if stage == "Idle" {
			counts = plan.Counts{Total: 1, Waiting: 1}
		}
		if s := l.ended(in(stage), api.PlanCancelled, counts); s.Failure != "cancelled by amy" {
			t.Errorf("%s: %q", stage, s.Failure)
		}
		if l.sent() != want {
			t.Errorf("%s: it sent %q, want %q", stage, l.sent(), want)
		}
	}
}

func TestCompleteFromIdleTouchesNothing(t *testing.T) {
	l := newLockstep(t, "a")
	l.set(time.Minute, plan.Complete)
	if s := l.ended(allAtOnce, api.PlanCompleted, plan.Counts{Total: 1, Waiting: 1}); len(l.intents) > 0 || !strings.Contains(s.Failure, "no node was held") {
		t.Errorf("it sent %s, and says %q", l.sent(), s.Failure)
	}
}

func TestANodeThatFailedMakesThePlanIncomplete(t *testing.T) {
	l := newLockstep(t, "a", "b")
	l.say(time.Minute, api.PlanProgress{Revision: 1, Nodes: []api.SharedProgress{{Node: "b", Phase: api.Failed, Left: true, Failed: true, Message: "it did not empty"}}})
	l.answer = func(i api.PlanIntent) []api.PlanProgress {
		all := l.obey(i)
		if i.Stage == plan.Complete {
			all[0].Nodes = all[0].Nodes[:1]
		}
		return all
	}
	l.set(2*time.Minute, plan.Complete)
	s := l.ended(in("Drain"), api.PlanIncomplete, plan.Counts{Total: 2, Done: 1, Failed: 1})
	if s.Nodes[0].Node != "b" || s.Nodes[0].Note != "it did not empty" {
		t.Errorf("%+v", s.Nodes)
	}
}

// refusesDrain takes every stage but Drain.
func (l *lockstep) refusesDrain(i api.PlanIntent) []api.PlanProgress {
	if i.Stage == plan.Drain {
		return []api.PlanProgress{{Revision: i.Revision, Refused: "the gang of 2 nodes is larger than maxParallel 1"}}
	}
	return l.obey(i)
}

func TestARefusedIntentGoesBackToTheStageBefore(t *testing.T) {
	l := newLockstep(t, "a", "b")
	l.answer = l.refusesDrain
	var answered error
	l.at(2*time.Minute, func() {
		l.env.UpdateWorkflow(api.MsgSetStage, "u1", &answers{t: t, err: &answered}, api.SetStage{Stage: plan.Drain})
	})
	l.at(3*time.Minute, func() {
		s := l.status()
		if s.Stages.Stage != plan.Cordon || len(s.Stages.Begun) != 1 || s.Failure != "Drain was refused: the gang of 2 nodes is larger than maxParallel 1" {
			t.Errorf("%+v: %s", s.Stages, s.Failure)
		}
	})
	l.set(4*time.Minute, plan.Complete)
	l.ended(in("Cordon"), api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
	if answered == nil || !strings.Contains(answered.Error(), "the stage is refused, and is Cordon again: the gang") {
		t.Errorf("whoever set it was answered %v", answered)
	}
	if want := "Cordon a,b; Drain a,b; Cordon a,b; Complete a,b"; l.sent() != want {
		t.Errorf("it sent %s, want %s", l.sent(), want)
	}
}

func TestAPlanWhoseFirstStageIsRefusedIsIdle(t *testing.T) {
	l := newLockstep(t, "a")
	l.answer = l.refusesDrain
	l.at(time.Minute, func() {
		if s := l.status(); s.Stages.Stage != plan.Idle || !strings.HasPrefix(s.Failure, "Drain was refused") {
			t.Errorf("%+v: %s", s.Stages, s.Failure)
		}
	})
	l.signalAt(2*time.Minute, api.MsgCancel, nil)
	l.ended(in("Drain"), api.PlanCancelled, plan.Counts{Total: 1, Waiting: 1})
}

// answers keeps how an update ended.
type answers struct {
	t   *testing.T
	err *error
}

func (a *answers) Accept()          {}
func (a *answers) Reject(err error) { a.t.Errorf("it is refused at once: %v", err) }
func (a *answers) Complete(_ any, err error) {
	*a.err = err
}

func TestNodesThatComeJoinAndThoseThatGoStay(t *testing.T) {
	l := newLockstep(t, "a", "b")
	l.at(time.Minute, func() { l.nodes = []plan.Facts{{Name: "b"}, {Name: "c"}} })
	l.at(3*time.Minute, func() {
		l.env.SignalWorkflow(api.MsgSetSelector, api.SetSelector{Selection: plan.Selection{Nodes: []string{"d"}}})
		l.nodes = []plan.Facts{{Name: "d"}}
	})
	l.set(5*time.Minute, plan.Complete)
	s := l.ended(in("Cordon"), api.PlanCompleted, plan.Counts{Total: 4, Done: 4})
	if want := "Cordon a,b; Cordon a,b,c; Cordon a,b,c,d; Complete a,b,c,d"; l.sent() != want {
		t.Errorf("it sent %s, want %s", l.sent(), want)
	}
	if !slices.Equal(s.Plan.Nodes, []string{"d"}) || s.Plan.All {
		t.Errorf("it chooses %+v", s.Plan.Selection)
	}
}

func TestAnIntentIsRepeatedUntilItIsAnswered(t *testing.T) {
	l := newLockstep(t, "a")
	l.answer = func(i api.PlanIntent) []api.PlanProgress {
		if i.Stage == plan.Cordon && len(l.intents) < 4 {
			return nil
		}
		return l.obey(i)
	}
	l.at(10*time.Second, func() {
		if w := l.status().WaitingFor; !strings.Contains(w, "to take its stage Cordon") {
			t.Errorf("it waits for %q", w)
		}
	})
	l.say(time.Hour, api.PlanProgress{Repeat: true})
	l.set(2*time.Hour, plan.Complete)
	l.ended(in("Cordon"), api.PlanCompleted, plan.Counts{Total: 1, Done: 1})
	// Four until it is answered, one five minutes later, one that is asked for and again five minutes later, those an hour after another, and
	// the end.
	if n := len(l.intents); n < 7 || n > 10 {
		t.Errorf("it sent %d times in two hours", n)
	}
}

func TestForeignProgressIsNotTaken(t *testing.T) {
	l := newLockstep(t, "a")
	l.say(time.Minute, api.PlanProgress{RunID: "another", Revision: 1, Nodes: []api.SharedProgress{{Node: "a", Left: true, Failed: true}}})
	l.say(time.Minute, api.PlanProgress{Revision: 1, Complete: true, Tier: 99, Nodes: []api.SharedProgress{{Node: "x", Phase: api.Ready}, {Node: "a", Phase: "Nonsense"}}})
	l.at(2*time.Minute, func() {
		s := l.status()
		if s.Phase != api.PlanRunning || s.Counts.Running != 1 || s.Counts.Total != 1 || s.Stages.Tier != 12 || s.Nodes[0].Drain.Phase != "" {
			t.Errorf("%s, %+v, %+v", s.Phase, s.Counts, s.Nodes)
		}
	})
	l.set(3*time.Minute, plan.Complete)
	l.ended(in("Drain"), api.PlanCompleted, plan.Counts{Total: 1, Done: 1})
}

func TestStagesGoOnInTheNextRun(t *testing.T) {
	l := newLockstep(t, "a", "b")
	l.at(time.Minute, func() {
		l.env.SetContinueAsNewSuggested(true)
		l.env.SignalWorkflow(api.MsgPause, nil)
	})
	l.at(30*time.Second, func() {
		l.env.SignalWorkflow(api.MsgSetSelector, api.SetSelector{Selection: plan.Selection{Selector: "a=b"}})
	})
	_, err := l.run(in("Drain"))
	var again *workflow.ContinueAsNewError
	if !errors.As(err, &again) {
		t.Fatal(err)
	}
	var input json.RawMessage = again.Input.GetPayloads()[0].GetData()
	l.packed = again.Input.GetPayloads()[1].GetData()
	l.begin(l.env.Now())
	l.play()
	l.env.SetContinuedExecutionRunID("the-run-before")
	before := len(l.intents)
	l.say(time.Minute, api.PlanProgress{Repeat: true})
	l.at(10*time.Minute, func() {
		if s := l.status(); !s.Stages.Drained.Status || s.Plan.Selector != "a=b" || len(s.Nodes[0].Drain.Targets) != 12 {
			t.Errorf("%+v, %+v", s.Stages, s.Plan.Selection)
		}
	})
	l.set(11*time.Minute, plan.Complete)
	l.ended(string(input), api.PlanCompleted, plan.Counts{Total: 2, Done: 2})
	if first := l.intents[before]; first.Revision != l.intents[before-1].Revision {
		t.Errorf("the next run sends revision %d after %d", first.Revision, l.intents[before-1].Revision)
	}
}

func TestARollingPlanHasNoStages(t *testing.T) {
	s := newSite(t, "a")
	s.signalAt(time.Second, api.MsgSetStage, api.SetStage{Stage: plan.Drain})
	status := s.ended(`{"all":true}`, api.PlanCompleted, plan.Counts{Total: 1, Done: 1})
	if m := status.Messages[0]; m.Outcome != api.Ignored || !strings.Contains(m.Effect, "the plan is rolling") || status.Stages != nil {
		t.Errorf("%+v", m)
	}
}
