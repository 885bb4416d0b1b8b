package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// forgets has Temporal be restored at half past to a state of minute two: maintenances marked nodes at minute twenty, of which
// nothing is known any more.
func forgets(f *fleet, since time.Duration, nodes ...string) {
	var marks []api.StrayMark
	for _, name := range nodes {
		mark := f.unknown(name, "ops")
		mark.Since = f.start.Add(since)
		marks = append(marks, mark)
	}
	for _, mark := range marks {
		f.change(30*time.Minute, mark.Node, func(n *fleetNode) {
			n.marked = mark.RunID
			f.inventory.Strays, f.inventory.StraysAll = marks, len(marks)
			f.marks = func() cluster.MarksSeen { return cluster.MarksSeen{Unknown: slices.Clone(marks)} }
		})
	}
}

func TestARestoredSchedulerGrantsNothingAndHoldsAllBeforeAThaw(t *testing.T) {
	f := newFleet(t, 6)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(5), MaxUnavailable: schedule.Count(5)}
	running := f.request(time.Minute, "n2", "net", 0)
	forgets(f, 20*time.Minute, "n1", "n4")
	waits := f.request(40*time.Minute, "n3", "db", 0)
	f.at(45*time.Minute, func() {
		state := f.stateNow()
		if len(state.Freezes) != 1 || !state.Freezes[0].Running || state.Freezes[0].By != "drydock" ||
			!strings.Contains(state.Freezes[0].Reason, "2 nodes (n1, n4)") || !strings.Contains(state.Freezes[0].Reason, "drydock thaw --by drydock") {
			t.Errorf("freezes %+v", state.Freezes)
		}
		if n := len(running.holds); n == 0 || len(running.holds[n-1].Reasons) != 1 {
			t.Errorf("the running maintenance got %+v", running.holds)
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
		t.Errorf("the running maintenance got last %+v", running.holds)
	}
}

// TestOneNodesMarkFreezesNothing: its kubelet may write it, with many holders in it.
func TestOneNodesMarkFreezesNothing(t *testing.T) {
	f := newFleet(t, 5)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(4), MaxUnavailable: schedule.Count(4)}
	running := f.request(time.Minute, "n2", "net", 0)
	forgets(f, 20*time.Minute, "n1")
	second := f.unknown("n1", "db")
	second.Since = f.start.Add(21 * time.Minute)
	f.at(30*time.Minute+time.Second, func() {
		f.inventory.Strays, f.inventory.StraysAll = append(f.inventory.Strays, second), 2
	})
	waits := f.request(40*time.Minute, "n3", "db", 0)
	f.at(45*time.Minute, func() {
		if state := f.stateNow(); len(state.Freezes) != 0 || !f.recorded("nothing frozen for a single node", "restored to an earlier state") {
			t.Errorf("freezes %+v, decisions %+v", state.Freezes, state.Decisions)
		}
	})
	f.run(time.Hour)
	if len(waits.granted) != 1 || slices.ContainsFunc(running.holds, func(n api.FreezeNotice) bool { return len(n.Reasons) > 0 }) {
		t.Errorf("granted %v, the running one got %+v", waits.granted, running.holds)
	}
}

// TestAFewLostMarksAmongManyFreezeGrantsOnly: what runs goes on where most of the marked nodes are known.
func TestAFewLostMarksAmongManyFreezeGrantsOnly(t *testing.T) {
	f := newFleet(t, 9)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(8), MaxUnavailable: schedule.Count(8)}
	running := f.request(time.Minute, "n2", "net", 0)
	for _, node := range []string{"n5", "n6", "n7"} {
		f.running(node, "net", 1, true)
		f.inventory.Marked = append(f.inventory.Marked, f.mark(node, "net"))
	}
	forgets(f, 20*time.Minute, "n1", "n4")
	waits := f.request(40*time.Minute, "n3", "db", 0)
	f.at(45*time.Minute, func() {
		if state := f.stateNow(); len(state.Freezes) != 1 || state.Freezes[0].Running {
			t.Errorf("freezes %+v", state.Freezes)
		}
	})
	f.run(time.Hour)
	if len(waits.granted) != 0 || slices.ContainsFunc(running.holds, func(n api.FreezeNotice) bool { return len(n.Reasons) > 0 }) {
		t.Errorf("granted %v, the running one got %+v", waits.granted, running.holds)
	}
}

// TestAMarkThatSaysNothingOfARestoreFreezesNothing: its maintenance was deleted, or somebody has forged it.
func TestAMarkThatSaysNothingOfARestoreFreezesNothing(t *testing.T) {
	for name, since := range map[string]time.Duration{
		"from before this scheduler": -time.Hour,
		"of later than now":          10 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 6)
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(5), MaxUnavailable: schedule.Count(5)}
			f.request(time.Minute, "n2", "net", 0)
			forgets(f, since, "n1", "n4")
			waits := f.request(40*time.Minute, "n3", "db", 0)
			f.run(time.Hour)
			if len(waits.granted) != 1 || f.count("TakeInventory") == 0 {
				t.Errorf("granted %v: %v", waits.granted, f.log)
			}
		})
	}
}
