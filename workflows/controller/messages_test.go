package controller_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/controller"
)

func idle(*stub, controller.Turn) controller.Decision { return controller.Decision{} }

func said(id, text string) word { return word{Message: api.Message{ID: id, By: "ann"}, Text: text} }

// answer is what became of an update.
type answer struct {
	effect        any
	rejected, err error
	at            time.Time
}

func (s *site) update(name string, payload any) *answer {
	a := &answer{}
	s.env.UpdateWorkflow(name, "", &testsuite.TestUpdateCallback{
		OnReject:   func(err error) { a.rejected, a.at = err, s.env.Now() },
		OnAccept:   func() {},
		OnComplete: func(effect any, err error) { a.effect, a.err, a.at = effect, err, s.env.Now() },
	}, payload)
	return a
}

func TestMessagesTakeEffectOnceInTheirOrderAndAreRecorded(t *testing.T) {
	s := newSite(t, idle)
	s.at(time.Second, func() { // in one workflow task
		for _, signal := range []struct {
			name    string
			payload any
		}{
			{"word", said("1", "a")},
			{"fact", fact{said("", "b")}},
			{"word", said("2", "c")},
			{"word", said("1", "a")}, // sent twice
			{"word", said("3", "wrong")},
			{"word", map[string]any{"text": "d", "unknown": 1}},
			{"word", nil},
			{"short", said("4", strings.Repeat("x", 100))},
			{"fact", fact{said("", "wrong")}},
			{"fact", nil},
			{"nonsense", 1},
		} {
			s.env.SignalWorkflowSkippingWorkflowTask(signal.name, signal.payload)
		}
	})
	if err := s.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "c", "", "end"}; !slices.Equal(s.stub.Received, want) {
		t.Errorf("received %q, want %q", s.stub.Received, want)
	}
	var outcomes []string
	for _, m := range s.stub.Messages {
		outcomes = append(outcomes, m.Name+" "+m.ID+" "+string(m.Outcome))
	}
	want := []string{"word 1 applied", "word 2 applied", "word 3 ignored", "word  refused", "word  applied", "short  refused", "word  applied"}
	if !slices.Equal(outcomes, want) {
		t.Errorf("recorded %q, want %q", outcomes, want)
	}
	if len(s.stub.Notes) != 3 { // two facts and the unknown
		t.Errorf("notes %+v", s.stub.Notes)
	}
}

func TestUpdatesAreAnsweredAndFollowTheSignalsOfTheirTask(t *testing.T) {
	s := newSite(t, idle)
	var answers []*answer
	s.at(time.Second, func() {
		s.env.SignalWorkflowSkippingWorkflowTask("word", said("1", "a"))
		answers = append(answers, s.update("word", said("2", "b")))
	})
	s.at(2*time.Second, func() {
		for _, w := range []any{said("2", "b"), said("3", "wrong"), map[string]any{"unknown": 1}} {
			answers = append(answers, s.update("word", w))
		}
	})
	if err := s.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "b", "end"}; !slices.Equal(s.stub.Received, want) {
		t.Errorf("received %q, want %q", s.stub.Received, want)
	}
	if answers[0].effect != "received b" || answers[0].err != nil || answers[1].rejected == nil || answers[2].rejected == nil || answers[3].rejected == nil {
		t.Errorf("%+v, %+v, %+v, %+v", answers[0], answers[1], answers[2], answers[3])
	}
}

// Signals and updates, each sent up to twice, in any order: each takes effect once, in the order in which they were sent.
func TestMessagesInAnyOrderTakeEffectOnce(t *testing.T) {
	kinds := []string{"signal", "signal", "update"}
	var all []string
	for _, id := range []string{"1", "2", "3"} {
		for _, kind := range kinds {
			all = append(all, kind+" "+id)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		order := rapid.Permutation(all).Draw(r, "order")
		order = order[:rapid.IntRange(1, len(order)).Draw(r, "sent")]
		s := newSite(t, idle)
		var want []string
		s.at(time.Second, func() {
			for _, sent := range order {
				kind, id, _ := strings.Cut(sent, " ")
				taken := slices.Contains(want, id)
				if !taken {
					want = append(want, id)
				}
				if kind == "signal" { // it shares the workflow task of the next update
					s.env.SignalWorkflowSkippingWorkflowTask("word", said(id, id))
					continue
				}
				a := s.update("word", said(id, id))
				s.at(time.Second, func() {
					// The validator does not know of the signals of its workflow task.
					if refused := a.rejected != nil || a.err != nil; refused != taken || !taken && a.effect != "received "+id {
						r.Errorf("%q: update %s: %+v", order, id, a)
					}
				})
			}
		})
		if err := s.run(time.Minute); err != nil {
			r.Fatal(err)
		}
		if want = append(want, "end"); !slices.Equal(s.stub.Received, want) {
			r.Errorf("sent %q: received %q, want %q", order, s.stub.Received, want)
		}
	})
}

func TestAnUpdateWaitsForWhatFollows(t *testing.T) {
	s := newSite(t, idle)
	var undone, unknown, last *answer
	s.at(time.Second, func() { undone = s.update("question", question{said("1", "a")}) })
	s.at(4*time.Second, func() { s.stub.Verdict = "it is undone" })
	s.signal(5*time.Second, "fact", fact{})
	s.at(6*time.Second, func() { s.stub.Verdict = "" })
	s.at(10*time.Second, func() { unknown = s.update("question", question{said("2", "b")}) })
	s.at(59*time.Second, func() { last = s.update("question", question{said("3", "c")}) })
	if err := s.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if undone.err == nil || undone.at.Sub(s.start) != 5*time.Second {
		t.Errorf("%+v", undone)
	}
	if unknown.err != nil || unknown.effect != "received b" || unknown.at.Sub(s.start) != 20*time.Second {
		t.Errorf("%+v", unknown)
	}
	if last.effect != "received c" || last.at.Sub(s.start) != time.Minute { // the workflow ends
		t.Errorf("%+v", last)
	}
}

// What a child sends in the workflow task that has its start, and its end, is taken after its start.
func TestAMessageThatComesWithTheStartOfItsSender(t *testing.T) {
	w := newWorld(t, 0)
	w.add(0, "a")
	w.close(time.Minute)
	env := w.environment()
	env.SetOnChildWorkflowStartedListener(func(info *workflow.Info, _ workflow.Context, _ converter.EncodedValues) {
		env.SignalWorkflowSkippingWorkflowTask("ack", ack{Job: "a", Run: info.WorkflowExecution.RunID})
	})
	env.ExecuteWorkflow("toy", struct{}{}, []byte(nil))
	var result toy
	if err := env.GetWorkflowResult(&result); err != nil || len(result.Notes) > 0 || result.Jobs[0].Stage != over {
		t.Errorf("%v: %+v", err, result)
	}
	if n := w.count("tell a"); n > 0 {
		t.Errorf("it was sent %d times", n)
	}
}

// onlyLong decides on an activity of ten minutes, and on a short one for each fact.
func onlyLong(s *stub, t controller.Turn) (d controller.Decision) {
	if s.Verdict == "" {
		d.Effects = append(d.Effects, act("long", "long"))
	}
	for _, text := range s.Received {
		if t.Room() > 0 {
			d.Effects = append(d.Effects, act(text, text))
		}
	}
	return d
}

func TestARunThatIsToLeaveBeginsNothingForAWhile(t *testing.T) {
	s := newSite(t, onlyLong)
	s.stub.outcome = func(s *stub, o controller.Outcome, _ time.Time) {
		if o.Key.Of == "long" {
			s.Verdict = "done"
		}
	}
	s.env.OnActivity("act", mock.Anything, "long").After(10*time.Minute).Return("", nil)
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(_ context.Context, in string) (string, error) {
		s.note(in)
		return "", nil
	})
	s.at(30*time.Second, func() { s.env.SetContinueAsNewSuggested(true) })
	var first *answer
	s.at(time.Minute, func() { first = s.update("question", question{said("1", "a")}) })
	s.signal(2*time.Minute, "fact", fact{said("", "b")})
	s.at(20*time.Minute, func() { t.Error("it does not leave") })
	s.env.ExecuteWorkflow("stub", struct{}{}, []byte(nil))
	var next *workflow.ContinueAsNewError
	if err := s.env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatal(err)
	}
	if first.at.Sub(s.start) != time.Minute || s.env.Now().Sub(s.start) < 10*time.Minute {
		t.Errorf("%+v, left after %s", first, s.env.Now().Sub(s.start))
	}
	slices.Sort(s.log[:2]) // the two began at once
	if s.log[0] != "6m0s a" || s.log[1] != "6m0s b" {
		t.Errorf("log %q", s.log)
	}
}

func TestQueriesValidatorsAndThePageChangeNothing(t *testing.T) {
	w := newWorld(t, 0)
	w.add(0, "a")
	w.close(time.Minute)
	env := w.environment()
	env.RegisterDelayedCallback(func() {
		var before, after toy
		for _, into := range []*toy{&before, &after} {
			value, err := env.QueryWorkflow("status")
			if err == nil {
				err = value.Get(into)
			}
			if err != nil {
				t.Fatal(err)
			}
			env.UpdateWorkflow("add", "", &testsuite.TestUpdateCallback{
				OnReject: func(error) {}, OnAccept: func() { t.Error("accepted") }, OnComplete: func(any, error) {},
			}, add{Message: api.Message{ID: "id-a"}, Job: "b"})
		}
		if len(before.Jobs) != 1 || string(mustPack(t, before)) != string(mustPack(t, after)) {
			t.Errorf("%+v, then %+v", before, after)
		}
		if _, err := env.QueryWorkflow("status", map[string]any{"unknown": 1}); err == nil {
			t.Error("an unknown field of a query is accepted")
		}
	}, 20*time.Second)
	env.ExecuteWorkflow("toy", struct{}{}, []byte(nil))
	if err := env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
}

func TestAStateThatIsTooLargeFailsTheTask(t *testing.T) {
	s := newSite(t, func(s *stub, _ controller.Turn) (d controller.Decision) {
		random := rand.New(rand.NewPCG(1, 2))
		for range 300_000 {
			s.Received = append(s.Received, strconv.FormatUint(random.Uint64(), 16))
		}
		return d
	})
	s.env.SetContinueAsNewSuggested(true)
	s.env.ExecuteWorkflow("stub", struct{}{}, []byte(nil))
	if err := s.env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "the largest fields are received") {
		t.Errorf("%.300v", err)
	}
}

func TestAMessageThatComesWithACancellationCounts(t *testing.T) {
	s := newSite(t, idle)
	s.at(time.Second, func() {
		s.env.SignalWorkflowSkippingWorkflowTask("word", said("1", "a"))
		s.env.CancelWorkflow()
	})
	if err := s.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	if want := []string{"a", "cancelled", "end"}; !slices.Equal(s.stub.Received, want) {
		t.Errorf("received %q, want %q", s.stub.Received, want)
	}
}
