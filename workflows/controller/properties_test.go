package controller_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/controller"
)

var everies = []int{0, 1, 2, 3, 5, 7, 11}

// script gives the world jobs, some of them twice, and closes the workflow.
func script(w *world, steps []int) (jobs []string) {
	at := time.Duration(0)
	for i, step := range steps {
		at += time.Duration(step%5) * 700 * time.Millisecond
		name := fmt.Sprintf("job-%d", i)
		jobs = append(jobs, name)
		w.add(at, name)
		if step%3 == 0 {
			w.add(at+time.Duration(step)*time.Second/2, name) // the same message once more
		}
	}
	w.close(at + 10*time.Second)
	return jobs
}

// Each job is sent once or twice, in any order and with any pauses.
func TestAWorkflowEndsAlikeHoweverOftenItContinuesAsNew(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var sent, jobs []string
		for i := range rapid.IntRange(1, 4).Draw(r, "jobs") {
			name := fmt.Sprint("job-", i)
			sent = append(sent, slices.Repeat([]string{name}, rapid.IntRange(1, 2).Draw(r, name))...)
		}
		w, at := newWorld(r, rapid.SampledFrom(everies).Draw(r, "every")), time.Duration(0)
		for _, name := range rapid.Permutation(sent).Draw(r, "order") {
			at += time.Duration(rapid.IntRange(0, 4).Draw(r, "pause")) * 700 * time.Millisecond
			if w.add(at, name); !slices.Contains(jobs, name) {
				jobs = append(jobs, name)
			}
		}
		w.close(at + 10*time.Second)
		w.run()
		w.check(jobs...)
		if r.Failed() {
			r.Fatalf("log %q", w.log)
		}
	})
}

func TestEachNumberOfEventsARunMayTake(t *testing.T) {
	for _, every := range everies {
		w := newWorld(t, every)
		jobs := script(w, []int{3, 1, 0, 4, 2})
		w.run()
		w.check(jobs...)
		if runs := len(w.states); every == 1 && runs < 10 || every == 0 && runs != 0 {
			t.Errorf("every %d: it continued as new %d times", every, runs)
		}
		if len(w.result.Notes) > 0 {
			t.Errorf("every %d: notes %+v", every, w.result.Notes)
		}
	}
}

// disturbances runs a script of two jobs again and again, each time with one disturbance a turn later, until the workflow ends before that.
func disturbances(t *testing.T, disturb func(w *world, turn int), judge func(w *world)) {
	t.Helper()
	for _, every := range everies {
		turn := 1
		for ; ; turn++ {
			w := newWorld(t, every)
			w.add(0, "a")
			w.add(2*time.Second, "b")
			w.close(10 * time.Second)
			disturb(w, turn)
			w.run()
			if w.turns <= w.disturbed.turn && w.disturbed.count(w.result) == 0 { // it has ended with that turn, or before
				break
			}
			if judge(w); w.disturbed.count(w.result) != 1 {
				t.Errorf("taken %d times", w.disturbed.count(w.result))
			}
			if t.Failed() {
				t.Fatalf("every %d, at turn %d: %+v, log %q", every, turn, w.result, w.log)
			}
		}
		if turn < 10 {
			t.Errorf("every %d: it has %d turns only", every, turn)
		}
	}
}

func TestACancellationAtAnyTurnIsTakenOnce(t *testing.T) {
	disturbances(t, (*world).cancelAt, func(w *world) {
		w.check([]string{"a", "b"}[:len(w.result.Jobs)]...) // nothing is added once it is closed
	})
}

// What is under way at the reset goes on, and is not begun again.
func TestAResetAtAnyTurnDoesNothingTwice(t *testing.T) {
	disturbances(t, (*world).resetAt, func(w *world) { w.check("a", "b") })
}

// A reset takes the state back to an earlier one, while the world stays as it is.
func TestWhatWasDoneSinceTheResetPointIsNotDoneAgain(t *testing.T) {
	first := newWorld(t, 1)
	script(first, []int{3, 1, 0})
	first.run()
	for i, state := range first.states {
		w := newWorld(t, 0)
		w.log, w.begins, w.now, w.reset = append([]string{}, first.log...), first.begins, first.now, true
		for _, name := range []string{"job-0", "job-1", "job-2"} {
			w.add(first.now.Sub(w.start), name) // the server sends signals that came since to the new run
		}
		w.close(first.now.Sub(w.start) + time.Second)
		if err := w.once(changed(t, state, func(fields map[string]any) { delete(fields, "continueAfter") })); err != nil {
			t.Fatalf("state %d: %v", i, err)
		}
		if w.check("job-0", "job-1", "job-2"); t.Failed() {
			t.Fatalf("state %d: log %q, then %q", i, first.log, w.log[len(first.log):])
		}
		if w.result.Resets != 1 || w.log[len(first.log)] != "find" {
			t.Errorf("state %d: %d resets, %q", i, w.result.Resets, w.log[len(first.log):])
		}
	}
}

// changed is a carried state with other fields.
func changed(t *testing.T, packed []byte, change func(map[string]any)) []byte {
	t.Helper()
	fields := map[string]any{}
	if err := api.Unpack(packed, &fields); err != nil {
		t.Fatal(err)
	}
	change(fields)
	packed, err := api.Pack(fields)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestFieldsOfANewerReleaseAreCarriedOn(t *testing.T) {
	w := newWorld(t, 0)
	w.add(time.Second, "c")
	err := w.once(changed(t, mustPack(t, map[string]any{"known": true, "continueAfter": 1}), func(fields map[string]any) {
		fields["later"] = map[string]any{"n": 7}
		fields["jobs"] = []any{map[string]any{"name": "b", "stage": 4, "later": "x"}}
	}))
	var next *workflow.ContinueAsNewError
	if !errors.As(err, &next) {
		t.Fatal(err)
	}
	var state json.RawMessage
	if err := api.Unpack(handedOver(t, next), &state); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"later":{"n":7}`, `"later":"x"`} {
		if !strings.Contains(string(state), want) {
			t.Errorf("%s: no %s", state, want)
		}
	}
}

func mustPack(t *testing.T, value any) []byte {
	t.Helper()
	packed, err := api.Pack(value)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func TestAStateThatCannotBeReadFailsTheTaskAndNotTheWorkflow(t *testing.T) {
	for name, state := range map[string][]byte{
		"not packed": []byte("x"), "no object": mustPack(t, "x"), "another type": mustPack(t, map[string]any{"jobs": 1}),
		"of a newer release": mustPack(t, map[string]any{"needs": 1000}),
	} {
		w := newWorld(t, 0)
		err := w.once(state)
		var panicked *temporal.PanicError
		if !errors.As(err, &panicked) || !strings.Contains(err.Error(), "stands still until a worker of a release that can read it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatSomebodyElseGivesAsStateIsIgnored(t *testing.T) {
	w := newWorld(t, 0)
	w.close(time.Second)
	env := w.environment()
	env.ExecuteWorkflow("toy", struct{}{}, mustPack(t, map[string]any{"jobs": []job{{Name: "forged"}}}))
	var result toy
	if err := env.GetWorkflowResult(&result); err != nil || len(result.Jobs) != 0 || len(result.Notes) != 1 {
		t.Errorf("%v: %+v", err, result)
	}
}

func TestDecideIsPure(t *testing.T) {
	y := &toy{Known: true, Jobs: []job{{Name: "a"}, {Name: "b", Stage: made}, {Name: "c", Stage: running}, {Name: "d", Stage: reported}}}
	before, _ := json.Marshal(y)
	one, two := y.Decide(controller.At(time.Time{})), y.Decide(controller.At(time.Time{}))
	after, _ := json.Marshal(y)
	if fmt.Sprint(one) != fmt.Sprint(two) || string(before) != string(after) {
		t.Errorf("%v, %v", one, two)
	}
}
