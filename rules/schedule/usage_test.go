package schedule_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/schedule"
)

func TestUsageCountsWhatIsHeldAndWhatThereMayBe(t *testing.T) {
	limits := schedule.Limits{
		MaxParallel: schedule.Percent(30), MaxUnavailable: schedule.Count(4),
		Groups: []schedule.Group{
			{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Count(2)},
			{Name: "zone", GroupBy: []string{"zone"}, MaxParallel: schedule.Percent(50)},
			{Name: "rack", GroupBy: []string{"rack"}, MaxUnavailable: schedule.Count(1)},
			{Name: "night", NodeSelector: "night=1", MaxParallel: schedule.Unlimited()},
		},
	}
	in := schedule.Input{
		Limits: limits,
		Granted: []schedule.Grant{
			{RequestID: "1/1", Node: "n1", Requestor: "ops"}, {RequestID: "2/1", Node: "n1", Requestor: "amy"},
			{RequestID: "3/1", Node: "n2", Requestor: "ops"}, {RequestID: "4/1", Node: "n9", Requestor: "ops"},
			{RequestID: "5/1", Node: "n8", Requestor: "health-workers", Remediation: true},
		},
		Observed: &schedule.Observation{
			Nodes: 10, Unavailable: 1,
			Groups: map[string]schedule.GroupCount{"gpu": {Nodes: 3}, "zone[zone=a]": {Nodes: 4}, "zone[zone=b]": {Nodes: 3}, "rack[rack=1]": {Nodes: 10}},
			Facts: map[string]schedule.NodeFacts{
				"n1": {Groups: []string{"gpu", "zone[zone=a]"}}, "n2": {Groups: []string{"zone[zone=b]", "rack[rack=1]"}},
			},
		},
	}
	want := schedule.Usage{
		Slots: schedule.Use{Used: 3, Limit: new(3)}, Unavailable: schedule.Use{Used: 5, Limit: new(4)},
		Remediations: schedule.Use{Used: 1, Limit: new(1)}, ControlPlane: schedule.Use{Limit: new(1)},
		Groups: []schedule.GroupUsage{
			{Name: "gpu", Slots: schedule.Use{Used: 1, Limit: new(2)}},
			// Half of 4 nodes and, rounded up, half of 3.
			{Name: "zone", Slots: schedule.Use{Used: 2, Limit: new(4)}},
			{Name: "rack", Slots: schedule.Use{Used: 1, Unlimited: true}},
			{Name: "night", Slots: schedule.Use{Unlimited: true}},
		},
	}
	if d := cmp.Diff(want, schedule.UsageOf(in)); d != "" {
		t.Error(d)
	}
}

// A percentage of nodes that were never counted is no limit of 0, and not unlimited either.
func TestUsageBeforeAnythingWasObserved(t *testing.T) {
	in := schedule.Input{
		Limits:  schedule.Limits{MaxUnavailable: schedule.Percent(20)},
		Granted: []schedule.Grant{{RequestID: "1/1", Node: "n1", Requestor: "ops"}},
	}
	want := schedule.Usage{Slots: schedule.Use{Used: 1, Limit: new(1)}, ControlPlane: schedule.Use{Limit: new(1)}}
	if d := cmp.Diff(want, schedule.UsageOf(in)); d != "" {
		t.Error(d)
	}
	if groups := in.GroupsOf("n1"); groups != nil {
		t.Errorf("groups %v of a node that was not observed", groups)
	}
}
