package maintenance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/handover/handovertest"
	"drydock.dev/drydock/workflows/maintenance"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	older "drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/maintenance"
	"drydock.dev/drydock/workflows/workflowtest"
)

// TestTheFieldsOf010AreThoseThatItWrites holds v0.1.0.txt to the types of the release.
func TestTheFieldsOf010AreThoseThatItWrites(t *testing.T) {
	const file = "v0.1.0.txt"
	var paths []string
	for _, f := range handovertest.FieldsOf(reflect.TypeFor[older.State]()) {
		paths = append(paths, f.Path)
	}
	want := strings.Join(paths, "\n") + "\n"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want {
		t.Errorf("%s is not what 0.1.0 writes (UPDATE_GOLDEN=1 writes it): %v", file, err)
	}
}

// TestANewFieldIsLeftOutWhereItSaysNothing: 0.1.0 refuses a field that it does not know.
func TestANewFieldIsLeftOutWhereItSaysNothing(t *testing.T) {
	known := map[string]bool{}
	for _, f := range handovertest.FieldsOf(reflect.TypeFor[older.State]()) {
		known[f.Path] = true
	}
	unused := slices.Clone(maintenance.Contract.Dispensable)
	for _, f := range handovertest.FieldsOf(reflect.TypeFor[maintenance.State]()) {
		unused = slices.DeleteFunc(unused, func(path string) bool { return path == f.Path })
		if !known[f.Path] && !f.Optional && (f.Above() == "" || known[f.Above()]) {
			t.Errorf("%s is written where it says nothing: give it omitempty or omitzero", f.Path)
		}
	}
	if len(unused) > 0 {
		t.Errorf("not fields of a state: %v", unused)
	}
}

// ofRelease runs a maintenance with the code of each run's release.
func ofRelease(s *workflowtest.Site, is010 func(run int) bool) {
	s.Intercept(&inbox.Interceptor{})
	s.Workflow = func(root workflow.Context, input, carried converter.RawValue) (api.Result, error) {
		if !is010(s.Runs) {
			return maintenance.NodeMaintenance(root, input, carried)
		}
		result, err := older.NodeMaintenance(root, input, carried)
		var ours api.Result
		if text, e := json.Marshal(result); e == nil {
			e = json.Unmarshal(text, &ours)
			if e != nil {
				return ours, e
			}
		}
		return ours, err
	}
}

// drains is a maintenance that begins its drain again, and may go on in a new run between two.
var drains = wait{name: "drain", set: func(s *workflowtest.Site) { drainAgain(s, hops) }}

// drainAgain has a drain last until somebody wants another try, so many times.
func drainAgain(s *workflowtest.Site, times int) {
	for i := range hops {
		s.SignalAt(hopAt(i)+time.Second, api.MsgRetryNow, nil)
	}
	for range times {
		s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour})
	}
	s.DoneAt(time.Hour)
}

// isKept is a maintenance that is not let give its node back.
var isKept = wait{name: "release forbidden", differs: ofItsEnd, set: func(s *workflowtest.Site) {
	s.DoneAt(5 * time.Minute)
	for range 20 {
		s.Answer("ReleaseNode", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorMissingPermission, "may not patch nodes")})
	}
}}

const hops = 3

func hopAt(i int) time.Duration { return reached + time.Duration(i)*time.Minute }

// TestAMaintenanceGoesThereAndBack has a maintenance go on in 0.1.0, this release, 0.1.0 and this release, and the other way
// round, wherever it continues as new: it comes to what it comes to in one run.
func TestAMaintenanceGoesThereAndBack(t *testing.T) {
	var lost []string // 0.1.0 drops what it does not know
	for _, path := range maintenance.Contract.Dispensable {
		if field, is := strings.CutPrefix(path, "status."); is {
			lost = append(lost, field)
		}
	}
	var all []wait
	for _, w := range waits {
		switch w.name {
		case "release forbidden": // it comes to its end before the third hop
			w = isKept
		case "freeze and thaw while it drains": // it goes on in no new run before the thaw
			w = drains
		}
		all = append(all, w)
	}
	for _, w := range all {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, begun by 0.1.0: %v", w.name, first), func(t *testing.T) {
				begin := func(is010 func(int) bool) *workflowtest.Site {
					s := workflowtest.New(t)
					ofRelease(s, is010)
					w.set(s)
					return s
				}
				without := slices.Concat(lost, w.differs)
				want := begin(func(int) bool { return first }).Run(workflowtest.InputWith(w.input))
				s := begin(func(run int) bool { return (run%2 == 0) == first })
				for i := range hops {
					s.ContinueAt(hopAt(i))
				}
				got := s.Run(workflowtest.InputWith(w.input))
				if s.Runs != hops+1 {
					t.Errorf("%d runs, want %d", s.Runs, hops+1)
				}
				expectSameLines(t, came(t, got, without...), came(t, want, without...))
			})
		}
	}
}

// handedOver is the state that a maintenance hands to its second run.
func handedOver(t *testing.T, in workflowtest.Input, set func(s *workflowtest.Site)) *commonpb.Payload {
	t.Helper()
	s := workflowtest.New(t)
	set(s)
	s.ContinueAt(reached)
	s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, in.Payload(t), workflowtest.Raw(""))
	return nextState(t, s)
}

func nextState(t *testing.T, s *workflowtest.Site) *commonpb.Payload {
	t.Helper()
	var again *workflow.ContinueAsNewError
	if !errors.As(s.Env.GetWorkflowError(), &again) {
		t.Fatalf("it did not continue as new: %v", s.Env.GetWorkflowError())
	}
	return again.Input.GetPayloads()[1]
}

// standsStill says that a run failed its workflow task, and not the workflow, before it did anything.
func standsStill(t *testing.T, s *workflowtest.Site) {
	t.Helper()
	var panicked *temporal.PanicError
	if err := s.Env.GetWorkflowError(); !errors.As(err, &panicked) {
		t.Errorf("it ended with %v, want a panic", err)
	}
	if len(s.Log) != 0 {
		t.Errorf("it did %v", s.Log)
	}
}

// TestWhat010CannotDoStandsStillWithIt: 0.1.0 would end a maintenance whose state it does not know, and release its node.
func TestWhat010CannotDoStandsStillWithIt(t *testing.T) {
	for name, c := range map[string]struct {
		input map[string]any
		set   func(s *workflowtest.Site)
	}{
		"windows": {map[string]any{"expectedDuration": "30m"}, func(*workflowtest.Site) {}},
		"consent": {nil, func(s *workflowtest.Site) {
			s.Answer("Drain", workflowtest.Reply{After: 24 * time.Hour}, workflowtest.Reply{After: 24 * time.Hour})
			s.SignalAt(5*time.Minute, api.MsgConsent, consent(workflowtest.Input{"force": true}))
			s.SignalAt(reached+time.Second, api.MsgRetryNow, nil)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			in := workflowtest.InputWith(c.input)
			state := handedOver(t, in, c.set)
			s := workflowtest.New(t)
			ofRelease(s, func(int) bool { return true })
			s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
			s.Env.ExecuteWorkflow(s.Workflow, in.Payload(t), converter.NewRawValue(state))
			standsStill(t, s)

			// This release goes on with the same state.
			s = workflowtest.New(t)
			s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
			s.DoneAt(time.Hour)
			s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, in.Payload(t), converter.NewRawValue(state))
			if status := s.Status(); status.Phase != api.Completed {
				t.Errorf("it ended %s: %v", status.Phase, s.Env.GetWorkflowError())
			}
		})
	}
}

// TestWhatANewerReleaseHandsOverIsHandedOn: a roll-back and an upgrade lose nothing of what this release does not know.
func TestWhatANewerReleaseHandsOverIsHandedOn(t *testing.T) {
	in := workflowtest.InputWith(nil)
	state := handedOver(t, in, func(*workflowtest.Site) {})
	newer := map[string]any{}
	if err := json.Unmarshal(state.GetData(), &newer); err != nil {
		t.Fatal(err)
	}
	status := newer["status"].(map[string]any)
	newer["later"] = map[string]any{"depth": 3.5}
	status["later"] = []any{"a", map[string]any{"b": true}}
	status["transitions"].([]any)[1].(map[string]any)["later"] = "of a transition"
	status["requestors"].([]any)[0].(map[string]any)["later"] = "of a requestor"
	status["spec"].(map[string]any)["drain"].(map[string]any)["later"] = 12345678901234567
	text, err := json.Marshal(newer)
	if err != nil {
		t.Fatal(err)
	}

	s := workflowtest.New(t)
	s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
	s.SignalAt(time.Minute, api.MsgDone, api.Done{Requestor: "nobody"})
	s.ContinueAt(2 * time.Minute)
	s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, in.Payload(t), workflowtest.Raw(string(text)))
	var next maintenance.State
	var got map[string]any
	carried := converter.NewRawValue(nextState(t, s))
	if _, err := handover.Read(carried, &got); err != nil {
		t.Fatal(err)
	}
	if _, err := handover.Read(carried, &next); err != nil || len(next.Status.Messages) != 1 {
		t.Errorf("%v; the next run knows of %v", err, next.Status.Messages)
	}
	status, ok := got["status"].(map[string]any)
	if !ok {
		t.Fatalf("handed on was %v", got)
	}
	for what, pair := range map[string][2]any{
		"the state":      {got["later"], map[string]any{"depth": 3.5}},
		"the status":     {status["later"], []any{"a", map[string]any{"b": true}}},
		"a transition":   {status["transitions"].([]any)[1].(map[string]any)["later"], "of a transition"},
		"a requestor":    {status["requestors"].([]any)[0].(map[string]any)["later"], "of a requestor"},
		"what is nested": {status["spec"].(map[string]any)["drain"].(map[string]any)["later"], float64(12345678901234567)},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("of %s %v is handed on, want %v", what, pair[0], pair[1])
		}
	}
}

// TestAStateThatCannotBeReadNeverEndsAMaintenance: its node would be released under those who work on it.
func TestAStateThatCannotBeReadNeverEndsAMaintenance(t *testing.T) {
	for name, state := range map[string]string{
		"of a newer form": `{"needs":2,"at":"ready","status":{"phase":"Ready"},"prepared":{}}`,
		"cut off":         `{"at":"ready","status":{"pha`,
		"of other types":  `{"at":7}`,
		"no object":       `[]`,
	} {
		t.Run(name, func(t *testing.T) {
			s := workflowtest.New(t)
			s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
			s.Env.ExecuteWorkflow(maintenance.NodeMaintenance, workflowtest.InputWith(nil).Payload(t), workflowtest.Raw(state))
			standsStill(t, s)
		})
	}
}
