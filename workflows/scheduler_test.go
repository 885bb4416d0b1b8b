package workflows_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock/workflows"
	"drydock/workflows/schedule"
)

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

func TestSchedulerKeepsToMaxParallelAndGrantsTheNextAtOnce(t *testing.T) {
	f := newFleet(t, 4)
	f.state.Limits.Limits = schedule.Limits{MaxParallel: schedule.Count(2)}
	var all []*asking
	for i, node := range []string{"n1", "n2", "n3", "n4"} {
		all = append(all, f.request(time.Duration(i+1)*time.Second, node, "ops", time.Duration(10+i)*time.Minute))
	}
	f.expectAt(10*time.Second, "n1/ops n2/ops", "n3/ops n4/ops")
	f.expectAt(10*time.Minute+2*time.Second, "n2/ops n3/ops", "n4/ops")
	f.expectAt(11*time.Minute+5*time.Second, "n3/ops n4/ops", "")
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
		t.Errorf("n4 was told %+v", got)
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
		t.Errorf("net was told %+v", got)
	}
}

func TestSchedulerAnswersARepeatedRequestAgain(t *testing.T) {
	f := newFleet(t, 2)
	a := f.request(time.Second, "n1", "ops", 0)
	b := f.request(2*time.Second, "n2", "ops", 0)
	for _, again := range []*asking{a, a, b} {
		f.at(time.Minute, func() { f.env.SignalWorkflow(workflows.SignalSlotRequest, again.request) })
	}
	f.expectAt(2*time.Minute, "n1/ops", "n2/ops")
	f.run(time.Hour)
	if len(a.granted) != 3 || len(b.pending) != 2 {
		t.Errorf("granted %d times, told to wait %d times", len(a.granted), len(b.pending))
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
		t.Errorf("the first was told %+v", first.refused)
	}
	if second.refused != nil || len(second.granted) != 1 {
		t.Errorf("the node registered, and the second was told %+v", second.refused)
	}
}

func TestSchedulerTellsANodeThatWentFromOneThatNeverWas(t *testing.T) {
	f := newFleet(t, 2)
	f.request(time.Second, "n1", "ops", 0)
	waits := f.request(2*time.Second, "n2", "ops", 0)
	f.change(10*time.Minute, "n2", func(n *fleetNode) { n.missing = true })
	f.run(time.Hour)
	if waits.refused == nil || !waits.refused.Seen {
		t.Errorf("told %+v", waits.refused)
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
		t.Errorf("told %+v", a.pending)
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
