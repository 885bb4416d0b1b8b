package maintenance_test

import (
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/workflowtest"
)

var object = spec.Object{Resource: "nodemaintenances.drydock.dev", Name: "kernel", UID: "2f9e9c1e"}

// ofObject is the input of a maintenance that an object asked for.
func ofObject() workflowtest.Input {
	return workflowtest.InputWith(workflowtest.Input{"object": object})
}

func TestTheBridgeIsCalledAfterChanges(t *testing.T) {
	s := workflowtest.New(t).DoneAt(10 * time.Minute)
	status := s.Run(ofObject())
	s.ExpectCompleted()
	calls := s.Count(api.ReconcileObject)
	// No more often than anything changed, and after the end for the last time.
	if most := len(status.Transitions) + len(status.Messages) + len(status.States); calls < 3 || calls > most {
		t.Errorf("the bridge was called %d times for %d transitions, messages and states", calls, most)
	}
	if got, want := s.Called[api.ReconcileObject].TaskQueue, api.LaneBridge.Queue(api.DefaultTaskQueue); got != want {
		t.Errorf("it is called on task queue %q, want %q", got, want)
	}
	if in := workflowtest.InputOf[spec.Object](s, api.ReconcileObject, 0); in != object {
		t.Errorf("it is called for %+v", in)
	}
	last := len(s.Log) - 1
	for ; last >= 0 && s.Log[last] != api.ReconcileObject; last-- {
	}
	for _, later := range s.Log[last+1:] {
		if later == "ReleaseNode" {
			t.Errorf("the node is released after the last call: %v", s.Log)
		}
	}
}

func TestAMaintenanceWithoutAnObjectCallsNoBridge(t *testing.T) {
	s := workflowtest.New(t).DoneAt(10 * time.Minute)
	s.Run(workflowtest.InputWith(nil))
	if calls := s.Count(api.ReconcileObject); calls > 0 {
		t.Errorf("the bridge was called %d times", calls)
	}
}

// A bridge that never answers holds up nothing but the end, and that for seconds.
func TestABridgeThatIsAwayHoldsNothingUp(t *testing.T) {
	with, without := workflowtest.New(t).DoneAt(10*time.Minute), workflowtest.New(t).DoneAt(10*time.Minute)
	for range 100 {
		with.Answer(api.ReconcileObject, workflowtest.Reply{After: 9 * time.Second, Err: workflowtest.Failing("Away", "nobody is there")})
	}
	away, usual := with.Run(ofObject()), without.Run(workflowtest.InputWith(nil))
	with.ExpectCompleted()
	ready := func(s api.Status) time.Duration {
		for _, t := range s.Transitions {
			if t.Phase == api.Ready {
				return t.At.Sub(s.CreatedAt)
			}
		}
		return 0
	}
	if ready(away) != ready(usual) {
		t.Errorf("Ready after %s, without a bridge after %s", ready(away), ready(usual))
	}
	if late := with.Env.Now().Sub(without.Env.Now()); late > 20*time.Second {
		t.Errorf("it ended %s later", late)
	}
}

// What is known of an object is carried into each new run.
func TestANewRunGoesOnCallingTheBridge(t *testing.T) {
	s := workflowtest.New(t).ContinueAt(5 * time.Minute).DoneAt(10 * time.Minute)
	status := s.Run(ofObject())
	if s.Runs != 2 || status.Spec.Object == nil || *status.Spec.Object != object {
		t.Errorf("after %d runs its object is %+v", s.Runs, status.Spec.Object)
	}
	if s.Count(api.ReconcileObject) < 4 {
		t.Errorf("the bridge was called %d times in two runs", s.Count(api.ReconcileObject))
	}
}
