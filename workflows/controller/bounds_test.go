package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/workflows/controller"
)

// An effect that rests does not count: it must not keep others of its kind from beginning.
func TestTheEffectsOfAKindUnderWayAreBounded(t *testing.T) {
	done, most := map[string]bool{}, 0
	s := newSite(t, func(_ *stub, turn controller.Turn) (d controller.Decision) {
		underWay := 0
		for i := range 20 {
			if turn.UnderWay(key("act", fmt.Sprint(i))) {
				underWay++
			}
			most = max(most, underWay)
			if of := fmt.Sprint(i); !done[of] {
				m := meta("act", of)
				m.AtOnce = 3
				d.Effects = append(d.Effects, controller.Activity{Meta: m, Call: controller.Call{Func: "act", Attempts: 1}, Input: of})
			}
		}
		return d
	})
	s.stub.outcome = func(_ *stub, o controller.Outcome, _ time.Time) {
		done[o.Key.Of] = o.Err == nil
	}
	s.env.OnActivity("act", mock.Anything, mock.Anything).After(time.Second).Return(func(_ context.Context, in string) (string, error) {
		if len(in) == 1 && in < "5" {
			return "", errors.New("it fails")
		}
		return in, nil
	})
	if err := s.run(9 * time.Second); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, is := range done {
		if is {
			n++
		}
	}
	if n != 15 || most != 2 { // of three, one has come back when there is a turn
		t.Errorf("%d of 15 were done while 5 rest, %d at once", n, most)
	}
}

// A cancellation that has no effect may be requested again of the next run.
func TestACancellationIsTakenOnceInEachRun(t *testing.T) {
	var packed []byte
	for run := 1; run <= 2; run++ {
		s := newSite(t, func(*stub, controller.Turn) controller.Decision { return controller.Decision{} })
		s.at(time.Second, s.env.CancelWorkflow)
		s.at(2*time.Second, func() { s.env.SetContinueAsNewSuggested(true) })
		s.signal(3*time.Second, "word", word{Text: "x"})
		if packed != nil {
			s.env.SetContinuedExecutionRunID("the run before")
		}
		s.env.ExecuteWorkflow("stub", struct{}{}, packed)
		var next *workflow.ContinueAsNewError
		if err := s.env.GetWorkflowError(); !errors.As(err, &next) {
			t.Fatal(err)
		}
		if packed = handedOver(t, next); strings.Count(strings.Join(s.stub.Received, " "), "cancelled") != run {
			t.Errorf("run %d: received %q", run, s.stub.Received)
		}
	}
}

// Outcome may have the effects of another key rest, or not rest: that says nothing about the one whose outcome it takes.
func TestAnOutcomeThatJudgesAnotherKeyLeavesItsOwnToTheFrame(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"done":   {nil, []string{"0s a", "5s a", "15s a"}},
		"failed": {errors.New("no such luck"), []string{"0s a", "10s a"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, func(*stub, controller.Turn) (d controller.Decision) {
				m := meta("act", "a")
				m.Repeat = 5 * time.Second
				d.Effects = append(d.Effects, controller.Activity{Meta: m, Call: controller.Call{Func: "act", Attempts: 1}, Input: "a"})
				return d
			})
			s.stub.outcome = func(stub *stub, _ controller.Outcome, now time.Time) { stub.ClearBackoff(key("act", "b")) }
			s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(context.Context, string) (string, error) {
				s.note("a")
				return "a", c.err
			})
			if err := s.run(20 * time.Second); err != nil {
				t.Fatal(err)
			}
			s.want(c.want...)
		})
	}
}

// Each of many effects rests after it has succeeded: a list of those that rest which is too short would have them begin again and again.
func TestThousandsOfEffectsRest(t *testing.T) {
	const many = 1200
	var calls atomic.Int32
	s := newSite(t, func(*stub, controller.Turn) (d controller.Decision) {
		for i := range many {
			m := meta("act", fmt.Sprint(i))
			m.Repeat, m.AtOnce = time.Minute, 200
			d.Effects = append(d.Effects, controller.Activity{Meta: m, Call: controller.Call{Func: "act"}, Input: "a"})
		}
		return d
	})
	s.env.OnActivity("act", mock.Anything, mock.Anything).After(time.Second).Return(func(context.Context, string) (string, error) {
		calls.Add(1)
		return "a", nil
	})
	if err := s.run(30 * time.Second); err != nil {
		t.Fatal(err)
	}
	if calls.Load() != many {
		t.Errorf("%d calls, want %d", calls.Load(), many)
	}
}
