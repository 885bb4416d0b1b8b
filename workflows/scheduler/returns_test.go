package scheduler_test

import (
	"errors"
	"testing"
	"time"

	"drydock/api"
)

func TestASlotIsHeldAsLongAsItsMarkIsThereWhateverIsSaid(t *testing.T) {
	f := newFleet(t, 3)
	f.state.ContinueAfter = 5
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "net", 0)
	say := func() { f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: a.request.ID}) }
	f.at(time.Minute, say)
	f.at(2*time.Minute, func() {
		if !f.recorded("the slot of node n1 was said to be given back and stays held", "its mark is still on the node") {
			t.Errorf("decisions %+v", f.stateNow().Decisions)
		}
	})
	for i := range 10 { // the scheduler continues as new, and does not forget
		f.at(3*time.Minute+time.Duration(i)*time.Second, say)
	}
	f.expectAt(9*time.Minute, "n1/ops", "n2/net")
	// A release that was lost is made up for by what was said before.
	f.at(10*time.Minute, func() { f.mu.Lock(); defer f.mu.Unlock(); f.nodes["n1"].marked = "" })
	f.run(time.Hour)
	if len(b.granted) != 1 || b.granted[0] < 10*time.Minute || b.granted[0] > 11*time.Minute+10*time.Second {
		t.Errorf("granted at %v: %v", b.granted, f.log)
	}
	if f.runs < 2 {
		t.Error("the scheduler did not continue as new")
	}
	if looks := f.count("SeeGivenBack"); looks > 25 {
		t.Errorf("%d looks", looks)
	}
}

func TestASlotIsNotFreeBecauseItsHolderIsSaidToAskAnew(t *testing.T) {
	f := newFleet(t, 3)
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "net", 0)
	held := a.request.ID
	f.at(time.Minute, func() {
		a.request.ID = a.request.RunID + "/2"
		f.signal(api.SignalSlotRequest, a.request)
	})
	f.at(9*time.Minute, func() {
		if h := f.stateNow().Holders; len(h) != 1 || h[0].RequestID != held || len(b.granted) != 0 {
			t.Errorf("held by %+v, and n2 granted at %v", h, b.granted)
		}
	})
	f.run(time.Hour)
}

func TestASlotIsGivenBackAlsoWhereTheMarkCannotBeLookedAtForAWhile(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "net", 0)
	f.fail["SeeGivenBack"] = errors.New("the API server is away")
	f.at(time.Minute, func() { f.release(a) })
	f.at(5*time.Minute, func() {
		if len(b.granted) != 0 || !f.recorded("stays held", "the API server is away") {
			t.Errorf("granted at %v; %+v", b.granted, f.stateNow().Decisions)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.fail, "SeeGivenBack")
	})
	f.run(time.Hour)
	if len(b.granted) != 1 || b.granted[0] < 5*time.Minute || b.granted[0] > 6*time.Minute+10*time.Second {
		t.Errorf("granted at %v: %v", b.granted, f.log)
	}
}
