package scheduler_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/scheduler"
)

// Runs of schedulers.
var earlierRun, firstRun, secondRun = runOf("before", "scheduler"), runOf("first", "scheduler"), runOf("second", "scheduler")

// answered is an answer to a query.
func answered(t *testing.T, value any) execution.Answered {
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return execution.Answered{Answer: data}
}

// running lets a maintenance be found by the inventory, with the slot it says it has.
func (f *fleet) running(node, requestor string, attempt int, granted bool) *asking {
	a := f.request(1000*time.Hour, node, requestor, 0)
	a.request.ID = a.request.RunID + "/" + string(rune('0'+attempt))
	wanted := api.SlotWanted{SlotRequest: a.request, Wants: true}
	if granted {
		wanted.GrantedAt = &f.start
		f.nodes[node].marked = a.request.RunID
	}
	f.saying(a, wanted)
	return a
}

func (f *fleet) saying(a *asking, wanted api.SlotWanted) {
	f.answers[a.request.RunID] = answered(f.t, wanted)
	f.inventory.Running = append(f.inventory.Running, execution.Run{
		WorkflowID: api.MaintenanceID("", a.request.Node, a.request.Requestor), RunID: a.request.RunID,
	})
}

func (f *fleet) mark(node, requestor string) execution.MarkedHolder {
	return execution.MarkedHolder{
		Run:  execution.Run{WorkflowID: api.MaintenanceID("", node, requestor), RunID: runOf(node, requestor)},
		Node: node, Requestor: requestor, Since: f.start,
	}
}

func (f *fleet) holderOf(a *asking) api.Holder {
	return api.Holder{
		Grant: schedule.Grant{RequestID: a.request.ID, Node: a.request.Node, Requestor: a.request.Requestor},
		RunID: a.request.RunID, GrantedAt: f.start,
	}
}

func TestSchedulerWithoutStateFindsWhoHoldsAndWhoWaits(t *testing.T) {
	f := newFleet(t, 6)
	f.state = scheduler.State{Limits: api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(3)}}}
	f.running("n1", "ops", 1, true)
	f.running("n2", "ops", 2, true)
	waits := f.running("n3", "ops", 1, false)
	marked := f.request(1000*time.Hour, "n4", "net", 0) // visibility does not know it yet
	f.nodes["n4"].marked = marked.request.RunID
	f.inventory.Marked = []execution.MarkedHolder{f.mark("n1", "ops"), f.mark("n4", "net")}
	dead := f.request(1000*time.Hour, "n5", "net", 0)
	dead.dead = true
	f.nodes["n5"].marked = dead.request.RunID
	f.inventory.Ended = []execution.MarkedHolder{f.mark("n5", "net")}
	f.expectAt(time.Minute, "n1/ops n2/ops n4/net", "n3/ops")
	f.at(2*time.Minute, func() { f.release(marked) })
	f.expectAt(3*time.Minute, "n1/ops n2/ops n3/ops", "")
	f.run(time.Hour)
	if len(waits.granted) != 1 || f.count("ReleaseNode n5") != 1 || f.nodes["n5"].marked != "" {
		t.Errorf("log %v", f.log)
	}
}

func TestSchedulerGrantsNothingBeforeItKnowsItsHolders(t *testing.T) {
	f := newFleet(t, 3)
	f.state = scheduler.State{}
	f.running("n1", "ops", 1, true)
	f.fail["TakeInventory"] = errUnknownCause
	late := f.request(time.Second, "n2", "net", 0)
	limits := f.update(2*time.Second, api.UpdateSetLimits, api.SetLimits{By: "amy", Limits: schedule.Limits{MaxParallel: schedule.Count(2)}})
	f.at(3*time.Second, func() {
		if state := f.stateNow(); !state.Rebuilding {
			t.Errorf("state = %+v", state)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.fail, "TakeInventory")
	})
	f.expectAt(time.Minute, "n1/ops n2/net", "")
	f.run(time.Hour)
	if len(late.granted) != 1 || late.granted[0] < 3*time.Second {
		t.Errorf("granted at %v", late.granted)
	}
	if !limits.done || limits.err != nil {
		t.Errorf("set-limits while the holders are sought: %+v", limits)
	}
}

func TestUpdatesThatWaitTakeEffectInTheirOrder(t *testing.T) {
	f := newFleet(t, 1)
	f.state = scheduler.State{}
	f.fail["TakeInventory"] = errUnknownCause
	limits := func(n int) api.SetLimits {
		return api.SetLimits{By: "amy", Limits: schedule.Limits{MaxParallel: schedule.Count(n)}}
	}
	for task := range 7 {
		f.at(time.Duration(task)*time.Second, func() { f.env.SetCurrentHistoryLength(3 + 4*task) })
	}
	f.update(1*time.Second, api.UpdateSetLimits, limits(5))
	f.update(2*time.Second, api.UpdateFreeze, api.FreezeRequest{By: "bob"})
	f.update(3*time.Second, api.UpdateSetLimits, limits(2))
	f.update(4*time.Second, api.UpdateThaw, api.ThawRequest{By: "bob"})
	f.update(5*time.Second, api.UpdateThaw, api.ThawRequest{By: "amy", All: true})
	f.update(6*time.Second, api.UpdateFreeze, api.FreezeRequest{By: "carl"})
	f.at(7*time.Second, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.fail, "TakeInventory")
	})
	f.at(time.Minute, func() {
		state := f.stateNow()
		if state.Rebuilding || state.Limits.MaxParallel != schedule.Count(2) || len(state.Freezes) != 1 || state.Freezes[0].By != "carl" {
			t.Errorf("rebuilding %v, limits %+v, freezes %+v", state.Rebuilding, state.Limits, state.Freezes)
		}
	})
	f.run(time.Hour)
}

func TestNoFreezeIsLostWhereTheOrderOfUpdatesIsNotKnown(t *testing.T) {
	f := newFleet(t, 1)
	f.state = scheduler.State{}
	// The first workflow task: whether bob thawed before he froze, nobody knows.
	f.update(0, api.UpdateFreeze, api.FreezeRequest{By: "bob"})
	f.update(0, api.UpdateThaw, api.ThawRequest{By: "bob"})
	f.at(time.Minute, func() {
		if state := f.stateNow(); state.Rebuilding || len(state.Freezes) != 1 || state.Freezes[0].By != "bob" {
			t.Errorf("rebuilding %v, freezes %+v", state.Rebuilding, state.Freezes)
		}
	})
	f.run(time.Hour)
}

func TestSchedulerTakesOverWhatTheOneBeforeItDecided(t *testing.T) {
	f := newFleet(t, 400)
	f.state = scheduler.State{PreviousRun: earlierRun, Limits: api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(9)}, SetBy: "configuration"}}
	unmarked := f.request(1000*time.Hour, "n1", "ops", 0)
	var pages []api.State
	pages = append(pages, api.State{
		Limits:    api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(2)}, SetBy: "amy", SetAt: f.start},
		Holders:   []api.Holder{f.holderOf(unmarked)},
		Decisions: []api.RecordedDecision{{By: "amy", What: "limits changed"}},
		Freezes:   []schedule.Freeze{{By: "bob", At: f.start, Running: true, Reason: "storm"}},
	})
	for i := range 350 {
		if i == 200 {
			pages[0].NextOffset = 200
			pages = append(pages, api.State{})
		}
		a := f.request(1000*time.Hour, "n"+itoa(i+2), "ops", 0)
		page := &pages[len(pages)-1]
		page.Pending = append(page.Pending, api.PendingRequest{SlotRequest: a.request})
	}
	for i, page := range pages {
		offset, _ := json.Marshal(api.StateRequest{Offset: 200 * i, Limit: 200})
		f.answers[earlierRun+string(offset)] = answered(t, page)
	}
	f.update(time.Second, api.UpdateThaw, api.ThawRequest{By: "bob"})
	f.at(time.Minute, func() {
		state := f.stateNow()
		if state.Limits.SetBy != "amy" || len(state.Holders) != 2 || state.PendingAll != 349 || len(state.Freezes) != 0 || state.Rebuilding {
			t.Errorf("limits %+v, %d holders, %d wait, freezes %+v", state.Limits, len(state.Holders), state.PendingAll, state.Freezes)
		}
		if d := state.Decisions; len(d) != 3 || d[0].By != "amy" {
			t.Errorf("decisions %+v", d)
		}
	})
	f.run(time.Hour)
	if len(unmarked.holds) != 2 || len(unmarked.holds[0].Reasons) != 1 || len(unmarked.holds[1].Reasons) != 0 {
		t.Errorf("the holder got %+v", unmarked.holds)
	}
}

func itoa(i int) string {
	text, _ := json.Marshal(i)
	return string(text)
}

func TestSchedulerTakesOverFromOneThatHadNotTakenOver(t *testing.T) {
	f := newFleet(t, 2)
	f.state = scheduler.State{PreviousRun: secondRun}
	f.answers[secondRun] = answered(t, api.State{Rebuilding: true, PreviousRun: firstRun})
	f.answers[firstRun] = answered(t, api.State{
		Limits: api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(7)}, SetBy: "amy"},
	})
	f.at(time.Minute, func() {
		if state := f.stateNow(); state.Limits.SetBy != "amy" || state.Rebuilding {
			t.Errorf("state = %+v", state)
		}
	})
	f.run(time.Hour)
}

func TestSchedulerSaysSoWhenTheStateBeforeItIsLost(t *testing.T) {
	f := newFleet(t, 2)
	f.state = scheduler.State{PreviousRun: earlierRun}
	f.at(time.Minute, func() {
		if d := f.stateNow().Decisions; len(d) != 1 || !strings.Contains(d[0].What, "is lost") {
			t.Errorf("decisions = %+v", d)
		}
	})
	f.run(time.Hour)
}

func TestSchedulerThatCannotAnswerStopsAllGrants(t *testing.T) {
	f := newFleet(t, 2)
	f.state = scheduler.State{PreviousRun: earlierRun}
	f.answers[earlierRun] = execution.Answered{Unanswered: "its workflow task fails"}
	a := f.request(time.Minute, "n1", "ops", 0)
	f.at(2*time.Minute, func() {
		state := f.stateNow()
		if len(state.Freezes) != 1 || !strings.Contains(state.Freezes[0].Reason, "its workflow task fails") || len(a.granted) > 0 {
			t.Errorf("freezes %+v, granted %v", state.Freezes, a.granted)
		}
	})
	f.update(3*time.Minute, api.UpdateThaw, api.ThawRequest{By: "ann", All: true})
	f.expectAt(4*time.Minute, "n1/ops", "")
	f.run(time.Hour)
}

func TestMaintenanceThatCannotAnswerHoldsUpNobodyElse(t *testing.T) {
	f := newFleet(t, 3)
	f.state = scheduler.State{}
	wedged := f.running("n1", "ops", 1, true)
	f.answers[wedged.request.RunID] = execution.Answered{Unanswered: "its workflow task fails"}
	f.inventory.Marked = []execution.MarkedHolder{f.mark("n1", "ops")}
	f.running("n2", "ops", 1, true)
	f.expectAt(time.Minute, "n2/ops n1/ops", "")
	f.run(time.Hour)
}

func TestGrantThatWasLostWithASchedulerIsSaidAgain(t *testing.T) {
	f := newFleet(t, 2)
	f.state = scheduler.State{PreviousRun: earlierRun}
	a := f.running("n1", "ops", 1, false)
	f.answers[earlierRun] = answered(t, api.State{Holders: []api.Holder{f.holderOf(a)}})
	f.expectAt(time.Minute, "n1/ops", "")
	f.run(time.Hour)
	if len(a.granted) != 1 {
		t.Errorf("log %v", f.log)
	}
}

func TestMaintenanceNeverWaitsForItsOwnSlot(t *testing.T) {
	for name, before := range map[string]func(f *fleet, a *asking){
		"it gave it back while the scheduler was away, and backs off": func(f *fleet, a *asking) {
			f.saying(a, api.SlotWanted{SlotRequest: api.SlotRequest{RunID: a.request.RunID}})
		},
		"it gave it back, and asks again": func(f *fleet, a *asking) {
			a.request.ID = a.request.RunID + "/2"
			f.saying(a, api.SlotWanted{SlotRequest: a.request, Wants: true})
		},
		"visibility does not know it, and its mark names no request": func(f *fleet, a *asking) {
			f.answers = map[string]execution.Answered{}
			f.inventory.Marked = []execution.MarkedHolder{f.mark("n1", "ops")}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t, 2)
			f.state = scheduler.State{PreviousRun: earlierRun}
			a := f.request(1000*time.Hour, "n1", "ops", 0)
			f.answers[earlierRun] = answered(t, api.State{Holders: []api.Holder{f.holderOf(a)}})
			before(f, a)
			f.at(time.Second, func() { a.request.ID = a.request.RunID + "/2" })
			f.at(time.Minute, func() { f.signal(api.SignalSlotRequest, a.request) })
			f.expectAt(2*time.Minute, "n1/ops", "")
			f.at(10*time.Minute, func() { f.release(a) })
			f.expectAt(11*time.Minute, "", "")
			f.fail["hold n1/ops"] = errors.New("not now")
			f.run(time.Hour)
			if len(a.granted) == 0 {
				t.Errorf("log %v", f.log)
			}
		})
	}
}
