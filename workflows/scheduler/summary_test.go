package scheduler_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// summaryNow asks the scheduler for its counts.
func (f *fleet) summaryNow() api.Summary {
	f.t.Helper()
	value, err := f.env.QueryWorkflow(api.QuerySummary)
	if err != nil {
		f.t.Fatalf("summary: %v", err)
	}
	var s api.Summary
	if err := value.Get(&s); err != nil {
		f.t.Fatalf("summary: %v", err)
	}
	return s
}

func TestTheSummaryCountsWhatTheStateLists(t *testing.T) {
	f := newFleet(t, 4)
	f.nodes["n1"].labels = map[string]string{"pool": "gpu"}
	f.nodes["n2"].labels = map[string]string{"pool": "gpu"}
	f.state.Limits.Limits = schedule.Limits{
		MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(50),
		Groups: []schedule.Group{{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Count(1)}},
	}
	f.marks = func() cluster.MarksSeen {
		return cluster.MarksSeen{ForeignAll: 3, Foreign: []api.StrayMark{{Node: "n4", Kind: api.StrayMalformed}}}
	}
	f.request(time.Second, "n1", "ops", 0)
	f.request(2*time.Second, "n2", "ops", 0)
	f.request(3*time.Second, "n3", "ops", 0)
	f.request(4*time.Second, "n4", "ops", 0)
	f.update(time.Hour, api.UpdateFreeze, api.FreezeRequest{By: "amy", Reason: "weekend", Running: true})
	var before, frozen api.Summary
	f.at(time.Hour-time.Second, func() { before = f.summaryNow() })
	f.at(2*time.Hour, func() { frozen = f.summaryNow() })
	f.run(3 * time.Hour)

	oldest := f.start.Add(2 * time.Second)
	want := api.Summary{
		Usage: schedule.Usage{
			Slots: schedule.Use{Used: 2, Limit: new(2)}, Unavailable: schedule.Use{Used: 2, Limit: new(2)},
			Remediations: schedule.Use{Limit: new(1)}, ControlPlane: schedule.Use{Limit: new(1)},
			Groups: []schedule.GroupUsage{{Name: "gpu", Slots: schedule.Use{Used: 1, Limit: new(1)}}},
		},
		Nodes: 4, ObservedAt: before.ObservedAt, OldestPending: &oldest,
		Pending: []api.PendingCount{{Code: schedule.MaxParallel, Count: 1}, {Code: schedule.MaxParallel, Group: "gpu", Count: 1}},
		Strays: []api.StrayCount{
			{Kind: api.StrayForeign, Count: 2}, {Kind: api.StrayMalformed, Count: 1}, {Kind: api.StrayUnknown}, {Kind: api.StrayOrphan},
		},
	}
	if d := cmp.Diff(want, before); d != "" || before.ObservedAt == nil {
		t.Errorf("observed at %v: %s", before.ObservedAt, d)
	}
	if frozen.Freezes != 1 || frozen.FreezesRunning != 1 || frozen.Pending[0].Code != schedule.Frozen {
		t.Errorf("frozen: %+v", frozen)
	}
}
