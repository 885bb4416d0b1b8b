package views

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

func TestWhoHasTheNodeThatIsWaitedFor(t *testing.T) {
	m := api.Maintenance{MaintenanceSummary: api.MaintenanceSummary{Node: "a", Requestor: "ops", Phase: api.Pending, WaitingFor: api.WaitsForSlot + "a is in maintenance for plan-kernel"}}
	if got, want := Next(m, time.Now(), "ops"), []string{"drydock status a --requestor plan-kernel"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNext(t *testing.T) {
	blocked := func(reason string) func(*api.Maintenance) {
		return func(m *api.Maintenance) {
			m.Drain = &api.DrainProgress{Blockers: []api.Blocker{{Pod: "ns/pod", Reason: reason}}}
		}
	}
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	budget := func(since time.Duration, state api.BudgetState) func(*api.Maintenance) {
		return func(m *api.Maintenance) {
			blocked(api.ReasonDisruptionBudget)(m)
			m.Drain.Blockers[0].Since, m.Drain.Blockers[0].Budgets = now.Add(-since), []api.BudgetState{state}
		}
	}
	since := func(long time.Duration, reason string) func(*api.Maintenance) {
		return func(m *api.Maintenance) {
			blocked(reason)(m)
			m.Drain.Blockers[0].Since = now.Add(-long)
		}
	}
	responder := func(long, late time.Duration) func(*api.Maintenance) {
		return func(m *api.Maintenance) {
			since(long, api.ReasonEvictionRequested)(m)
			m.Drain.Blockers[0].ExpectedBy = now.Add(-late)
		}
	}
	const skip, bypass, cancel = "drydock drain skip a ns/pod", "drydock escalate a --do bypassBudget --comment WHY", "drydock cancel a"
	stuck := []string{skip, bypass, cancel}
	for name, c := range map[string]struct {
		phase  api.Phase
		change func(*api.Maintenance)
		want   []string
	}{
		"approval": {api.AwaitingApproval, nil, []string{"drydock approve a", "drydock deny a"}},
		"a slot":   {api.Pending, func(m *api.Maintenance) { m.Slot = &api.SlotStatus{} }, []string{"drydock limits"}},
		"the thaw": {api.Pending, func(m *api.Maintenance) {
			m.Slot, m.WaitingFor = &api.SlotStatus{}, api.WaitsForSlot+schedule.Decide(schedule.Input{
				Pending: []schedule.Request{{Node: "a"}}, Freezes: []schedule.Freeze{{By: "jane", Reason: "a move"}},
			}).Refused[0].Reason
		}, []string{"drydock thaw --by NAME"}},
		"its time": {api.Pending, nil, nil},
		"a freeze": {api.Cordoning, func(m *api.Maintenance) { m.WaitingFor = api.WaitsForThaw + "by jane" }, []string{"drydock thaw --by NAME"}},
		"a budget": {api.Draining, budget(time.Minute, api.BudgetState{}), nil},
		"for long": {api.Draining, budget(6*time.Minute, api.BudgetState{}), stuck},
		"for ever": {api.Draining, budget(time.Second, api.BudgetState{Impossible: true}), stuck},
		"one that gives the node back next": {api.Draining, func(m *api.Maintenance) {
			budget(6*time.Minute, api.BudgetState{})(m)
			m.Spec.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}
		}, stuck},
		"several budgets": {api.Draining, since(6*time.Minute, api.ReasonSeveralBudgets), stuck},
		"one that may be past budgets already": {api.Draining, func(m *api.Maintenance) {
			budget(6*time.Minute, api.BudgetState{})(m)
			m.Force = spec.BypassBudget
		}, []string{skip, cancel}},
		"what no rung removes":          {api.Draining, since(6*time.Minute, "ComesBack"), []string{skip, cancel}},
		"a volume":                      {api.Draining, since(6*time.Minute, api.ReasonVolumeAttached), []string{cancel}},
		"a time that is known":          {api.Draining, since(20*time.Minute, api.ReasonDoNotDisrupt), nil},
		"a responder that says no time": {api.Draining, since(19*time.Minute, api.ReasonEvictionRequested), nil},
		"a responder that takes long":   {api.Draining, since(20*time.Minute, api.ReasonEvictionRequested), []string{skip, cancel}},
		"a responder with a time":       {api.Draining, responder(3*time.Hour, -time.Minute), nil},
		"a responder that is late":      {api.Draining, responder(6*time.Minute, 2*time.Minute), []string{skip, cancel}},
		"consent behind that": {api.Draining, func(m *api.Maintenance) {
			since(20*time.Minute, api.ReasonDoNotDisrupt)(m)
			m.Drain.Blockers = append(m.Drain.Blockers, api.Blocker{Pod: "ns/bare", Reason: api.ReasonNoController})
		}, []string{"drydock consent a --force --comment WHY --pod ns/bare", "drydock drain skip a ns/bare"}},
		"a profile's drain": {api.Draining, func(m *api.Maintenance) {
			budget(6*time.Minute, api.BudgetState{})(m)
			m.Requestor = "profile-flatcar"
		}, stuck[:2]},
		"consent":   {api.Draining, blocked(api.ReasonNoController), []string{"drydock consent a --force --comment WHY --pod ns/pod", skip}},
		"its data":  {api.Draining, blocked(api.ReasonLocalStorage), []string{"drydock consent a --delete-emptydir-data --comment WHY --pod ns/pod", skip}},
		"a drainer": {api.Draining, func(m *api.Maintenance) { m.WaitingFor = `the signal "drained"` }, []string{"drydock drain done a"}},
		"the work":  {api.Ready, nil, []string{"drydock done a"}},
		"a check":   {api.Ready, func(m *api.Maintenance) { m.Requestor = "health-workers" }, []string{"drydock done a"}},
		"a profile": {api.Ready, func(m *api.Maintenance) { m.Requestor = "profile-flatcar" }, nil},
		"a failure": {api.RequestorFailed, nil, []string{"drydock retry a", "drydock done a", "drydock cancel a --release"}},
		"validation": {api.Validating, func(m *api.Maintenance) { m.Validation = &api.ValidationStatus{State: validation.Failed} }, []string{
			"drydock retry a", "drydock validation pass a --comment WHY", "drydock cancel a --release",
		}},
		"somebody's look at it": {api.Validating, func(m *api.Maintenance) {
			m.Validation, m.Spec.Validation = &api.ValidationStatus{State: validation.Waiting}, &validation.Validation{Signal: true}
		}, []string{"drydock validation pass a", "drydock validation fail a --comment WHY"}},
		"checks":  {api.Validating, func(m *api.Maintenance) { m.Spec.Validation = &validation.Validation{} }, nil},
		"nothing": {api.RequestorFailed, func(m *api.Maintenance) { m.EndedAt = &time.Time{} }, nil},
	} {
		m := api.Maintenance{MaintenanceSummary: api.MaintenanceSummary{Node: "a", Requestor: "ops", Phase: c.phase}}
		if c.change != nil {
			c.change(&m)
		}
		if got := Next(m, now, ""); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		var named []string
		for _, command := range c.want {
			named = append(named, strings.TrimSpace(strings.Replace(command+" ", " a ", " a --requestor net ", 1)))
		}
		if got := Next(m, now, "net"); !slices.Equal(got, named) {
			t.Errorf("%s, where the node has several maintenances: %v, want %v", name, got, named)
		}
	}
}

func TestABlockerIsExplainedOnce(t *testing.T) {
	m := api.Maintenance{}
	m.Drain = &api.DrainProgress{Blockers: []api.Blocker{{Pod: "ns/pod", Message: "budget db allows 0 disruptions"}}}
	for waits, want := range map[string]string{
		"pod ns/pod: budget db allows 0 disruptions":              "pod ns/pod",
		"pod ns/pod: budget db allows 0 disruptions (and 3 more)": "pod ns/pod (and 3 more)",
		"pod ns/other: budget db allows 0 disruptions":            "pod ns/other: budget db allows 0 disruptions",
		"a thaw: by jane": "a thaw: by jane",
	} {
		m.WaitingFor = waits
		if got := waitingFor(m); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhatHappensAgainIsOneRow(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	all := []api.Transition{{Phase: api.Draining, At: at}}
	for i := range 10 {
		all = append(all, api.Transition{Phase: api.Draining, At: at.Add(time.Duration(i+1) * time.Minute), Message: "drained as far as its plans have come"})
		if i == 4 {
			all = append(all, api.Transition{Phase: api.Draining, At: at.Add(5*time.Minute + time.Second), Message: "cordon restored"})
		}
	}
	all = append(all, api.Transition{Phase: api.Ready, At: at.Add(time.Hour)})
	var rows []string
	for _, row := range transitions(all, At(at)).Rows {
		rows = append(rows, strings.Join(row.Cells, "|"))
	}
	want := []string{
		"Draining|12:00:00 UTC|1h00m|", "|12:01:00 UTC||drained as far as its plans have come (10 times, last at 12:10:00 UTC)",
		"|12:05:01 UTC||cordon restored", "Ready|13:00:00 UTC|0.0s|",
	}
	if len(rows) != len(want) || fmt.Sprint(rows[:3]) != fmt.Sprint(want[:3]) {
		t.Errorf("got %q, want %q", rows, want)
	}
}

func TestNextOfPlan(t *testing.T) {
	for want, p := range map[string]api.PlanSummary{
		"drydock plan resume kernel":                                                   {Phase: api.PlanPaused},
		"drydock plan approve kernel | drydock plan deny kernel":                       {Phase: api.PlanRunning, WaitingFor: plan.AwaitsApproval},
		"drydock plan set-stage kernel Drain | drydock plan set-stage kernel Complete": {Phase: api.PlanRunning, WaitingFor: plan.AwaitsStage + "Drain or Complete"},
		"drydock plan set-stage kernel Complete":                                       {Phase: api.PlanRunning, WaitingFor: plan.AwaitsStage + "Complete (all nodes are drained)"},
		"":                                                                             {Phase: api.PlanRunning, WaitingFor: "the canary"},
	} {
		p.Name = "kernel"
		shown := document.Markdown(Plan(api.Plan{PlanSummary: p}, At(time.Time{})))
		if got := strings.Join(NextOfPlan(p), " | "); got != want || strings.Contains(shown, "Next") != (want != "") {
			t.Errorf("%q, want %q, in %s", got, want, shown)
		}
	}
}

// TestNextOfHeld: the page may have none of the held nodes, and a node may have maintenances of other requestors.
func TestNextOfHeld(t *testing.T) {
	page := func(states ...string) (nodes []api.PlanNode) {
		for _, state := range states {
			nodes = append(nodes, api.PlanNode{Node: "a-" + state, State: state})
		}
		return nodes
	}
	for want, c := range map[string]struct {
		held  int
		nodes []api.PlanNode
	}{
		"drydock retry a-held --requestor plan-os | drydock done a-held --requestor plan-os | drydock cancel a-held --requestor plan-os --release": {1, page("failed", "held")},
		"drydock plan status os --state held": {1, page("waiting")},
		"":                                    {0, page("failed", "waiting")},
	} {
		p := api.Plan{Spec: &plan.Plan{Requestor: "plan-os"}, Nodes: c.nodes}
		p.Name, p.Counts = "os", &plan.Counts{Held: c.held}
		if got := strings.Join(nextOfHeld(p), " | "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAGangIsNamedWithoutItsRun(t *testing.T) {
	const run = "/01a21d32-8f6e-4c2b-9a6e-0a1b2c3d4e5f"
	for text, want := range map[string]string{
		"gang firmware" + run + " of 3 nodes goes once": "gang firmware of 3 nodes goes once",
		"gang bios" + run + " goes first":               "gang bios goes first",
		"pod default" + run + " stays":                  "pod default" + run + " stays",
	} {
		if got := At(time.Time{}).words(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
