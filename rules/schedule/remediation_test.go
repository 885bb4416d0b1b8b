package schedule

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/window"
)

// repair asks for a node that a check found ill.
func repair(id string, node int) Request {
	return Request{ID: id, Node: worker(node), Requestor: "health-workers", Created: epoch.Add(time.Hour), Remediation: true}
}

func planned(id string, node int) Request {
	return Request{ID: id, Node: worker(node), Requestor: "ops", Priority: 9, Created: epoch}
}

func repairs(nodes ...int) (held []Grant) {
	for _, n := range nodes {
		held = append(held, Grant{RequestID: fmt.Sprint("held-", n), Node: worker(n), Requestor: "health-workers", Remediation: true})
	}
	return held
}

func TestRemediations(t *testing.T) {
	one := Limits{MaxParallel: Count(1)}
	runDecideCases(t, []decideCase{
		{
			"one goes though the only slot is taken, and its own takes none",
			Input{
				Limits: one, Observed: cluster(10, 2), Pending: []Request{planned("p", 3), repair("r", 2)},
				Granted: []Grant{{RequestID: "h", Node: worker(1), Requestor: "ops"}},
			},
			[]string{"granted r", "MaxParallel p: maxParallel 1: the slot is taken (worker-01)"},
		},
		{
			"one that holds its slot leaves the others'",
			Input{Limits: one, Observed: cluster(10, 2), Pending: []Request{planned("p", 3)}, Granted: repairs(2)},
			[]string{"granted p"},
		},
		{
			"they have a limit of their own, a tenth where none is set",
			Input{Limits: Limits{}, Observed: cluster(11, 1, 2, 3), Pending: []Request{repair("a", 1), repair("b", 2), repair("c", 3)}},
			[]string{"granted a", "granted b", "Remediations c: remediations 10% (= 2 of 11 nodes): all 2 slots are taken (worker-01, worker-02)"},
		},
		{
			"none where the limit is 0",
			Input{Limits: Limits{Remediations: Count(0)}, Observed: cluster(9, 1), Pending: []Request{repair("a", 1)}},
			[]string{"Remediations a: remediations 0: there is no slot"},
		},
		{
			"a node that is unavailable already takes nothing more, one that is Ready has to fit",
			Input{
				Limits: Limits{MaxUnavailable: Count(1), Remediations: Unlimited()}, Observed: cluster(9, 1),
				Pending: []Request{repair("ready", 2), repair("dead", 1)},
			},
			[]string{"granted dead", "MaxUnavailable ready: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)"},
		},
		{
			"they count as unavailable for what is planned",
			Input{
				Limits: Limits{MaxParallel: Unlimited(), MaxUnavailable: Count(1)}, Observed: cluster(9), Granted: repairs(1),
				Pending: []Request{planned("p", 2)},
			},
			[]string{"MaxUnavailable p: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)"},
		},
		{
			"what is planned for the node waits, and what holds it is waited for",
			Input{
				Limits: Limits{MaxParallel: Unlimited(), Remediations: Count(1)}, Observed: cluster(9, 1, 2), Granted: append(repairs(1),
					Grant{RequestID: "h", Node: worker(3), Requestor: "ops"}),
				Pending: []Request{planned("p", 2), repair("r", 2), repair("busy", 3)},
			},
			[]string{
				"Remediations r: remediations 1: the slot is taken (worker-01)",
				"NodeBusy busy: worker-03 is in maintenance for ops",
				"Outranked p: the request of health-workers for worker-02 goes first",
			},
		},
		{
			"a freeze stops them too",
			Input{Observed: cluster(9, 1), Freezes: []Freeze{{By: "amy", Reason: "storm", At: epoch}}, Pending: []Request{repair("r", 1)}},
			[]string{"Frozen r: frozen by amy (storm)"},
		},
		{
			"no window and no quota concerns them, and a gang that one names means nothing",
			Input{
				Limits: Limits{
					Windows: []string{"night"}, Quotas: Quotas{HeldPerRequestor: new(1)}, Remediations: Count(3),
				},
				Now: epoch, Horizon: &window.Horizon{Windows: map[string]window.Openings{"night": {Until: epoch.Add(time.Hour)}}},
				Observed: cluster(9, 1, 2), Granted: repairs(3),
				Pending: []Request{repair("a", 1), func() Request { r := repair("b", 2); r.Gang = &Gang{Name: "g", Size: 5}; return r }()},
			},
			[]string{"granted a", "granted b"},
		},
		{
			"a node of which nothing is known counts as unavailable, and in no slot",
			Input{
				Limits: Limits{MaxParallel: Count(1), MaxUnavailable: Count(2), Remediations: Count(1)}, Observed: cluster(9),
				Granted: []Grant{{RequestID: "u", Node: "unseen", Requestor: "health-workers", Remediation: true}},
				Pending: []Request{planned("p", 1), repair("r", 2)},
			},
			[]string{"granted p", "Remediations r: remediations 1: the slot is taken (unseen)"},
		},
	})
}

func TestGroupsCountRemediationsAsUnavailableOnly(t *testing.T) {
	limits := Limits{
		MaxParallel: Unlimited(), Remediations: Unlimited(),
		Groups: []Group{{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: Count(1), MaxUnavailable: Count(2)}},
	}
	seen := cluster(9)
	for i := range 4 {
		seen.Facts[worker(i+1)] = NodeFacts{Groups: []string{"gpu"}}
	}
	seen.Groups = map[string]GroupCount{"gpu": {Nodes: 4}}
	got := lines(Decide(Input{
		Limits: limits, Observed: seen, Granted: []Grant{{RequestID: "h", Node: worker(1), Requestor: "ops"}},
		Pending: []Request{repair("a", 2), repair("b", 3)},
	}))
	want := []string{"granted a", "GroupMaxUnavailable b: group gpu maxUnavailable 2: 2 are unavailable (2 in maintenance: worker-01, worker-02)"}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPlannedRequestsDelayNoRemediation: the answers to remediations are those where nothing else is asked for.
func TestPlannedRequestsDelayNoRemediation(t *testing.T) {
	isRepair := func(r Request) bool { return r.Remediation }
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{limits: drawLimits(t)}
		for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
			s.addNode(t, worker(i+1))
		}
		s.observe(t)
		for range 3 {
			s.request(t)
			s.requestGang(t)
			s.decide(t)
			s.cordon(t)
			s.observe(t)
		}
		answers := func(d Decision) []string {
			d.Grants = slices.DeleteFunc(d.Grants, func(r Request) bool { return !isRepair(r) })
			d.Refused = slices.DeleteFunc(d.Refused, func(r Refusal) bool { return !isRepair(r.Request) })
			return lines(d)
		}
		with := answers(s.check(t))
		s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(r Request) bool { return !isRepair(r) })
		if alone := answers(s.check(t)); !slices.Equal(with, alone) {
			t.Fatalf("with what is planned\n%s\nalone\n%s", strings.Join(with, "\n"), strings.Join(alone, "\n"))
		}
	})
}

// TestRemediationsTakeNoSlot: where no unavailability is limited, what is planned for other nodes is answered as if there
// were no remediations.
func TestRemediationsTakeNoSlot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{limits: drawLimits(t)}
		s.limits.MaxUnavailable = Amount{}
		for i := range s.limits.Groups {
			s.limits.Groups[i].MaxUnavailable = Amount{}
		}
		for i := range 12 {
			s.addNode(t, worker(i+1))
		}
		s.observe(t)
		s.request(t)
		s.decide(t)
		s.observe(t)
		s.request(t)
		repaired := map[string]bool{}
		for _, r := range s.pending {
			if r.Remediation {
				repaired[r.Node] = true
			}
		}
		for _, g := range s.granted {
			if g.Remediation {
				repaired[g.Node] = true
			}
		}
		s.pending = slices.DeleteFunc(s.pending, func(r Request) bool { return !r.Remediation && (repaired[r.Node] || r.Gang != nil) })
		answers := func(d Decision) []string {
			d.Grants = slices.DeleteFunc(d.Grants, func(r Request) bool { return r.Remediation })
			d.Refused = slices.DeleteFunc(d.Refused, func(r Refusal) bool { return r.Request.Remediation })
			return lines(d)
		}
		with := answers(s.check(t))
		s.pending = slices.DeleteFunc(slices.Clone(s.pending), func(r Request) bool { return r.Remediation })
		s.granted = slices.DeleteFunc(slices.Clone(s.granted), func(g Grant) bool { return g.Remediation })
		if without := answers(s.check(t)); !slices.Equal(with, without) {
			t.Fatalf("with remediations\n%s\nwithout\n%s", strings.Join(with, "\n"), strings.Join(without, "\n"))
		}
	})
}
