package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"drydock/activities/cluster"
	"drydock/api"
	"drydock/rules/schedule"
)

// forgets has Temporal be restored at half past to a state of minute two: a maintenance marked n1 at minute twenty, of which
// nothing is known any more.
func forgets(f *fleet, since time.Duration) {
	mark := f.unknown("n1", "ops")
	mark.Since = f.start.Add(since)
	f.change(30*time.Minute, "n1", func(n *fleetNode) {
		n.marked = mark.RunID
		f.inventory.Strays, f.inventory.StraysAll = []api.StrayMark{mark}, 1
		f.marks = func() cluster.MarksSeen { return cluster.MarksSeen{Unknown: []api.StrayMark{mark}} }
	})
}

func TestARestoredSchedulerGrantsNothingAndHoldsAllBeforeAThaw(t *testing.T) {
	f := newFleet(t, 4)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(3)}
	running := f.request(time.Minute, "n2", "net", 0)
	forgets(f, 20*time.Minute)
	waits := f.request(40*time.Minute, "n3", "db", 0)
	f.at(45*time.Minute, func() {
		state := f.stateNow()
		if len(state.Freezes) != 1 || !state.Freezes[0].Running || state.Freezes[0].By != "drydock" ||
			!strings.Contains(state.Freezes[0].Reason, "1 node (n1)") || !strings.Contains(state.Freezes[0].Reason, "drydock thaw --by drydock") {
			t.Errorf("freezes %+v", state.Freezes)
		}
		if n := len(running.holds); n == 0 || len(running.holds[n-1].Reasons) != 1 {
			t.Errorf("the running maintenance was told %+v", running.holds)
		}
		if len(waits.granted) != 0 {
			t.Errorf("granted at %v", waits.granted)
		}
	})
	thaw := f.update(time.Hour, api.UpdateThaw, api.ThawRequest{By: "drydock", Comment: "looked"})
	// What is known once freezes nothing again, however often it is looked at.
	f.at(5*time.Hour, func() {
		if state := f.stateNow(); len(state.Freezes) != 0 {
			t.Errorf("freezes %+v", state.Freezes)
		}
	})
	f.run(6 * time.Hour)
	if thaw.err != nil || len(waits.granted) != 1 || waits.granted[0] < time.Hour {
		t.Errorf("thaw %v, granted %v", thaw.err, waits.granted)
	}
	if n := len(running.holds); n == 0 || len(running.holds[n-1].Reasons) != 0 {
		t.Errorf("the running maintenance was told last %+v", running.holds)
	}
}

// TestAMarkThatSaysNothingOfARestoreFreezesNothing: its maintenance was deleted, or somebody has forged it.
func TestAMarkThatSaysNothingOfARestoreFreezesNothing(t *testing.T) {
	for name, since := range map[string]time.Duration{
		"from before this scheduler": -time.Hour,
		"of later than now":          10 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 4)
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(3)}
			f.request(time.Minute, "n2", "net", 0)
			forgets(f, since)
			waits := f.request(40*time.Minute, "n3", "db", 0)
			f.run(time.Hour)
			if len(waits.granted) != 1 || f.count("TakeInventory") == 0 {
				t.Errorf("granted %v: %v", waits.granted, f.log)
			}
		})
	}
}
