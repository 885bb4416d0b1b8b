package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// zones are limits of one unavailable node per zone, and a cluster of two zones.
func zones(unavailable ...int) (Limits, *Observation) {
	limits := Limits{MaxParallel: Unlimited(), Groups: []Group{
		{Name: "zone", GroupBy: []string{"zone"}, MaxUnavailable: Count(1)},
	}}
	return limits, cluster(6, unavailable...).with("zone[zone=a]", 1, 2, 3).with("zone[zone=b]", 4, 5, 6)
}

// TestDecideRules has a row for each sentence of the scheduler's design, beyond what it shares with
// maintenance-operator.
func TestDecideRules(t *testing.T) {
	t.Run("counting", func(t *testing.T) { runDecideCases(t, append(countingCases(), releaseCases()...)) })
	t.Run("candidates", func(t *testing.T) { runDecideCases(t, candidateCases()) })
	t.Run("rank", func(t *testing.T) { runDecideCases(t, rankCases()) })
	t.Run("walk", func(t *testing.T) { runDecideCases(t, walkCases()) })
	t.Run("groups", func(t *testing.T) { runDecideCases(t, groupCases()) })
	t.Run("halted", func(t *testing.T) { runDecideCases(t, haltedCases()) })
}

func countingCases() []decideCase {
	one := open.unavailable(Count(1))
	return []decideCase{
		{
			"unavailable is a union: a granted node seen unavailable counts once",
			Input{Limits: open.unavailable(Count(2)), Observed: cluster(9, 9), Granted: held(9), Pending: asks(1)},
			[]string{"granted worker-01"},
		},
		{
			"a granted node that was seen available counts, for it is about to be cordoned",
			Input{Limits: one, Observed: cluster(9), Granted: held(9), Pending: asks(1)},
			[]string{"MaxUnavailable worker-01: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-09)"},
		},
		{
			"a granted node that is gone is not unavailable",
			Input{Limits: one, Observed: cluster(9).where("gone", NodeFacts{Missing: true}),
				Granted: []Grant{{Node: "gone", Requestor: "net"}}, Pending: asks(1)},
			[]string{"granted worker-01"},
		},
		{
			"a granted node that is gone takes a slot",
			Input{Limits: limit(1), Observed: cluster(9).where("gone", NodeFacts{Missing: true}),
				Granted: []Grant{{Node: "gone", Requestor: "net"}}, Pending: asks(1)},
			[]string{"MaxParallel worker-01: maxParallel 1: the slot is taken (gone)"},
		},
		{
			"a granted node without facts counts as becoming unavailable",
			Input{Limits: one, Observed: cluster(9).forget(9), Granted: held(9), Pending: asks(1)},
			[]string{"MaxUnavailable worker-01: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-09)"},
		},
		{
			"two maintenances of one node take one slot",
			Input{Limits: limit(2), Observed: cluster(9), Granted: append(held(9), held(9)...), Pending: asks(1)},
			[]string{"granted worker-01"},
		},
		{
			"maxParallel defaults to 1",
			Input{Observed: cluster(9), Pending: asks(1, 2)},
			[]string{"granted worker-01", "MaxParallel worker-02: maxParallel 1: the slot is taken (worker-01)"},
		},
		{
			"percentages round up",
			Input{Limits: Limits{MaxParallel: Percent(1)}, Observed: cluster(1), Pending: asks(1)},
			[]string{"granted worker-01"},
		},
	}
}

func releaseCases() []decideCase {
	one := open.unavailable(Count(1))
	return []decideCase{
		{
			"A released node counts as available",
			Input{Limits: one, Observed: cluster(9, 9), Released: []string{worker(9), worker(9)}, Pending: asks(1, 2)},
			[]string{"granted worker-01",
				"MaxUnavailable worker-02: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)"},
		},
		{
			"a node that is unavailable without a maintenance is named, one that was given back is not",
			Input{
				Limits: open.unavailable(Count(2)), Observed: cluster(9, 8, 9).others(9, 8, 1), Released: []string{worker(9)}, Granted: held(1), Pending: asks(2),
			},
			[]string{"MaxUnavailable worker-02: maxUnavailable 2: 2 are unavailable (1 in maintenance: worker-01; worker-08 cordoned)"},
		},
		{
			"a released node that was seen available changes nothing",
			Input{Limits: one, Observed: cluster(9, 8), Released: []string{worker(9)}, Pending: asks(1)},
			[]string{"MaxUnavailable worker-01: maxUnavailable 1: 1 is unavailable"},
		},
		{
			"a released node that is granted again counts",
			Input{Limits: one, Observed: cluster(9, 9), Released: []string{worker(9)}, Granted: held(9), Pending: asks(1)},
			[]string{"MaxUnavailable worker-01: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-09)"},
		},
		{
			"a released node without facts changes nothing",
			Input{Limits: one, Observed: cluster(9, 9).forget(9), Released: []string{worker(9)}, Pending: asks(1)},
			[]string{"MaxUnavailable worker-01: maxUnavailable 1: 1 is unavailable"},
		},
		{
			"a candidate on a released node costs what it gave back",
			Input{Limits: one, Observed: cluster(9, 9), Released: []string{worker(9)}, Pending: []Request{ask(1).prio(1), ask(9)}},
			[]string{"granted worker-01",
				"MaxUnavailable worker-09: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)"},
		},
	}
}

func candidateCases() []decideCase {
	missing := cluster(2).where("workr-01", NodeFacts{Missing: true, Suggestion: "worker-01"}).where("gone", NodeFacts{Missing: true})
	typo := Request{ID: "typo", Node: "workr-01", Requestor: "ops", Created: epoch}
	gone := Request{ID: "gone", Node: "gone", Requestor: "ops", Created: epoch}
	return []decideCase{
		{
			"candidates are pending requests whose node exists",
			Input{Limits: open, Observed: missing, Pending: []Request{typo, gone, ask(2)}},
			[]string{"granted worker-02",
				"NodeMissing gone: there is no node gone",
				"NodeMissing typo: there is no node workr-01; did you mean worker-01?"},
		},
		{
			"and holds no granted maintenance, whatever else is known of it",
			Input{Limits: open, Observed: cluster(2).forget(1), Granted: held(1), Pending: asks(1)},
			[]string{"NodeBusy worker-01: worker-01 is in maintenance for net"},
		},
		{
			"a node of which nothing is known waits for the next observation",
			Input{Limits: open, Observed: cluster(2).forget(1), Pending: asks(1, 2)},
			[]string{"granted worker-02", "Unobserved worker-01: worker-01 has not been observed yet"},
		},
		{
			"one per node, best rank first, also where the best one is passed over",
			Input{Limits: open.unavailable(Count(0)), Observed: cluster(2), Pending: []Request{ask(1).by("a"), ask(1).by("b")}},
			[]string{"MaxUnavailable worker-01/a: maxUnavailable 0: no further node may become unavailable",
				"Outranked worker-01/b: the request of a for worker-01 goes first"},
		},
	}
}

func rankCases() []decideCase {
	ranked := func(want ...string) []string {
		lines := []string{"granted " + want[0]}
		for _, id := range want[1:] {
			lines = append(lines, "MaxParallel "+id+": maxParallel 2: all 2 slots are taken (worker-09, "+want[0][:9]+")")
		}
		return lines
	}
	return []decideCase{
		{
			"priority goes before a requestor in progress",
			Input{Limits: limit(2), Observed: cluster(9), Granted: held(9), Pending: []Request{ask(1).by("net"), ask(2).by("a").prio(1)}},
			ranked("worker-02/a", "worker-01/net"),
		},
		{
			"a requestor in progress goes before one with fewer pending",
			Input{Limits: limit(2), Observed: cluster(9), Granted: held(9), Pending: []Request{ask(1).by("a"), ask(2).by("net"), ask(3).by("net")}},
			ranked("worker-02/net", "worker-03/net", "worker-01/a"),
		},
		{
			"fewest pending goes before older",
			Input{Limits: limit(2), Observed: cluster(9), Granted: held(9), Pending: []Request{ask(1).by("a"), ask(2).by("a"), ask(3).by("b").later(9)}},
			ranked("worker-03/b", "worker-01/a", "worker-02/a"),
		},
		{
			"then node name",
			Input{Limits: limit(2), Observed: cluster(9), Granted: held(9), Pending: []Request{ask(2).by("a"), ask(1).by("b")}},
			ranked("worker-01/b", "worker-02/a"),
		},
		{
			"then requestor",
			Input{Limits: open, Observed: cluster(9), Pending: []Request{
				{ID: "1", Node: worker(1), Requestor: "b", Created: epoch}, {ID: "2", Node: worker(1), Requestor: "a", Created: epoch}}},
			[]string{"granted 2", "Outranked 1: the request of a for worker-01 goes first"},
		},
		{
			"then ID",
			Input{Limits: open, Observed: cluster(9), Pending: []Request{
				{ID: "2", Node: worker(1), Requestor: "a", Created: epoch}, {ID: "1", Node: worker(1), Requestor: "a", Created: epoch}}},
			[]string{"granted 1", "Outranked 2: the request of a for worker-01 goes first"},
		},
		{
			"a grant of the round does not change the ranks behind it",
			Input{Limits: limit(2), Observed: cluster(9), Pending: []Request{ask(1).by("a"), ask(2).by("b"), ask(3).by("a").later(1), ask(4).by("b")}},
			[]string{"granted worker-01/a", "granted worker-02/b",
				"MaxParallel worker-04/b: maxParallel 2: all 2 slots are taken (worker-01, worker-02)",
				"MaxParallel worker-03/a: maxParallel 2: all 2 slots are taken (worker-01, worker-02)"},
		},
	}
}

func walkCases() []decideCase {
	return []decideCase{
		{
			"A candidate that does not fit is passed over with its reason and uses up nothing",
			Input{Limits: limit(1).unavailable(Count(1)), Observed: cluster(5, 5), Pending: asks(1, 2, 5)},
			[]string{"granted worker-05",
				"MaxUnavailable worker-01: maxUnavailable 1: 1 is unavailable",
				"MaxUnavailable worker-02: maxUnavailable 1: 1 is unavailable"},
		},
		{
			"a reason has the numbers of its moment",
			Input{Limits: open.unavailable(Count(1)), Observed: cluster(5, 5), Pending: []Request{ask(1).prio(2), ask(5).prio(1), ask(2)}},
			[]string{"granted worker-05",
				"MaxUnavailable worker-01: maxUnavailable 1: 1 is unavailable",
				"MaxUnavailable worker-02: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-05)"},
		},
		{
			"a node already unavailable may go where the limit is passed",
			Input{Limits: open.unavailable(Count(1)), Observed: cluster(5, 3, 4, 5), Pending: asks(1, 3)},
			[]string{"granted worker-03",
				"MaxUnavailable worker-01: maxUnavailable 1: 3 are unavailable"},
		},
		{
			"a node already unavailable still takes a slot",
			Input{Limits: limit(1), Observed: cluster(5, 1), Pending: asks(1, 2)},
			[]string{"granted worker-01", "MaxParallel worker-02: maxParallel 1: the slot is taken (worker-01)"},
		},
		{
			"limits are judged at the grant",
			Input{Limits: limit(2), Observed: cluster(9), Granted: held(5, 6, 7, 8, 9), Pending: asks(1)},
			[]string{"MaxParallel worker-01: maxParallel 2: 5 of 2 slots are taken (worker-05, worker-06, worker-07 and 2 more)"},
		},
		{
			"a percentage of no nodes is no slot",
			Input{Limits: Limits{MaxParallel: Percent(50)}, Observed: cluster(0).where(worker(1), NodeFacts{}), Pending: asks(1)},
			[]string{"MaxParallel worker-01: maxParallel 50% (= 0 of 0 nodes): there is no slot"},
		},
		{
			"the first of several limits in a fixed order is reported",
			Input{Limits: limit(1).unavailable(Count(1)), Observed: cluster(9), Granted: held(9), Pending: asks(1)},
			[]string{"MaxParallel worker-01: maxParallel 1: the slot is taken (worker-09)"},
		},
	}
}

func groupCases() []decideCase {
	zoned, seen := zones()
	_, unseen := zones()
	_, failed := zones(1, 4)
	pool := Limits{MaxParallel: Unlimited(), Groups: []Group{
		{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: Percent(34)},
		{Name: "all", NodeSelector: "pool", MaxParallel: Count(2), MaxUnavailable: Count(3)},
	}}
	pools := cluster(6, 3).with("gpu", 1, 2, 3).with("all", 1, 2, 3, 4, 5, 6)
	return []decideCase{
		{
			"every combination of label values has the limits of its own",
			Input{Limits: zoned, Observed: seen, Pending: asks(1, 2, 4)},
			[]string{"granted worker-01", "granted worker-04",
				"GroupMaxUnavailable worker-02: group zone[zone=a] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)"},
		},
		{
			"a granted node counts in its groups only",
			Input{Limits: zoned, Observed: seen, Granted: held(6), Pending: asks(1, 5)},
			[]string{"granted worker-01",
				"GroupMaxUnavailable worker-05: group zone[zone=b] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-06)"},
		},
		{
			"a granted node without facts counts in every group",
			Input{Limits: zoned, Observed: unseen.forget(6), Granted: held(6), Pending: asks(1, 5)},
			[]string{
				"GroupMaxUnavailable worker-01: group zone[zone=a] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-06)",
				"GroupMaxUnavailable worker-05: group zone[zone=b] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-06)"},
		},
		{
			"a released node counts as available in its groups",
			Input{Limits: zoned, Observed: failed, Released: []string{worker(1)}, Pending: asks(2, 3, 5)},
			[]string{"granted worker-02",
				"GroupMaxUnavailable worker-03: group zone[zone=a] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-02)",
				"GroupMaxUnavailable worker-05: group zone[zone=b] maxUnavailable 1: 1 is unavailable"},
		},
		{
			"a node already unavailable costs no unavailability in its groups",
			Input{Limits: zoned, Observed: failed, Pending: asks(1, 2)},
			[]string{"granted worker-01",
				"GroupMaxUnavailable worker-02: group zone[zone=a] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)"},
		},
		{
			"percentages are of the group, and groups are reported in their order",
			Input{Limits: pool, Observed: pools, Granted: held(2, 3), Pending: asks(1, 4)},
			[]string{
				"GroupMaxParallel worker-01: group gpu maxParallel 34% (= 2 of 3 nodes): all 2 slots are taken (worker-02, worker-03)",
				"GroupMaxParallel worker-04: group all maxParallel 2: all 2 slots are taken (worker-02, worker-03)"},
		},
	}
}

func haltedCases() []decideCase {
	behind := cluster(9)
	behind.Revision = 6
	freezes := []Freeze{
		{By: "dora", At: epoch.Add(3)}, {By: "carl", At: epoch.Add(2)},
		{By: "bob", At: epoch.Add(1)}, {By: "alice", Reason: "storage incident", At: epoch},
	}
	return []decideCase{
		{
			"Freeze stops new grants and names who and why",
			Input{Limits: open, Observed: cluster(9), Freezes: freezes[3:], Pending: asks(1)},
			[]string{"Frozen worker-01: frozen by alice (storage incident)"},
		},
		{
			"the oldest three of many freezes are named",
			Input{Limits: open, Freezes: freezes, Pending: asks(2, 1)},
			[]string{"Frozen worker-01: frozen by alice (storage incident), by bob, by carl and 1 more",
				"Frozen worker-02: frozen by alice (storage incident), by bob, by carl and 1 more"},
		},
		{
			"nothing is granted before the first observation",
			Input{Limits: open, Pending: asks(1)},
			[]string{"Unobserved worker-01: the cluster has not been observed yet"},
		},
		{
			"an observation of another revision grants nothing",
			Input{Limits: open, Observed: behind, Revision: 7, Pending: asks(1)},
			[]string{"Unobserved worker-01: the cluster has not been observed since the limits changed"},
		},
		{
			"an observation of the same revision grants",
			Input{Limits: open, Observed: behind, Revision: 6, Pending: asks(1)},
			[]string{"granted worker-01"},
		},
		{"nothing pending decides nothing", Input{Limits: open, Observed: cluster(9), Granted: held(1)}, nil},
	}
}

func TestRefusedIsInRankOrder(t *testing.T) {
	got := Decide(Input{Observed: cluster(5), Granted: held(5), Pending: []Request{
		ask(1).prio(1), ask(5).prio(3), ask(1).by("b").prio(2), ask(9).prio(4)}})
	var order []int
	for _, r := range got.Refused {
		order = append(order, r.Request.Priority)
	}
	if diff := cmp.Diff([]int{4, 3, 2, 1}, order); diff != "" {
		t.Errorf("priorities (-want +got):\n%s", diff)
	}
}
