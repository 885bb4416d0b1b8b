package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// atMost is how many signals and activities a workflow may have under way together; a server refuses 2,000.
const atMost = 500

// boundedCommands has every signal take its time, and counts those under way.
func (f *fleet) boundedCommands() {
	f.neverTooMany()
	f.t.Cleanup(func() {
		if f.mostSignals < atMost/2 {
			f.t.Errorf("only %d signals were under way at one instant: the bound was not tried", f.mostSignals)
		}
	})
}

func (f *fleet) neverTooMany() {
	f.signalTakes = time.Second
	f.t.Cleanup(func() {
		if f.mostSignals > atMost {
			f.t.Errorf("%d signals were under way at one instant", f.mostSignals)
		}
	})
}

// silent is a maintenance that asks for nothing by itself.
func (f *fleet) silent(node string) *asking {
	run := runOf(node, "ops")
	a := &asking{request: api.SlotRequest{RunID: run, Request: schedule.Request{ID: run + "/1", Node: node, Requestor: "ops", Created: f.start}}}
	f.asking[run] = a
	return a
}

// waiting is one whose request came in before.
func (f *fleet) waiting(node string) *asking {
	a := f.silent(node)
	f.state.Pending = append(f.state.Pending, api.PendingRequest{SlotRequest: a.request, Code: schedule.Unobserved})
	return a
}

func TestThousandsOfRequestsForMissingNodesAreAllRefused(t *testing.T) {
	for _, after := range []int{0, 1} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) {
			f := newFleet(t, 1)
			f.boundedCommands()
			f.state.ContinueAfter = after
			var all []*asking
			for i := range 2200 {
				all = append(all, f.waiting("missing-"+itoa(i)))
			}
			f.at(2500*time.Millisecond, func() { f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: runOf("no", "body") + "/1"}) })
			f.expectAt(10*time.Minute, "", "")
			f.run(time.Hour)
			for _, a := range all {
				if a.refused == nil {
					t.Fatalf("%s got no signal", a.request.Node)
				}
			}
		})
	}
}

func TestAThawGrantsThousandsAtOnce(t *testing.T) {
	for name, until010 := range map[string]time.Duration{"by signals, as 0.1.0": 2 * time.Hour, "by activities": 0} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2500)
			f.until010 = until010
			activities := 25
			if until010 > 0 {
				f.boundedCommands()
				activities = 0
			}
			f.neverTooMany()
			f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited()}
			f.state.Freezes = []schedule.Freeze{{By: "amy", At: f.start}}
			var all []*asking
			for i := range 2500 {
				all = append(all, f.waiting(fmt.Sprintf("n%d", i+1)))
			}
			f.update(time.Hour, api.UpdateThaw, api.ThawRequest{By: "amy"})
			f.run(2 * time.Hour)
			for _, a := range all {
				if len(a.granted) != 1 {
					t.Fatalf("%s was granted %d times", a.request.Node, len(a.granted))
				}
			}
			if n := f.count("SendGrants"); n != activities {
				t.Errorf("%d activities sent grants, want %d", n, activities)
			}
		})
	}
}

// Of many that are granted at once, some have ended: their slots go to others.
func TestOneOfManyGrantedThatHasEndedGivesItsSlotBack(t *testing.T) {
	f := newFleet(t, 31)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(30)}
	f.state.Freezes = []schedule.Freeze{{By: "amy", At: f.start}}
	var all []*asking
	for i := range 31 {
		all = append(all, f.waiting(fmt.Sprintf("n%d", i+1)))
	}
	all[3].dead = true
	f.update(time.Hour, api.UpdateThaw, api.ThawRequest{By: "amy"})
	f.run(2 * time.Hour)
	for i, a := range all {
		if want := i != 3; want != (len(a.granted) == 1) {
			t.Errorf("%s was granted %d times", a.request.Node, len(a.granted))
		}
	}
	if n := f.count("SendGrants"); n != 1 {
		t.Errorf("%d activities sent grants", n)
	}
}

func TestAFreezeOfThousandsThatRunIsSentToAllAndTheLastOneCounts(t *testing.T) {
	for _, after := range []int{0, 1} {
		t.Run(fmt.Sprint("continued as new after ", after), func(t *testing.T) {
			f := newFleet(t, 2001)
			f.boundedCommands()
			f.state.ContinueAfter = after
			for i := range 2001 {
				a := f.silent(fmt.Sprintf("n%d", i+1))
				f.state.Holders = append(f.state.Holders, f.holderOf(a))
			}
			// While one freeze is being sent comes the next, and a signal that may end the run.
			f.update(time.Second, api.UpdateFreeze, api.FreezeRequest{By: "amy", Running: true})
			f.update(2*time.Second, api.UpdateFreeze, api.FreezeRequest{By: "bob", Running: true})
			f.at(2500*time.Millisecond, func() { f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: runOf("no", "body") + "/1"}) })
			f.run(time.Hour)
			sent := 0
			for _, a := range f.asking {
				sent += len(a.holds)
				if n := len(a.holds); n == 0 || len(a.holds[n-1].Reasons) != 2 {
					t.Fatalf("%s got %+v", a.request.Node, a.holds)
				}
			}
			if after == 0 && sent > 3200 {
				t.Errorf("%d notices to 2001 holders: those that waited were not joined", sent)
			}
			if after > 0 && f.runs < 2 {
				t.Errorf("%d runs", f.runs)
			}
		})
	}
}
