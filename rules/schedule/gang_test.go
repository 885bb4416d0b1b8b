package schedule

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/window"
)

// in makes the request one of a gang.
func (r Request) in(name string, size int) Request {
	r.Gang = &Gang{Name: name, Size: size}
	return r
}

// gangOf are requests of ops for nodes, as a gang of so many.
func gangOf(name string, nodes ...int) []Request {
	all := asks(nodes...)
	for i := range all {
		all[i] = all[i].in(name, len(nodes))
	}
	return all
}

func lateGang(all []Request) []Request {
	for i := range all {
		all[i] = all[i].later(1)
	}
	return all
}

func TestGangs(t *testing.T) {
	for name, cases := range map[string][]decideCase{
		"whole": wholeCases(), "waiting": waitingCases(), "reservation": reservationCases(), "too large": tooLargeCases(), "windows": gangWindowCases(),
	} {
		t.Run(name, func(t *testing.T) { runDecideCases(t, cases) })
	}
}

func wholeCases() []decideCase {
	frozen := []Freeze{{By: "alice", At: epoch}}
	return []decideCase{
		{
			"a gang goes at once",
			Input{Limits: limit(3).unavailable(Count(3)), Observed: cluster(9), Pending: gangOf("x", 1, 2, 3)},
			[]string{"granted worker-01", "granted worker-02", "granted worker-03"},
		},
		{
			"or not at all, and keeps nobody waiting before all have asked",
			Input{Limits: limit(3), Observed: cluster(9), Pending: []Request{ask(1).in("x", 3).prio(1), ask(2).in("x", 3), ask(4)}},
			[]string{"granted worker-04",
				"GangIncomplete worker-01: gang x goes once all of its 3 nodes have asked: 2 of 3 so far",
				"GangIncomplete worker-02: gang x goes once all of its 3 nodes have asked: 2 of 3 so far"},
		},
		{
			"requests for one node are one of its nodes",
			Input{Limits: open, Observed: cluster(9), Pending: []Request{ask(1).by("b").in("x", 2), ask(1).in("x", 2)}},
			[]string{"GangIncomplete worker-01/b: gang x goes once all of its 2 nodes have asked: 1 of 2 so far",
				"Outranked worker-01: the request of b for worker-01 goes first"},
		},
		{
			"a gang of one is an ordinary request",
			Input{Limits: limit(1), Observed: cluster(9), Granted: held(9), Pending: []Request{ask(1).in("x", 1), ask(2)}},
			[]string{"MaxParallel worker-01: maxParallel 1: the slot is taken (worker-09)", "MaxParallel worker-02: maxParallel 1: the slot is taken (worker-09)"},
		},
		{
			"it goes at the rank of its best, and the lists are in rank order all the same",
			Input{Limits: limit(3), Observed: cluster(9), Pending: []Request{ask(1).in("x", 2).prio(2), ask(2).in("x", 2), ask(3).prio(1), ask(4).prio(1)}},
			[]string{"granted worker-01", "granted worker-03", "granted worker-02",
				"MaxParallel worker-04: maxParallel 3: all 3 slots are taken (worker-01, worker-02, worker-03)"},
		},
		{
			"it counts as one request of its requestor",
			Input{Limits: limit(2), Observed: cluster(9), Pending: append(gangOf("x", 1, 2), ask(3).by("b").later(1), ask(4).by("b").later(1))},
			[]string{"granted worker-01", "granted worker-02",
				"MaxParallel worker-03/b: maxParallel 2: all 2 slots are taken (worker-01, worker-02)",
				"MaxParallel worker-04/b: maxParallel 2: all 2 slots are taken (worker-01, worker-02)"},
		},
		{
			"nodes that are unavailable already cost no unavailability",
			Input{Limits: open.unavailable(Count(2)), Observed: cluster(9, 1, 2), Pending: gangOf("x", 1, 2)},
			[]string{"granted worker-01", "granted worker-02"},
		},
		{
			"once a part holds slots the rest asks singly",
			Input{Limits: limit(2), Observed: cluster(9), Granted: []Grant{{RequestID: "a", Node: worker(9), Requestor: "ops", Gang: "x"}}, Pending: gangOf("x", 1, 2, 3)},
			[]string{"granted worker-01",
				"MaxParallel worker-02: maxParallel 2: all 2 slots are taken (worker-09, worker-01)",
				"MaxParallel worker-03: maxParallel 2: all 2 slots are taken (worker-09, worker-01)"},
		},
		{
			"freezes stop it",
			Input{Limits: open, Observed: cluster(9), Freezes: frozen, Pending: gangOf("x", 1, 2)},
			[]string{"Frozen worker-01: frozen by alice", "Frozen worker-02: frozen by alice"},
		},
	}
}

func waitingCases() []decideCase {
	missing := cluster(9).where("gone", NodeFacts{Missing: true})
	return []decideCase{
		{
			"a node that is gone is none of its nodes",
			Input{Limits: open, Observed: missing, Pending: []Request{{ID: "gone", Node: "gone", Requestor: "ops", Created: epoch, Gang: &Gang{Name: "x", Size: 2}}, ask(1).in("x", 2)}},
			[]string{"NodeMissing gone: there is no node gone",
				"GangIncomplete worker-01: gang x goes once all of its 2 nodes have asked: 1 of 2 so far"},
		},
		{
			"a node that was not observed is looked at before anything is said of the gang",
			Input{Limits: open, Observed: cluster(9).forget(1), Pending: append(gangOf("x", 1, 2), ask(3).later(1))},
			[]string{"granted worker-03",
				"Unobserved worker-01: worker-01 has not been observed yet",
				"Unobserved worker-02: gang x waits: worker-01 has not been observed yet"},
		},
		{
			"who waits for others to ask needs no look at the cluster",
			Input{Limits: open, Seen: map[string]bool{worker(1): true}, Pending: []Request{ask(1).in("x", 2), ask(2).in("y", 2)}},
			[]string{"GangIncomplete worker-01: gang x goes once all of its 2 nodes have asked: 1 of 2 so far",
				"Unobserved worker-02: the cluster has not been observed yet"},
		},
		{
			"a gang that waits for nodes to be repaired reserves nothing",
			Input{Limits: open.unavailable(Count(3)), Observed: cluster(9, 8, 9), Pending: append(gangOf("x", 1, 2), ask(3).later(1))},
			[]string{"granted worker-03",
				"MaxUnavailable worker-01: gang x makes 2 nodes unavailable at once: maxUnavailable 3: 2 are unavailable",
				"MaxUnavailable worker-02: gang x makes 2 nodes unavailable at once: maxUnavailable 3: 2 are unavailable"},
		},
		{
			"nor does one of a node that is first another's who waits for that",
			Input{Limits: open.unavailable(Count(1)), Observed: cluster(9, 2, 3, 9), Pending: []Request{
				ask(1).prio(1), ask(1).by("b").in("x", 2), ask(2).by("b").in("x", 2), ask(9).prio(-1)}},
			[]string{"granted worker-09",
				"MaxUnavailable worker-01: maxUnavailable 1: 3 are unavailable",
				"Outranked worker-01/b: the request of ops for worker-01 goes first",
				"GangWaits worker-02/b: gang x waits: the request of ops for worker-01 goes first"},
		},
	}
}

func reservationCases() []decideCase {
	const kept = "; what it needs is kept free for it"
	quotas := Limits{MaxParallel: Unlimited(), Quotas: Quotas{HeldPerRequestor: most(3)}}
	zoned, seen := zones()
	return []decideCase{
		{
			"what a gang needs is kept from all of lower rank",
			Input{Limits: limit(3), Observed: cluster(9), Granted: held(9), Pending: append(gangOf("x", 1, 2, 3), ask(4).later(1))},
			[]string{
				"MaxParallel worker-01: gang x needs 3 slots at once: maxParallel 3: 1 of 3 slots are taken (worker-09)" + kept,
				"MaxParallel worker-02: gang x needs 3 slots at once: maxParallel 3: 1 of 3 slots are taken (worker-09)" + kept,
				"MaxParallel worker-03: gang x needs 3 slots at once: maxParallel 3: 1 of 3 slots are taken (worker-09)" + kept,
				"Reserved worker-04: gang x goes first and needs 3 of maxParallel 3, of which 1 is used"},
		},
		{
			"and what it does not need goes on; its nodes do not",
			Input{Limits: limit(4), Observed: cluster(9), Granted: held(1), Pending: append(gangOf("x", 1, 2),
				ask(2).by("b").later(1), ask(4).by("b").later(1), ask(5).by("b").later(1), ask(6).by("b").later(1))},
			[]string{"granted worker-04/b", "granted worker-05/b",
				"NodeBusy worker-01: worker-01 is in maintenance for net",
				"GangWaits worker-02: gang x waits: worker-01 is in maintenance for net" + kept,
				"Reserved worker-02/b: gang x goes first and needs worker-02",
				"Reserved worker-06/b: gang x goes first and needs 1 of maxParallel 4, of which 3 are used"},
		},
		{
			"the rest of a gang that holds slots goes on: the reservation waits for it",
			Input{Limits: limit(3), Observed: cluster(9), Granted: []Grant{{RequestID: "a", Node: worker(9), Requestor: "net", Gang: "y"}},
				Pending: append(gangOf("x", 1, 2, 3), ask(4).by("b").in("y", 2).later(1))},
			[]string{"granted worker-04/b",
				"MaxParallel worker-01: gang x needs 3 slots at once: maxParallel 3: 1 of 3 slots are taken (worker-09)" + kept,
				"MaxParallel worker-02: gang x needs 3 slots at once: maxParallel 3: 1 of 3 slots are taken (worker-09)" + kept,
				"MaxParallel worker-03: gang x needs 3 slots at once: maxParallel 3: 1 of 3 slots are taken (worker-09)" + kept},
		},
		{
			"in groups it is kept too",
			Input{Limits: zoned, Observed: seen, Granted: held(1), Pending: append(gangOf("x", 2, 4), ask(5).later(1))},
			[]string{
				"GroupMaxUnavailable worker-02: gang x makes 1 node unavailable at once: group zone[zone=a] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)" + kept,
				"GroupMaxUnavailable worker-04: gang x makes 1 node unavailable at once: group zone[zone=a] maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)" + kept,
				"Reserved worker-05: gang x goes first and needs 1 of group zone[zone=b] maxUnavailable 1, of which 0 are used"},
		},
		{
			"later gangs go where they leave room, and reserve nothing",
			Input{Limits: limit(4), Observed: cluster(9), Granted: held(9), Pending: slices.Concat(gangOf("x", 1, 9), lateGang(gangOf("y", 3, 4)), lateGang(gangOf("z", 5, 6, 7)), []Request{ask(8).prio(-1)})},
			[]string{"granted worker-03", "granted worker-04",
				"GangWaits worker-01: gang x waits: worker-09 is in maintenance for net" + kept,
				"NodeBusy worker-09: worker-09 is in maintenance for net",
				"MaxParallel worker-05: gang z needs 3 slots at once: maxParallel 4: 3 of 4 slots are taken (worker-09, worker-03, worker-04)",
				"MaxParallel worker-06: gang z needs 3 slots at once: maxParallel 4: 3 of 4 slots are taken (worker-09, worker-03, worker-04)",
				"MaxParallel worker-07: gang z needs 3 slots at once: maxParallel 4: 3 of 4 slots are taken (worker-09, worker-03, worker-04)",
				"Reserved worker-08: gang x goes first and needs 1 of maxParallel 4, of which 3 are used"},
		},
		{
			"quotas are limits",
			Input{Limits: quotas, Observed: cluster(9), Granted: []Grant{{RequestID: "a", Node: worker(9), Requestor: "ops"}, {RequestID: "b", Node: worker(8), Requestor: "ops"}},
				Pending: append(gangOf("x", 1, 2), ask(3).later(1), ask(4).by("b").later(1))},
			[]string{"granted worker-04/b",
				"Quota worker-01: gang x has 2 nodes of ops: quota: ops holds 2 nodes (worker-08, worker-09); the limit is 3" + kept,
				"Quota worker-02: gang x has 2 nodes of ops: quota: ops holds 2 nodes (worker-08, worker-09); the limit is 3" + kept,
				"Reserved worker-03: gang x goes first and needs 2 of the quota of ops (3), of which 2 are used"},
		},
	}
}

func tooLargeCases() []decideCase {
	const larger = "gang x of 3 nodes goes once limits are raised that it is larger than by itself: drydock limits set "
	pool := Limits{MaxParallel: Percent(10), Quotas: Quotas{HeldPerRequestor: most(2)}, Groups: []Group{
		{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: Count(1), MaxUnavailable: Percent(34)},
	}}
	too := func(why string) []string {
		return []string{"GangTooLarge worker-01: " + larger + why, "GangTooLarge worker-02: " + larger + why, "GangTooLarge worker-03: " + larger + why}
	}
	return []decideCase{
		{
			"a gang that is larger than a limit is told the command, and reserves nothing",
			Input{Limits: limit(2).unavailable(Count(2)), Observed: cluster(9), Pending: append(gangOf("x", 1, 2, 3), ask(4).later(1))},
			append([]string{"granted worker-04"}, too("--max-parallel 3 --max-unavailable 3 (maxParallel 2, maxUnavailable 2)")...),
		},
		{
			"for a group and a quota too, percentages staying such",
			Input{Limits: pool, Observed: cluster(10).with("gpu", 1, 2, 3), Pending: gangOf("x", 1, 2, 3)},
			too("--max-parallel 21%; drydock limits set --group gpu --max-parallel 3 --max-unavailable 67%; drydock limits set --held ops=3 " +
				"(maxParallel 10% (= 1 of 10 nodes), group gpu maxParallel 1, group gpu maxUnavailable 34% (= 2 of 3 nodes) and 1 more)"),
		},
	}
}

func gangWindowCases() []decideCase {
	opens := epoch.Add(time.Hour)
	horizon := &window.Horizon{Windows: map[string]window.Openings{
		"nights": {Until: epoch.AddDate(0, 0, 9), Openings: []window.Opening{{From: opens, Until: opens.Add(time.Hour)}}},
	}}
	night := gangOf("x", 1, 2, 3)
	night[1].Windows = []string{"nights"}
	const closed = "window nights opens 2026-03-01T13:00:00Z"
	return []decideCase{
		{
			"a gang whose window is closed waits and reserves nothing, whatever else it waits for",
			Input{Limits: limit(3), Observed: cluster(9), Granted: held(1), Pending: append(night, ask(4).later(1)), Now: epoch, Horizon: horizon},
			[]string{"granted worker-04",
				"Window worker-01: gang x waits: " + closed + "; 1 more of its nodes cannot go now",
				"Window worker-02: " + closed,
				"Window worker-03: gang x waits: " + closed + "; 1 more of its nodes cannot go now"},
		},
		{
			"and goes once it is open",
			Input{Limits: limit(3), Observed: cluster(9), Pending: night, Now: opens, Horizon: horizon},
			[]string{"granted worker-01", "granted worker-02", "granted worker-03"},
		},
	}
}

// The decision is made again when a window closes under a gang that waits for something else.
func TestAGangThatWaitsIsDecidedAnewWhenItsWindowCloses(t *testing.T) {
	closes := epoch.Add(time.Hour)
	in := Input{Limits: limit(2), Observed: cluster(9), Granted: held(9), Pending: gangOf("x", 1, 2), Now: epoch, Horizon: &window.Horizon{
		Windows: map[string]window.Openings{"nights": {Until: epoch.AddDate(0, 0, 9), Openings: []window.Opening{{From: epoch, Until: closes}}}},
	}}
	in.Pending[1].Windows = []string{"nights"}
	d := Decide(in)
	if d.Refused[0].Code != MaxParallel || d.Next.Before(closes) || d.Next.After(closes.Add(2*time.Minute)) {
		t.Errorf("%s: again at %s, want about %s", d.Refused[0].Code, d.Next, closes)
	}
}

// What a gang is told to raise is enough.
func TestTheCommandsRaiseLimitsEnough(t *testing.T) {
	for total := 1; total <= 250; total++ {
		for needs := 1; needs <= total; needs++ {
			raised := Percent(1).atLeast(needs, total)
			if raised.Of(total) < needs || raised.kind != percent || raised.value > 100 || Percent(raised.value-1).Of(total) >= needs {
				t.Fatalf("%d of %d: %s", needs, total, raised)
			}
		}
	}
	if got := Percent(1).atLeast(3, 2); got != Count(3) {
		t.Errorf("3 of 2: %s", got)
	}
}

func TestGangsThatCannotBeAreRefused(t *testing.T) {
	for _, g := range []Gang{{"maintenance-plan/kernel/run", 2}, {"x", 1}, {strings.Repeat("x", 253), MaxGang}} {
		if err := g.Validate(); err != nil {
			t.Errorf("%+v: %v", g, err)
		}
	}
	for want, g := range map[string]Gang{
		"name: required":                      {"", 2},
		"name: 254 bytes are more than 253":   {strings.Repeat("x", 254), 2},
		`name: "a\nb" has control characters`: {"a\nb", 2},
		"size: 0: want 1 to 15000 nodes":      {"x", 0},
		"size: 15001: want 1 to 15000 nodes":  {"x", 15001},
	} {
		if err := g.Validate(); err == nil || err.Error() != want {
			t.Errorf("%+v: %v, want %s", g, err, want)
		}
	}
}

func TestWhatAGangThatIsTooLargeNamesIsFound(t *testing.T) {
	for _, c := range tooLargeCases() {
		found := 0
		for _, refused := range Decide(c.in).Refused {
			if refused.Code != GangTooLarge {
				continue
			}
			found++
			commands, limits := Raises(refused.Reason)
			if !strings.HasPrefix(commands, setLimits) || !strings.HasPrefix(limits, "maxParallel ") || !strings.HasSuffix(refused.Reason, commands+" ("+limits+")") {
				t.Errorf("%s: %q and %q of %s", c.name, commands, limits, refused.Reason)
			}
		}
		if found == 0 {
			t.Errorf("%s: no gang is too large", c.name)
		}
	}
	if commands, limits := Raises("frozen by jane (a move)"); commands+limits != "" {
		t.Errorf("%q and %q of another reason", commands, limits)
	}
}
