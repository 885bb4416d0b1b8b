package scheduler_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/scheduler"
	"drydock.dev/drydock/workflows/workflowtest"
)

func TestADoctorsReleaseIsOnRecord(t *testing.T) {
	f := newFleet(t, 1)
	f.state.Holders = []api.Holder{{Grant: schedule.Grant{RequestID: "x", Node: "n1", Requestor: "ghost"}, RunID: runOf("n1", "ghost")}}
	f.at(time.Second, func() {
		f.signal(api.SignalSlotRelease, api.SlotRelease{RequestID: "x", By: "ann", Why: "nobody has it"})
	})
	f.at(2*time.Second, func() {
		state := f.stateNow()
		if len(state.Holders) > 0 || !slices.ContainsFunc(state.Decisions, func(d api.RecordedDecision) bool {
			return d.By == "ann" && strings.Contains(d.What, "x") && d.Why == "nobody has it"
		}) {
			t.Errorf("%+v", state)
		}
	})
	f.run(3 * time.Second)
}

func TestSchedulerObservesThenGrants(t *testing.T) {
	f := newFleet(t, 3)
	a := f.request(time.Second, "n1", "ops", 10*time.Minute)
	f.expectAt(2*time.Second, "n1/ops", "")
	f.expectAt(20*time.Minute, "", "")
	f.run(time.Hour)
	if len(a.granted) != 1 || f.count("ObserveNodes") != 1 {
		t.Errorf("log %v", f.log)
	}
	if in := f.observed[0]; !slices.Equal(in.Names, []string{"n1"}) || len(in.Ours) != 0 {
		t.Errorf("observed %+v", in)
	}
}

func TestSchedulerGrantsOnWhatItsWorkerKnows(t *testing.T) {
	for blind, want := range map[bool]time.Duration{false: time.Minute, true: time.Minute + latency} {
		f := newFleet(t, 3)
		f.blind = blind
		f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(2)}
		f.request(time.Second, "n1", "ops", 0)
		b := f.request(time.Minute, "n2", "net", 0)
		f.run(time.Hour)
		if len(b.granted) != 1 || b.granted[0].Truncate(time.Millisecond) != want || f.count("GlanceNodes") != 1 {
			t.Errorf("blind %v: granted at %v, want %v: %v", blind, b.granted, want, f.log)
		}
	}
}

func TestSchedulerKeepsToMaxParallelAndGrantsTheNextAtOnce(t *testing.T) {
	f := newFleet(t, 4)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(2)}
	var all []*asking
	for i, node := range []string{"n1", "n2", "n3", "n4"} {
		all = append(all, f.request(time.Duration(i+1)*time.Second, node, "ops", time.Duration(10+i)*time.Minute))
	}
	f.expectAt(time.Minute, "n1/ops n2/ops", "n3/ops n4/ops")
	f.expectAt(10*time.Minute+30*time.Second, "n2/ops n3/ops", "n4/ops")
	f.expectAt(11*time.Minute+45*time.Second, "n3/ops n4/ops", "")
	f.expectAt(50*time.Minute, "", "")
	observedBefore := 0
	f.at(9*time.Minute, func() { observedBefore = f.count("ObserveNodes") })
	f.run(time.Hour)
	if got := f.grants(); !slices.Equal(got, []string{"n1/ops", "n2/ops", "n3/ops", "n4/ops"}) {
		t.Errorf("grants %v", got)
	}
	if f.count("ObserveNodes") != observedBefore {
		t.Errorf("a release needed a new observation: %v", f.log)
	}
	if got := all[3].pending; len(got) == 0 || got[0].Code != schedule.MaxParallel || !strings.Contains(got[0].Reason, "n1") {
		t.Errorf("n4 got %+v", got)
	}
	for _, a := range all {
		if len(a.granted) != 1 {
			t.Errorf("%s was granted %d times", a.request.ID, len(a.granted))
		}
	}
}

func TestSchedulerGrantsOneMaintenancePerNode(t *testing.T) {
	f := newFleet(t, 4)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited()}
	f.request(time.Second, "n1", "ops", 10*time.Minute)
	second := f.request(2*time.Second, "n1", "net", 10*time.Minute)
	f.expectAt(5*time.Minute, "n1/ops", "n1/net")
	f.expectAt(15*time.Minute, "n1/net", "")
	f.run(time.Hour)
	if got := second.pending; len(got) != 1 || got[0].Code != schedule.NodeBusy {
		t.Errorf("net got %+v", got)
	}
}

func TestSchedulerAnswersARepeatedRequestAgain(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "ops", 0)
	for _, again := range []*asking{a, a, b} {
		f.at(time.Minute, func() { f.signal(api.SignalSlotRequest, again.request) })
	}
	f.expectAt(2*time.Minute, "n1/ops", "n2/ops")
	f.run(time.Hour)
	if len(a.granted) != 3 || len(b.pending) != 2 {
		t.Errorf("granted %d times, sent to wait %d times", len(a.granted), len(b.pending))
	}
}

func TestSchedulerTakesBackARequestThatWaits(t *testing.T) {
	f := newFleet(t, 2)
	f.request(time.Second, "n1", "ops", 10*time.Minute)
	b := f.request(2*time.Second, "n2", "ops", 0)
	f.at(time.Minute, func() { f.release(b) })
	f.expectAt(2*time.Minute, "n1/ops", "")
	f.run(time.Hour)
	if len(b.granted) != 0 {
		t.Errorf("a withdrawn request was granted")
	}
}

func TestSchedulerRefusesANodeThatDoesNotExistUntilItDoes(t *testing.T) {
	f := newFleet(t, 1)
	f.nodes["n9"] = &fleetNode{missing: true}
	first := f.request(time.Second, "n9", "ops", 0)
	f.expectAt(time.Minute, "", "")
	f.change(10*time.Minute, "n9", func(n *fleetNode) { n.missing = false })
	second := f.request(20*time.Minute, "n9", "net", 0)
	f.run(time.Hour)
	if first.refused == nil || first.refused.Code != schedule.NodeMissing || first.refused.Seen {
		t.Errorf("the first got %+v", first.refused)
	}
	if second.refused != nil || len(second.granted) != 1 {
		t.Errorf("the node registered, and the second got %+v", second.refused)
	}
}

func TestSchedulerDistinguishesADeletedNodeFromOneThatNeverExisted(t *testing.T) {
	f := newFleet(t, 2)
	f.request(time.Second, "n1", "ops", 0)
	waits := f.request(2*time.Second, "n2", "ops", 0)
	f.change(10*time.Minute, "n2", func(n *fleetNode) { n.missing = true })
	f.run(time.Hour)
	if waits.refused == nil || !waits.refused.Seen {
		t.Errorf("got %+v", waits.refused)
	}
}

func TestSchedulerObservesAgainWhenOthersChangeTheCluster(t *testing.T) {
	f := newFleet(t, 10)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited(), MaxUnavailable: schedule.Count(1)}
	f.nodes["n9"].down = true
	a := f.request(time.Second, "n1", "ops", 10*time.Minute)
	f.expectAt(5*time.Minute, "", "n1/ops")
	f.change(10*time.Minute, "n9", func(n *fleetNode) { n.down = false })
	f.expectAt(10*time.Minute+time.Second, "n1/ops", "")
	f.run(time.Hour)
	if len(a.pending) != 1 || a.pending[0].Code != schedule.MaxUnavailable {
		t.Errorf("got %+v", a.pending)
	}
}

func TestSchedulerDoesNotRelyOnWhatItSawLongAgo(t *testing.T) {
	f := newFleet(t, 10)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited(), MaxUnavailable: schedule.Count(1)}
	f.request(time.Second, "n1", "ops", 10*time.Minute)
	f.request(2*time.Second, "n2", "ops", 10*time.Minute)
	f.expectAt(time.Hour, "", "")
	// Nobody watches while nothing waits and nothing is held.
	f.at(2*time.Hour, func() { f.nodes["n5"].down = true })
	late := f.request(3*time.Hour, "n1", "net", 10*time.Minute)
	f.expectAt(3*time.Hour+time.Minute, "", "n1/net")
	f.run(4 * time.Hour)
	if len(late.granted) != 0 {
		t.Errorf("granted at %v on what was seen hours ago, past maxUnavailable", late.granted)
	}
}

func TestSchedulerDoesNotRelyOnWhatNobodyWatches(t *testing.T) {
	// A holder is watched, but as nothing waits the state of the cluster is not.
	f := newFleet(t, 10)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Unlimited(), MaxUnavailable: schedule.Count(2)}
	f.request(time.Second, "n2", "ops", time.Minute)
	f.request(2*time.Second, "n1", "ops", 0)
	f.change(2*time.Hour, "n5", func(n *fleetNode) { n.down = true })
	late := f.request(3*time.Hour, "n2", "net", 10*time.Minute)
	f.run(4 * time.Hour)
	if len(late.granted) != 0 {
		t.Errorf("granted at %v past maxUnavailable: %v", late.granted, f.log)
	}
}

func TestSchedulerIsIdleWhenNothingWaits(t *testing.T) {
	f := newFleet(t, 3)
	f.request(time.Second, "n1", "ops", 10*time.Minute)
	watches := 0
	f.at(20*time.Minute, func() { watches = f.watches })
	f.change(30*time.Minute, "n2", func(n *fleetNode) { n.down = true })
	f.change(40*time.Minute, "n1", func(n *fleetNode) { n.missing = true })
	f.run(time.Hour)
	if watches == 0 || f.watches != watches || f.count("ObserveNodes") != 1 {
		t.Errorf("%d watches, and %d more when idle: %v", watches, f.watches-watches, f.log)
	}
}

func TestSchedulerRefusesWrongUpdates(t *testing.T) {
	f := newFleet(t, 1)
	refused := map[string]*stateOutcome{}
	at := time.Second
	for _, c := range []struct{ name, payload string }{
		{api.UpdateSetLimits, `{"limits":{"maxParallel":2}}`},
		{api.UpdateSetLimits, `{"limits":{"maxParallel":0},"by":"amy"}`},
		{api.UpdateSetLimits, `{"limits":{"maxUnavailable":"120%"},"by":"amy"}`},
		{api.UpdateSetLimits, `{"limits":{"groups":[{"name":"gpu"}]},"by":"amy"}`},
		{api.UpdateSetLimits, `{"limit":{},"by":"amy"}`},
		{api.UpdateSetLimits, `null`},
		{api.UpdateFreeze, `{"reason":"storm"}`},
		{api.UpdateFreeze, `"amy"`},
		{api.UpdateFreeze, `{"by":"amy","running":"yes"}`},
		{api.UpdateThaw, `{"by":"amy"}`},
		{api.UpdateThaw, `{}`},
		{api.UpdateThaw, `[]`},
	} {
		refused[c.name+c.payload] = f.update(at, c.name, workflowtest.Raw(c.payload))
		at += time.Second
	}
	f.at(at, func() {
		if state := f.stateNow(); len(state.Decisions) != 0 || len(state.Freezes) != 0 || state.Limits.MaxParallel != schedule.Count(1) {
			t.Errorf("state = %+v", state)
		}
	})
	f.run(time.Hour)
	for what, update := range refused {
		if update.rejected == nil || update.accepted {
			t.Errorf("%s: %+v", what, update)
		}
	}
}

func TestSchedulerIgnoresWrongSignals(t *testing.T) {
	f := newFleet(t, 2)
	at := time.Second
	for _, name := range []string{api.SignalSlotRequest, api.SignalSlotRelease} {
		for _, text := range workflowtest.WrongPayloads {
			f.at(at, func() { f.signal(name, workflowtest.Raw(text)) })
			at += time.Second
		}
		f.at(at, func() { f.signal(name, nil) })
		at += time.Second
	}
	for _, text := range []string{
		`{}`, `{"id":"a/1","node":"n1","requestor":"ops"}`, `{"id":"a/1","node":"N1","requestor":"ops","runId":"a"}`,
		`{"node":"n1","requestor":"ops","runId":"a"}`,
	} {
		f.at(at, func() { f.signal(api.SignalSlotRequest, workflowtest.Raw(text)) })
		at += time.Second
	}
	f.expectAt(at, "", "")
	f.request(at+time.Minute, "n1", "ops", 0)
	f.expectAt(at+2*time.Minute, "n1/ops", "")
	f.run(time.Hour)
}

func TestSetLimitsTakesEffectAndIsRecorded(t *testing.T) {
	f := newFleet(t, 3)
	f.nodes["n1"].labels, f.nodes["n2"].labels = map[string]string{"pool": "gpu"}, map[string]string{"pool": "gpu"}
	f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "ops", 0)
	f.request(3*time.Second, "n3", "ops", 0)
	limits := api.SetLimits{By: "amy", Comment: "more", Limits: schedule.Limits{
		MaxParallel: schedule.Unlimited(), Groups: []schedule.Group{{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Count(1)}},
	}}
	update := f.update(time.Minute, api.UpdateSetLimits, limits)
	f.expectAt(2*time.Minute, "n1/ops n3/ops", "n2/ops")
	f.at(2*time.Minute, func() {
		state := f.stateNow()
		if state.Limits.SetBy != "amy" || state.Limits.Comment != "more" || state.Limits.SetAt.Sub(f.start) != time.Minute {
			t.Errorf("limits = %+v", state.Limits)
		}
		if d := state.Decisions; len(d) != 1 || d[0].By != "amy" || d[0].Why != "more" || !strings.Contains(d[0].What, "limits changed") {
			t.Errorf("decisions = %+v", d)
		}
	})
	f.run(time.Hour)
	if !update.done || update.err != nil {
		t.Errorf("update: %+v", update)
	}
	if last := b.pending[len(b.pending)-1]; last.Code != schedule.GroupMaxParallel {
		t.Errorf("n2 got %+v", b.pending)
	}
}

func TestFreezeStopsGrantsUntilEverybodyThaws(t *testing.T) {
	f := newFleet(t, 2)
	f.update(time.Second, api.UpdateFreeze, api.FreezeRequest{By: "amy", Reason: "storm"})
	f.update(2*time.Second, api.UpdateFreeze, api.FreezeRequest{By: "bob"})
	f.update(3*time.Second, api.UpdateFreeze, api.FreezeRequest{By: "amy", Reason: "storm, still"})
	a := f.request(time.Minute, "n1", "ops", 0)
	f.expectAt(2*time.Minute, "", "n1/ops")
	f.at(2*time.Minute, func() {
		if state := f.stateNow(); len(state.Freezes) != 2 {
			t.Errorf("freezes = %+v", state.Freezes)
		}
	})
	f.update(3*time.Minute, api.UpdateThaw, api.ThawRequest{By: "amy"})
	f.expectAt(4*time.Minute, "", "n1/ops")
	stranger := f.update(5*time.Minute, api.UpdateThaw, api.ThawRequest{By: "eve"})
	f.update(6*time.Minute, api.UpdateThaw, api.ThawRequest{By: "bob"})
	f.expectAt(7*time.Minute, "n1/ops", "")
	f.update(8*time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "amy"})
	f.update(9*time.Minute, api.UpdateThaw, api.ThawRequest{By: "eve", All: true})
	f.at(10*time.Minute, func() {
		if state := f.stateNow(); len(state.Freezes) != 0 {
			t.Errorf("freezes = %+v", state.Freezes)
		}
	})
	f.run(time.Hour)
	if stranger.rejected == nil || !strings.Contains(stranger.rejected.Error(), "frozen by bob") {
		t.Errorf("a stranger's thaw: %+v", stranger)
	}
	if len(a.pending) == 0 || a.pending[0].Code != schedule.Frozen || !strings.Contains(a.pending[0].Reason, "storm, still") {
		t.Errorf("got %+v", a.pending)
	}
	for _, hold := range a.holds {
		if len(hold.Reasons) > 0 {
			t.Errorf("a freeze of grants held a running maintenance: %+v", hold)
		}
	}
}

func TestFreezeOfWhatRunsHoldsTheHoldersUntilTheThaw(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "ops", 0)
	f.update(time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "amy", Reason: "storm", Running: true})
	f.update(2*time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "bob", Running: true})
	f.update(3*time.Minute, api.UpdateThaw, api.ThawRequest{By: "amy"})
	f.update(4*time.Minute, api.UpdateThaw, api.ThawRequest{By: "bob"})
	f.run(time.Hour)
	var got []string
	for _, hold := range a.holds {
		got = append(got, strings.Join(hold.Reasons, "+"))
	}
	if want := []string{"frozen by amy: storm", "frozen by amy: storm+frozen by bob", "frozen by bob", ""}; !slices.Equal(got, want) {
		t.Errorf("the holder got %q, want %q", got, want)
	}
	if len(b.holds) != 0 {
		t.Errorf("one that waits got %+v", b.holds)
	}
}

func TestSchedulerDoesNotSpinWhileItIsFrozen(t *testing.T) {
	f := newFleet(t, 5)
	f.request(time.Second, "n1", "ops", 0)
	f.request(2*time.Second, "n2", "ops", 0)
	f.update(time.Minute, api.UpdateFreeze, api.FreezeRequest{By: "amy"})
	f.change(2*time.Minute, "n5", func(n *fleetNode) { n.down = true })
	f.update(3*time.Minute, api.UpdateSetLimits, api.SetLimits{By: "amy", Limits: schedule.Limits{
		MaxParallel: schedule.Count(2), Groups: []schedule.Group{{Name: "all", GroupBy: []string{"zone"}, MaxUnavailable: schedule.Count(9)}},
	}})
	f.change(4*time.Minute, "n4", func(n *fleetNode) { n.down = true })
	f.update(50*time.Minute, api.UpdateThaw, api.ThawRequest{By: "amy"})
	f.expectAt(51*time.Minute, "n1/ops n2/ops", "")
	f.run(time.Hour)
	if f.watches > 20 {
		t.Errorf("%d watches", f.watches)
	}
}

func TestAChangeOfAHeldNodeIsSentOnceToItsHolder(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.change(10*time.Minute, "n1", func(n *fleetNode) { n.uncordoned = true })
	f.change(20*time.Minute, "n1", func(n *fleetNode) { n.uncordoned = true })
	f.run(time.Hour)
	if len(a.changed) != 2 || !a.changed[0].Uncordoned || a.changed[0].RequestID != a.request.ID {
		t.Errorf("two lifts of the cordon got %d signals in %d watches: %+v", len(a.changed), f.watches, a.changed)
	}
}

func TestSlotOfAHolderThatEndedIsReclaimedBehindTheFence(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.request(2*time.Second, "n2", "net", 0)
	f.kill(10*time.Minute, a)
	f.expectAt(11*time.Minute, "n2/net", "")
	f.at(11*time.Minute, func() {
		if d := f.stateNow().Decisions; len(d) != 1 || !strings.Contains(d[0].What, "reclaiming the slot of ops on n1") || !strings.Contains(d[0].Why, "Terminated") {
			t.Errorf("decisions = %+v", d)
		}
	})
	f.run(time.Hour)
	released, granted := -1, -1
	for i, entry := range f.log {
		switch {
		case strings.Contains(entry, "ReleaseNode n1"):
			released = i
		case strings.Contains(entry, "slot-granted n2/net"):
			granted = i
		}
	}
	if released < 0 || granted < released || f.count("ReleaseNode") != 1 {
		t.Errorf("log %v", f.log)
	}
}

func TestOrphanIsReportedWhereNothingMayBeReleased(t *testing.T) {
	f := newFleet(t, 2)
	f.state.OnOrphan = scheduler.ReportOrphans
	a := f.request(time.Second, "n1", "ops", 0)
	f.kill(10*time.Minute, a)
	f.expectAt(11*time.Minute, "", "")
	f.run(time.Hour)
	if f.count("ReleaseNode") != 0 || f.count("AnnouncePhase n1 Orphaned") != 1 {
		t.Errorf("log %v", f.log)
	}
}

func TestAMarkThatNoHistoryConfirmsIsReported(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.kill(10*time.Minute, a)
	f.fail["ReleaseNode n1"] = workflowtest.Failing(api.ErrorMarkUnconfirmed, "its history is gone")
	f.expectAt(11*time.Minute, "", "")
	f.run(time.Hour)
	if f.count("ReleaseNode n1") != 1 || f.count("AnnouncePhase n1 Orphaned") != 1 || f.nodes["n1"].marked == "" {
		t.Errorf("log %v", f.log)
	}
}

func TestSlotIsKeptUntilTheNodeOfADeadHolderIsReleased(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.request(2*time.Second, "n2", "net", 0)
	f.fail["ReleaseNode n1"] = workflowtest.Failing("MissingPermission", "may not patch nodes")
	f.kill(10*time.Minute, a)
	f.expectAt(20*time.Minute, "n1/ops", "n2/net")
	f.at(20*time.Minute, func() { f.mu.Lock(); defer f.mu.Unlock(); delete(f.fail, "ReleaseNode n1") })
	f.expectAt(40*time.Minute, "n2/net", "")
	f.run(time.Hour)
}

func TestGrantThatReachesNobodyIsReclaimed(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	a.dead = true
	f.request(2*time.Second, "n2", "net", 0)
	f.expectAt(5*time.Second, "n2/net", "")
	f.run(time.Hour)
	if f.count("ReleaseNode n1") != 1 {
		t.Errorf("log %v", f.log)
	}
}

func TestHolderThatCannotBeSignalledButRunsIsNotReclaimed(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.fail["slot-granted n1/ops"] = errUnknownCause
	f.at(time.Minute, func() {
		f.mu.Lock()
		delete(f.fail, "slot-granted n1/ops")
		f.mu.Unlock()
		f.signal(api.SignalSlotRequest, a.request)
	})
	f.expectAt(2*time.Minute, "n1/ops", "")
	f.run(time.Hour)
	if f.count("ReleaseNode") != 0 || len(a.granted) != 1 {
		t.Errorf("log %v", f.log)
	}
}

func TestSchedulerWaitsForTheAPIServer(t *testing.T) {
	f := newFleet(t, 2)
	f.fail["ObserveNodes"] = errUnknownCause
	f.request(time.Second, "n1", "ops", 0)
	f.expectAt(10*time.Minute, "", "n1/ops")
	f.at(10*time.Minute, func() {
		if d := f.stateNow().Decisions; len(d) != 1 || !strings.Contains(d[0].What, "could not be observed") {
			t.Errorf("decisions = %+v", d)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.fail, "ObserveNodes")
	})
	f.expectAt(12*time.Minute, "n1/ops", "")
	f.run(time.Hour)
}

func TestChangeThatCannotBeHealedDoesNotFillTheHistory(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	f.stubborn = true
	f.change(10*time.Minute, "n1", func(n *fleetNode) { n.uncordoned = true })
	f.run(10 * time.Hour)
	if len(a.changed) < 10 || len(a.changed) > 100 {
		t.Errorf("got %d times in ten hours", len(a.changed))
	}
}

func TestSetLimitsIsRefusedWhereSomebodyElseWasFaster(t *testing.T) {
	f := newFleet(t, 1)
	set := func(when time.Duration, by string, parallel, revision int) *stateOutcome {
		return f.update(when, api.UpdateSetLimits, api.SetLimits{
			By: by, Limits: schedule.Limits{MaxParallel: schedule.Count(parallel)}, IfRevision: &revision,
		})
	}
	first := set(time.Second, "amy", 2, 0)
	late := set(2*time.Second, "bob", 9, 0)
	again := set(3*time.Second, "bob", 3, 1)
	f.at(time.Minute, func() {
		if state := f.stateNow(); state.Revision != 2 || state.Limits.SetBy != "bob" || state.Limits.MaxParallel != schedule.Count(3) {
			t.Errorf("the limits are %+v at revision %d", state.Limits, state.Revision)
		}
	})
	f.run(time.Hour)
	if !first.done || !again.done || first.err != nil || again.err != nil {
		t.Errorf("an update in time: %+v, %+v", first, again)
	}
	var refused *temporal.ApplicationError
	if !errors.As(late.rejected, &refused) || refused.Type() != api.ErrorLimitsChanged || !strings.Contains(refused.Message(), "at revision 1, set by amy") {
		t.Errorf("an update out of date: %+v", late)
	}
}

// Nothing costs anything where nothing is asked for: no timer, no activity, no task.
func TestAnIdleSchedulerHasNothingUnderWay(t *testing.T) {
	f := newFleet(t, 3)
	a := f.request(time.Second, "n1", "ops", time.Minute)
	b := f.request(2*time.Second, "n1", "net", 0)
	f.at(30*time.Second, func() { f.release(b) })
	f.at(5*time.Minute, func() {
		f.log = nil
		f.env.SetOnTimerScheduledListener(func(id string, d time.Duration) { t.Errorf("timer %s of %s", id, d) })
		f.env.SetOnTimerFiredListener(func(id string) { t.Errorf("timer %s", id) })
		f.env.SetOnActivityStartedListener(func(info *activity.Info, _ context.Context, _ converter.EncodedValues) {
			t.Errorf("activity %s", info.ActivityType.Name)
		})
		f.env.SetOnActivityCompletedListener(func(info *activity.Info, _ converter.EncodedValue, _ error) {
			t.Errorf("activity %s was still running", info.ActivityType.Name)
		})
	})
	f.run(30 * 24 * time.Hour)
	if len(a.granted) != 1 || f.runs != 1 || len(f.log) > 0 {
		t.Errorf("granted %v, %d runs, then %v", a.granted, f.runs, f.log)
	}
}

// TestAReasonThatChangedTooSoonIsSentLater: nothing else happens, and those who wait would go on saying the old reason.
func TestAReasonThatChangedTooSoonIsSentLater(t *testing.T) {
	f := newFleet(t, 3)
	f.request(time.Second, "n1", "ops", time.Hour)
	waits := f.request(2*time.Second, "n2", "ops", 0)
	f.update(10*time.Second, api.UpdateFreeze, api.FreezeRequest{By: "amy"})
	f.update(15*time.Second, api.UpdateThaw, api.ThawRequest{By: "amy", All: true})
	f.update(20*time.Second, api.UpdateFreeze, api.FreezeRequest{By: "amy"})
	f.at(10*time.Minute, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := len(waits.pending); n == 0 || waits.pending[n-1].Code != schedule.Frozen {
			t.Errorf("got %+v", waits.pending)
		}
	})
	f.run(20 * time.Minute)
}
