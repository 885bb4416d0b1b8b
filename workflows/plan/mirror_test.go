package plan_test

import (
	"testing"
	"time"

	"drydock.dev/drydock/api"
	planrules "drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

func TestTheBridgeIsCalledAfterChanges(t *testing.T) {
	s := newSite(t, "a", "b", "c")
	const object = `"object":{"resource":"maintenanceplans.drydock.dev","name":"kernel","uid":"uid-1"}`
	status := s.ended(`{"selector":"x=y",`+object+`}`, api.PlanCompleted, planrules.Counts{Total: 3, Done: 3})
	want := spec.Object{Resource: "maintenanceplans.drydock.dev", Name: "kernel", UID: "uid-1"}
	// Of each node its begin and its end, and of the plan its begin, its nodes and its end.
	if n := len(s.calls); n < 5 || n > 12 || s.calls[n-1] != want {
		t.Errorf("the bridge was called for %+v", s.calls)
	}
	if o := status.Plan.Object; o == nil || *o != want {
		t.Errorf("the plan says that it was asked for by %+v", o)
	}
}

func TestAPlanWithoutAnObjectCallsNoBridge(t *testing.T) {
	s := newSite(t, "a")
	s.signalAt(time.Second, api.MsgPause, nil)
	s.signalAt(time.Minute, api.MsgResume, nil)
	s.ended(`{"selector":"x=y"}`, api.PlanCompleted, planrules.Counts{Total: 1, Done: 1})
	if len(s.calls) > 0 {
		t.Errorf("the bridge was called for %+v", s.calls)
	}
}
