package scheduler_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/scheduler"
)

const staysHeld = "the slot of node n1 was said to be given back and stays held"

func TestASlotIsHeldAsLongAsItsMarkIsThereWhateverIsSaid(t *testing.T) {
	f := newFleet(t, 3)
	f.state.ContinueAfter = 5
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "net", 0)
	for i := range 30 {
		f.at(time.Minute+time.Duration(i)*time.Second, func() {
			f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: a.request.ID})
		})
	}
	f.at(2*time.Minute, func() {
		if !f.recorded(staysHeld, "its maintenance says that it has it") {
			t.Errorf("decisions %+v", f.stateNow().Decisions)
		}
	})
	f.expectAt(9*time.Minute, "n1/ops", "n2/net")
	f.at(10*time.Minute, func() { f.release(a) })
	f.run(time.Hour)
	if len(b.granted) != 1 || b.granted[0] < 10*time.Minute || b.granted[0] > 10*time.Minute+time.Second {
		t.Errorf("granted at %v: %v", b.granted, f.log)
	}
	if f.runs < 2 {
		t.Error("the scheduler did not continue as new")
	}
	// A run that continues as new asks once more.
	if asked := f.count("Query slot"); asked == 0 || asked > 6+f.runs {
		t.Errorf("the maintenance was asked %d times in %d runs", asked, f.runs)
	}
}

func TestASlotIsNotFreeBecauseItsHolderIsSaidToAskAnew(t *testing.T) {
	f := newFleet(t, 3)
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "net", 0)
	forged := a.request
	forged.ID = forged.RunID + "/7"
	f.at(time.Minute, func() { f.signal(api.SignalSlotRequest, forged) })
	f.expectAt(9*time.Minute, "n1/ops", "n2/net")
	f.at(10*time.Minute, func() { f.release(a) })
	f.expectAt(11*time.Minute, "n2/net", "")
	f.run(time.Hour)
	if len(b.granted) != 1 || b.granted[0] < 10*time.Minute {
		t.Errorf("granted at %v: %v", b.granted, f.log)
	}
}

func TestAMaintenanceThatWasResetBeforeItsLastRequestIsGranted(t *testing.T) {
	f := newFleet(t, 3)
	a := f.request(time.Second, "n1", "ops", 0)
	now := a.request
	f.at(time.Minute, func() { // it gave its node back twice, and holds it once more
		f.release(a)
		a.request.ID = a.request.RunID + "/3"
		f.signal(api.SignalSlotRequest, a.request)
	})
	f.expectAt(3*time.Minute, "n1/ops", "")
	f.at(4*time.Minute, func() {
		f.mu.Lock()
		f.nodes["n1"].marked, a.request = "", now
		f.mu.Unlock()
		f.signal(api.SignalSlotRequest, now)
	})
	f.at(5*time.Minute, func() {
		if h := f.stateNow().Holders; len(h) != 1 || h[0].RequestID != now.ID {
			t.Errorf("held by %+v: %v", h, f.log)
		}
	})
	f.run(time.Hour)
}

func TestWhoHoldsASlotIsAskedWhereNothingCanBeSeen(t *testing.T) {
	t.Run("it has given it back", func(t *testing.T) {
		f := newFleet(t, 2)
		a := f.request(time.Second, "n1", "ops", 0)
		b := f.request(2*time.Second, "n2", "net", 0)
		f.fail["SeeGivenBack"] = errors.New("the API server is away")
		f.at(time.Minute, func() {
			f.answers[a.request.RunID] = answered(t, api.SlotWanted{SlotRequest: api.SlotRequest{RunID: a.request.RunID}})
			f.release(a)
		})
		f.expectAt(time.Minute+5*time.Second, "n2/net", "")
		f.run(time.Hour)
		if len(b.granted) != 1 {
			t.Errorf("granted at %v: %v", b.granted, f.log)
		}
	})
	t.Run("it does not answer for a while", func(t *testing.T) {
		f := newFleet(t, 2)
		a := f.request(time.Second, "n1", "ops", 0)
		b := f.request(2*time.Second, "n2", "net", 0)
		f.fail["SeeGivenBack"] = errors.New("the API server is away")
		f.answers[a.request.RunID] = execution.Answered{Unanswered: "no worker polls"}
		f.at(time.Minute, func() { f.release(a) })
		f.at(5*time.Minute, func() {
			if len(b.granted) != 0 || !f.recorded(staysHeld, "its holder does not answer") {
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
	})
	t.Run("it does not run any more", func(t *testing.T) {
		f := newFleet(t, 2)
		a := f.request(time.Second, "n1", "ops", 0)
		b := f.request(2*time.Second, "n2", "net", 0)
		f.at(time.Minute, func() {
			a.dead = true
			f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: a.request.ID})
		})
		f.run(time.Hour)
		if len(b.granted) != 1 || f.count("ReleaseNode n1") != 1 {
			t.Errorf("granted at %v: %v", b.granted, f.log)
		}
	})
}

func TestAThawWithEndlessWordsIsRefused(t *testing.T) {
	f := newFleet(t, 1)
	long := f.update(time.Minute, api.UpdateThaw, api.ThawRequest{By: strings.Repeat("x", 1<<10), All: true})
	f.request(time.Second, "n1", "ops", 0)
	f.run(time.Hour)
	if long.rejected == nil || !strings.Contains(long.rejected.Error(), "by: ") {
		t.Errorf("%+v", long)
	}
}

// TestStateOfARunThatIsRepeatedIsNotTaken: the server names the run before also where a cron schedule or a retry policy
// begins another, with the input that somebody gave the first.
func TestStateOfARunThatIsRepeatedIsNotTaken(t *testing.T) {
	f := newFleet(t, 2)
	f.cron = "* * * * *"
	f.state = scheduler.State{Rebuilt: true, Holders: []api.Holder{{
		Grant: schedule.Grant{RequestID: runOf("n2", "forged") + "/1", Node: "n2", Requestor: "forged"}, RunID: runOf("n2", "forged"),
	}}}
	a := f.request(time.Minute, "n1", "ops", 0)
	f.run(time.Hour)
	if len(a.granted) != 1 {
		t.Errorf("granted at %v: %v", a.granted, f.log)
	}
}
