package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/scheduler"
	"drydock.dev/drydock/workflows/workflowtest"
)

// recorded reports whether the scheduler's log has an entry with both texts.
func (f *fleet) recorded(what, why string) bool {
	f.t.Helper()
	return slices.ContainsFunc(f.stateNow().Decisions, func(d api.RecordedDecision) bool {
		return strings.Contains(d.What, what) && strings.Contains(d.Why, why)
	})
}

func TestAPoisonousRequestIsRecordedAndNeverACommand(t *testing.T) {
	f := newFleet(t, 3)
	run := runOf("n1", "ops")
	at := time.Second
	for says, text := range map[string]string{
		"runId: ":       `{"id":"r/1","node":"n1","requestor":"ops","runId":"r","created":"2026-07-01T12:00:00Z"}`,
		"id: ":          `{"id":"x","node":"n1","requestor":"ops","runId":"` + run + `","created":"2026-07-01T12:00:00Z"}`,
		"node: ":        `{"id":"` + run + `/1","node":"` + strings.Repeat("n", 3000) + `","requestor":"ops","runId":"` + run + `","created":"2026-07-01T12:00:00Z"}`,
		"requestor: ":   `{"id":"` + run + `/1","node":"n1","requestor":"a/b","runId":"` + run + `","created":"2026-07-01T12:00:00Z"}`,
		"created: ":     `{"id":"` + run + `/1","node":"n1","requestor":"ops","runId":"` + run + `"}`,
		"in the future": `{"id":"` + run + `/1","node":"n1","requestor":"ops","runId":"` + run + `","created":"2999-07-01T12:00:00Z"}`,
		"priority: ":    `{"id":"` + run + `/1","node":"n1","requestor":"ops","runId":"` + run + `","priority":9999999999,"created":"2026-07-01T12:00:00Z"}`,
	} {
		f.at(at, func() { f.signal(api.SignalSlotRequest, workflowtest.Raw(text)) })
		at += time.Second
		f.at(at, func() {
			if !f.recorded("ignored a slot request", says) {
				t.Errorf("%s is not on record: %+v", text, f.stateNow().Decisions)
			}
		})
	}
	f.expectAt(at, "", "")
	f.at(at, func() {
		f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: run + "/1", By: strings.Repeat("x", 1<<16)})
	})
	f.at(at+time.Second, func() {
		if !f.recorded("ignored a slot release", "by: 65536 bytes") {
			t.Errorf("decisions %+v", f.stateNow().Decisions)
		}
	})
	good := f.request(at+time.Minute, "n2", "ops", 0)
	f.run(time.Hour)
	if len(good.granted) != 1 || len(f.grants()) != 1 {
		t.Errorf("log %v", f.log)
	}
}

func TestAPoisonousMarkStopsNoRebuild(t *testing.T) {
	f := newFleet(t, 4)
	f.state = scheduler.State{}
	bad := f.mark("n1", "ops")
	bad.RunID = "r"
	foreign := f.mark("n2", "ops")
	foreign.WorkflowID = "somebody-else"
	ended := f.mark("n3", "ops")
	ended.RunID = "r"
	f.inventory.Marked = []execution.MarkedHolder{bad, foreign}
	f.inventory.Ended = []execution.MarkedHolder{ended}
	f.expectAt(time.Minute, "", "")
	a := f.request(2*time.Minute, "n4", "ops", 0)
	f.run(time.Hour)
	if len(a.granted) != 1 || f.count("ReleaseNode") != 0 || f.count("AskFate") != 0 {
		t.Errorf("log %v", f.log)
	}
}

func TestStateThatSomebodyForgesIsConfigurationAtMost(t *testing.T) {
	f := newFleet(t, 3)
	f.forged = true
	f.state = scheduler.State{
		Rebuilt: true, PreviousRun: "a run", OnOrphan: "burn",
		Limits:  api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(2)}, SetBy: "configuration"},
		Freezes: []schedule.Freeze{{By: "eve"}},
		Holders: []api.Holder{{Grant: schedule.Grant{RequestID: "x", Node: "n1", Requestor: "ghost"}, RunID: "ghost"}},
		Pending: []api.PendingRequest{{}}, ContinueAfter: 1,
	}
	f.running("n2", "ops", 1, true)
	f.expectAt(time.Minute, "n2/ops", "")
	f.at(time.Minute, func() {
		state := f.stateNow()
		if state.Limits.MaxParallel != schedule.Count(2) || len(state.Freezes) != 0 {
			t.Errorf("state %+v", state)
		}
		if !f.recorded("ignored a part", `previousRun: "a run"`) || !f.recorded("ignored a part", "onOrphan: burn") {
			t.Errorf("decisions %+v", state.Decisions)
		}
	})
	f.run(time.Hour)
	if f.count("TakeInventory") != 1 || f.runs != 1 {
		t.Errorf("%d runs: %v", f.runs, f.log)
	}
}

func TestWhoHoldsASlotCanBeAsked(t *testing.T) {
	f := newFleet(t, 3)
	f.state = scheduler.State{}
	f.fail["TakeInventory"] = errUnknownCause
	a := f.request(time.Second, "n1", "ops", 0)
	waits := f.request(2*time.Second, "n2", "ops", 0)
	held := func(id string) api.SlotHeld {
		value, err := f.env.QueryWorkflow(api.QuerySlotsHeld, api.SlotQuestion{RequestIDs: []string{"another", id}})
		var answer api.SlotsHeld
		if err == nil {
			err = value.Get(&answer)
		}
		if err != nil {
			t.Error(err)
		}
		return answer.Of(id)
	}
	f.at(3*time.Second, func() {
		if got := held(a.request.ID); !cmp.Equal(got, api.SlotHeld{Rebuilding: true}) {
			t.Errorf("before it is known: %+v", got)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.fail, "TakeInventory")
	})
	f.at(10*time.Minute, func() {
		for id, want := range map[string]bool{a.request.ID: true, waits.request.ID: false, a.request.RunID + "/2": false, "": false} {
			if got := held(id); got.Held != want || got.Waiting != (id == waits.request.ID) || got.Rebuilding || len(got.Frozen) > 0 {
				t.Errorf("%s: %+v", id, got)
			}
		}
	})
	f.run(time.Hour)
}

func TestANoticeOfAFreezeNamesItsRequestAndARevisionThatGrows(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.update(time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "amy", Running: true})
	f.update(2*time.Minute, api.UpdateThaw, api.ThawRequest{By: "amy"})
	f.update(3*time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "amy", Running: true})
	f.run(time.Hour)
	if len(a.holds) != 3 {
		t.Fatalf("got %+v", a.holds)
	}
	last := 0
	for _, h := range a.holds {
		if h.RequestID != a.request.ID || h.Revision <= last {
			t.Errorf("got %+v", a.holds)
		}
		last = h.Revision
	}
}

func TestARequestThatComesLateTakesNothingBack(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	late := a.request
	f.at(time.Minute, func() { f.release(a) })
	f.at(time.Minute+time.Second, func() {
		a.request.ID = a.request.RunID + "/2"
		f.signal(api.SignalSlotRequest, a.request)
	})
	f.at(2*time.Minute, func() { f.signal(api.SignalSlotRequest, late) })
	f.at(3*time.Minute, func() {
		if h := f.stateNow().Holders; len(h) != 1 || h[0].RequestID != a.request.ID {
			t.Errorf("held by %+v", h)
		}
	})
	f.run(time.Hour)
}

// unknown is a mark of a maintenance that the scheduler does not know.
func (f *fleet) unknown(node, requestor string) api.StrayMark {
	return api.StrayMark{
		Node: node, Kind: api.StrayUnknown, RunID: runOf(node, requestor), Requestor: requestor,
		WorkflowID: api.MaintenanceID("", node, requestor), Since: f.start,
	}
}

func TestAMarkThatIsNotKnownHasTheHoldersFoundOutBeforeAnythingIsGranted(t *testing.T) {
	f := newFleet(t, 4)
	forgotten := f.running("n1", "ops", 3, true)
	f.marks = func() cluster.MarksSeen { return cluster.MarksSeen{Unknown: []api.StrayMark{f.unknown("n1", "ops")}} }
	a := f.request(time.Minute, "n2", "net", 0)
	f.expectAt(10*time.Minute, "n1/ops", "n2/net")
	f.at(20*time.Minute, func() { f.marks = nil; f.release(forgotten) })
	f.expectAt(21*time.Minute, "n2/net", "")
	f.run(time.Hour)
	if f.count("TakeInventory") != 1 || len(a.granted) != 1 || a.granted[0] < 20*time.Minute {
		t.Errorf("granted %v: %v", a.granted, f.log)
	}
}

func TestAMarkOfWhichNothingCanBeFoundOutIsReportedAndLookedAtAgain(t *testing.T) {
	f := newFleet(t, 4)
	stray := f.unknown("n1", "ops")
	gone := false
	f.marks = func() (seen cluster.MarksSeen) {
		if !gone {
			seen.Unknown = []api.StrayMark{stray}
		}
		return seen
	}
	f.inventory.Strays, f.inventory.StraysAll = []api.StrayMark{stray}, 1
	f.nodes["n1"].marked = stray.RunID
	a := f.request(time.Minute, "n2", "net", 0)
	f.expectAt(10*time.Minute, "n2/net", "")
	f.at(10*time.Minute, func() {
		if state := f.stateNow(); state.StraysAll != 1 || len(state.Strays) != 1 || state.Strays[0].Kind != api.StrayUnknown || state.Unavailable != 2 {
			t.Errorf("state %+v", state)
		}
		if n := f.count("TakeInventory"); n != 1 {
			t.Errorf("%d inventories for one mark", n)
		}
	})
	// In the end it turns out to have ended.
	f.at(30*time.Minute, func() {
		f.inventory.Strays, f.inventory.StraysAll = nil, 0
		f.inventory.Ended = []execution.MarkedHolder{f.mark("n1", "ops")}
		f.asking[stray.RunID] = &asking{dead: true, request: api.SlotRequest{RunID: stray.RunID, Request: schedule.Request{
			ID: stray.RunID + "/1", Node: "n1", Requestor: "ops",
		}}}
		gone = true
	})
	f.at(2*time.Hour, func() {
		if state := f.stateNow(); state.StraysAll != 0 {
			t.Errorf("strays %+v", state.Strays)
		}
	})
	f.run(3 * time.Hour)
	if len(a.granted) != 1 || f.count("ReleaseNode n1") != 1 {
		t.Errorf("log %v", f.log)
	}
}

func TestForeignMarksAreReportedAndLeftAlone(t *testing.T) {
	f := newFleet(t, 4)
	f.marks = func() cluster.MarksSeen {
		return cluster.MarksSeen{Foreign: []api.StrayMark{{Node: "n1", Kind: api.StrayForeign, Namespace: "elsewhere"}}, ForeignAll: 1}
	}
	f.request(time.Second, "n2", "ops", 0)
	f.at(time.Minute, func() {
		state := f.stateNow()
		if state.StraysAll != 1 || state.Strays[0].Namespace != "elsewhere" || !f.recorded("1 mark on nodes is not of this Drydock", "") {
			t.Errorf("state %+v", state)
		}
	})
	f.run(time.Hour)
	if f.count("TakeInventory")+f.count("ReleaseNode") != 0 {
		t.Errorf("log %v", f.log)
	}
}

func TestAReportedOrphanStaysUnavailable(t *testing.T) {
	f := newFleet(t, 10)
	f.state.OnOrphan = scheduler.ReportOrphans
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited(), MaxUnavailable: schedule.Count(1)}
	a := f.request(time.Second, "n1", "ops", 0)
	waits := f.request(2*time.Second, "n2", "net", 0)
	f.kill(10*time.Minute, a)
	f.expectAt(time.Hour, "", "n2/net")
	f.at(time.Hour, func() {
		if state := f.stateNow(); state.StraysAll != 1 || state.Strays[0].Kind != api.StrayOrphan || state.Unavailable != 1 {
			t.Errorf("state %+v", state)
		}
	})
	f.run(2 * time.Hour)
	if len(waits.granted) != 0 || f.count("ReleaseNode") != 0 {
		t.Errorf("granted at %v past maxUnavailable: %v", waits.granted, f.log)
	}
}

func TestAHolderThatWasResetAfterItsEndKeepsItsSlot(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.kill(10*time.Minute, a)
	f.fail["ReleaseNode n1"] = workflowtest.Failing(api.ErrorHolderAlive, "it runs")
	f.at(30*time.Minute, func() { f.mu.Lock(); defer f.mu.Unlock(); a.dead = false })
	f.expectAt(time.Hour, "n1/ops", "")
	f.run(2 * time.Hour)
	if f.nodes["n1"].marked == "" {
		t.Error("the node was released")
	}
}

func TestASchedulerThatMayNotListNodesSaysSoAndBacksOff(t *testing.T) {
	for name, c := range map[string]struct {
		state    scheduler.State
		activity string
		what     string
	}{
		"when it begins":  {scheduler.State{}, "TakeInventory", "who holds a slot"},
		"when it decides": {scheduler.State{Rebuilt: true}, "ObserveNodes", "could not be observed"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.state = c.state
			f.fail[c.activity] = workflowtest.Failing(api.ErrorMissingPermission, "may not list nodes")
			a := f.request(time.Second, "n1", "ops", 0)
			f.at(10*time.Hour, func() {
				trouble := f.stateNow().Trouble
				if trouble == nil || !strings.Contains(trouble.What, c.what) || !strings.Contains(trouble.Why, "may not list nodes") || trouble.NextTry.Sub(f.start) > 11*time.Hour {
					t.Errorf("trouble %+v", trouble)
				}
				if n := f.count(c.activity); n < 10 || n > 30 {
					t.Errorf("%d attempts in ten hours", n)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.fail, c.activity)
			})
			f.at(12*time.Hour, func() {
				if trouble := f.stateNow().Trouble; trouble != nil {
					t.Errorf("trouble %+v", trouble)
				}
			})
			f.run(13 * time.Hour)
			if len(a.granted) != 1 {
				t.Errorf("granted %v", a.granted)
			}
		})
	}
}

func TestFreezesAreBounded(t *testing.T) {
	f := newFleet(t, 1)
	var last *stateOutcome
	for i := range 51 {
		last = f.update(time.Duration(i+1)*time.Second, api.UpdateFreeze, api.FreezeRequest{By: fmt.Sprint("p", i)})
	}
	again := f.update(time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "p3", Reason: "still"})
	f.run(time.Hour)
	if last.rejected == nil || !strings.Contains(last.rejected.Error(), "50 freezes already") || !again.done || again.err != nil {
		t.Errorf("the 51st: %+v, one of them again: %+v", last, again)
	}
}
