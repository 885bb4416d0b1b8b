package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	planactivity "drydock.dev/drydock/activities/plan"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type option func(*maintenancePlan)

// given is a plan of nodes n0, n1 and so on that is prepared, knows what runs, and has a fresh list.
func given(t testing.TB, input string, options ...option) *maintenancePlan {
	t.Helper()
	p, err := newPlan(controller.Info{WorkflowID: "maintenance-plan/kernel", Run: "run"}, []byte(input))
	if err != nil {
		t.Fatal(err)
	}
	p.Begin(now)
	p.Prepared, p.Known, p.Digest, p.ListedAt = &settings.Prepared{}, true, "d", now
	for _, o := range options {
		o(p)
	}
	return p
}

func in(stage string) string {
	return `{"all":true,"stage":"` + stage + `","strategy":{"type":"allAtOnce"}}`
}

// nodes are the states of n0, n1 and so on. One that runs, is held or ends has the run "r" and its name, one that is "begins" has none.
func nodes(states ...plan.State) option {
	return func(p *maintenancePlan) {
		for i, state := range states {
			n := plan.Node{Facts: plan.Facts{Name: fmt.Sprint("n", i)}, State: state}
			switch state {
			case plan.Running, plan.Held:
				n.RunID, n.Tries = "r"+n.Name, 1
			case "begins":
				n.State, n.Tries = plan.Running, 1
			case "ends":
				n.State, n.RunID = plan.Done, "r"+n.Name
			}
			p.Nodes = append(p.Nodes, n)
		}
	}
}

func begun(all ...planactivity.Begun) option {
	return func(p *maintenancePlan) { p.takeFound(all, now) }
}

func stale(p *maintenancePlan) { p.ListedAt = now.Add(-time.Minute) }

func stopped(p *maintenancePlan) { p.stop(api.PlanCancelled, "cancelled", now) }

// paced has somebody set another pace.
func paced(most int) option {
	return func(p *maintenancePlan) { _ = setPace{api.SetPace{MaxParallel: schedule.Count(most)}}.Apply(p, now) }
}

func unknown(p *maintenancePlan) { p.Known, p.MayRun = false, true }

// show is a decision in words, with the states of the nodes.
func show(d controller.Decision) string {
	var all []string
	name := func(k controller.Key) string { return strings.TrimSuffix(k.Kind+"/"+k.Of, "/") }
	for _, x := range d.Effects {
		all = append(all, name(controller.Came(x, nil).Key))
	}
	for _, w := range d.Watches {
		all = append(all, "watch "+name(w.Key))
	}
	if !d.Wake.IsZero() {
		all = append(all, "wake "+d.Wake.Sub(now).String())
	}
	if d.End != nil {
		all = append(all, "end")
	}
	return strings.Join(all, ", ")
}

func key(kind, of string) controller.Key { return controller.Key{Kind: kind, Of: of} }

func TestARollingPlanDecides(t *testing.T) {
	const (
		one  = `{"all":true}`
		two  = `{"all":true,"strategy":{"maxParallel":2,"maxFailures":5}}`
		two0 = `{"all":true,"strategy":{"maxParallel":2}}`
		rest = `{"all":true,"strategy":{"pauseBetween":"5m"}}`
	)
	const w, r, h, x, done = plan.Waiting, plan.Running, plan.Held, plan.Failed, plan.Done
	for name, c := range map[string]struct {
		input    string
		options  []option
		underWay []controller.Key
		want     string
		phase    api.PlanPhase
		states   string
	}{
		"asks the worker first":             {one, []option{func(p *maintenancePlan) { p.Prepared = nil }}, nil, "prepare", api.PlanRunning, ""},
		"lists its nodes first":             {one, []option{nodes(w, w), func(p *maintenancePlan) { p.Known, p.Digest = false, "" }}, nil, "list", api.PlanRunning, "waiting waiting"},
		"finds what runs before it begins":  {one, []option{nodes(w, w), func(p *maintenancePlan) { p.Known = false }}, nil, "find", api.PlanRunning, "waiting waiting"},
		"what runs is waited for meanwhile": {one, []option{nodes(r, w), unknown}, nil, "find, watch ends", api.PlanRunning, "running waiting"},
		"the first node begins":             {one, []option{nodes(w, w)}, nil, "begin/n0", api.PlanRunning, "running waiting"},
		"a start is not repeated":           {one, []option{nodes("begins", w)}, []controller.Key{key(beginNode, "n0")}, "", api.PlanRunning, "running waiting"},
		"a start that was refused is":       {one, []option{nodes("begins", w)}, nil, "begin/n0", api.PlanRunning, "running waiting"},
		"but not while its ID is taken":     {one, []option{nodes("begins", w), func(p *maintenancePlan) { p.Sought["n0"] = true }}, nil, "find", api.PlanRunning, "running waiting"},
		"on a list that is fresh":           {one, []option{nodes(w, w), stale}, nil, "list", api.PlanRunning, "waiting waiting"},
		"while all places are taken, none":  {one, []option{nodes(r, w), stale}, nil, "watch ends", api.PlanRunning, "running waiting"},
		"at another pace":                   {one, []option{nodes(r, w, w, w), paced(3)}, nil, "begin/n1, begin/n2, watch ends", api.PlanRunning, "running running running waiting"},
		"at a slower one, what runs stays":  {two, []option{nodes(r, r, w), paced(1)}, nil, "watch ends", api.PlanRunning, "running running waiting"},
		"and what has not begun waits":      {two, []option{nodes("begins", "begins", w), paced(1)}, nil, "begin/n0", api.PlanRunning, "running waiting waiting"},
		"but for a start under way":         {two, []option{nodes("begins", "begins", w), paced(1)}, []controller.Key{key(beginNode, "n1")}, "", api.PlanRunning, "waiting running waiting"},
		"a pause between":                   {rest, []option{nodes(done, w), func(p *maintenancePlan) { p.Progress.LastEnd = now }}, nil, "wake 5m0s", api.PlanRunning, "done waiting"},
		"a node that ends has no place":     {one, []option{nodes("ends", w)}, nil, "begin/n1, watch ends", api.PlanRunning, "done running"},
		"too many failures":                 {one, []option{nodes(x, w)}, nil, "", api.PlanPaused, "failed waiting"},
		"too many failures before a start":  {two0, []option{nodes(x, "begins", "begins", w)}, []controller.Key{key(beginNode, "n1")}, "", api.PlanPaused, "failed running waiting waiting"},
		"skipped, and waits":                {one, []option{nodes(w, w), func(p *maintenancePlan) { p.Skipping["n0"] = true }}, nil, "begin/n1", api.PlanRunning, "skipped running"},
		"skipped, and somebody else's": {
			one, []option{nodes("begins", w), func(p *maintenancePlan) { p.Sought["n0"] = true }, skips("n0"), begun(planactivity.Begun{Node: "n0", RunID: "r", Foreign: true}), func(p *maintenancePlan) { p.Sought = nil }},
			nil, "begin/n1", api.PlanRunning, "skipped running",
		},
		"paused before a start":               {two, []option{nodes("begins", "begins", w), func(p *maintenancePlan) { p.pause("by ann", now) }}, []controller.Key{key(beginNode, "n1")}, "", api.PlanPaused, "waiting running waiting"},
		"skipped before a start":              {two, []option{nodes("begins", "begins"), skips("n0")}, []controller.Key{key(beginNode, "n1")}, "", api.PlanRunning, "skipped running"},
		"skipped while it starts":             {two, []option{nodes("begins", r), skips("n0")}, []controller.Key{key(beginNode, "n0")}, "watch ends", api.PlanRunning, "running running"},
		"skipped while it runs":               {two, []option{nodes(r, r), skips("n0")}, nil, "order/n0, watch ends", api.PlanRunning, "running running"},
		"stopped":                             {two, []option{nodes("begins", r, h, w), stopped}, nil, "order/n1, watch ends", api.PlanRunning, "waiting running held waiting"},
		"stopped, and nothing runs":           {two, []option{nodes(done, h, w), stopped}, nil, "end", api.PlanCancelled, "done held waiting"},
		"stopped, a node ends":                {two, []option{nodes("ends", w), stopped}, nil, "watch ends", api.PlanRunning, "done waiting"},
		"stopped before it knows":             {two, []option{nodes(w), stopped, func(p *maintenancePlan) { p.Known, p.Digest = false, "" }}, nil, "end", api.PlanCancelled, "waiting"},
		"stopped after a reset":               {two, []option{nodes(w), stopped, unknown}, nil, "find", api.PlanRunning, "waiting"},
		"an end needs a fresh list":           {one, []option{nodes(done, done), stale}, nil, "list", api.PlanRunning, "done done"},
		"the end":                             {one, []option{nodes(done, done)}, nil, "end", api.PlanCompleted, "done done"},
		"the end, with failures":              {two, []option{nodes(done, h)}, nil, "end", api.PlanIncomplete, "done held"},
		"the end is recorded":                 {one, []option{nodes(done), func(p *maintenancePlan) { p.Prepared.Audited = true }}, nil, "record/audit-record/plan/kernel", api.PlanCompleted, "done"},
		"an earlier plan's takes a place":     {one, []option{nodes(w, w), begun(planactivity.Begun{Node: "n1", RunID: "r", Earlier: true})}, nil, "watch ends", api.PlanRunning, "waiting running"},
		"one with other settings too":         {one, []option{nodes(w, w), begun(planactivity.Begun{Node: "n1", RunID: "r", Earlier: true, Refused: "reason differs"})}, nil, "watch ends", api.PlanRunning, "waiting running"},
		"one of a node that is none":          {one, []option{nodes(w, w), begun(planactivity.Begun{Node: "x", RunID: "r", Earlier: true})}, nil, "begin/n0", api.PlanRunning, "running waiting"},
		"one of another requestor":            {one, []option{nodes(w, w), begun(planactivity.Begun{Node: "n1", RunID: "r", Earlier: true, Requestor: "ops"})}, nil, "begin/n0", api.PlanRunning, "running waiting"},
		"its own of a node that is none":      {one, []option{nodes(w), begun(planactivity.Begun{Node: "x", RunID: "r"})}, nil, "watch ends", api.PlanRunning, "waiting running"},
		"one that is somebody else's":         {one, []option{nodes("begins", w), begun(planactivity.Begun{Node: "n0", RunID: "r", Foreign: true})}, nil, "list", api.PlanRunning, "waiting waiting"},
		"found after a stop, it is cancelled": {one, []option{nodes(w), stopped, begun(planactivity.Begun{Node: "n0", RunID: "r"})}, nil, "order/n0, watch ends", api.PlanRunning, "running"},
		"one that is held pauses":             {one, []option{nodes(w, w), begun(planactivity.Begun{Node: "n1", RunID: "r", Held: true, Why: "disk"})}, nil, "watch ends", api.PlanPaused, "waiting held"},
	} {
		t.Run(name, func(t *testing.T) {
			p := given(t, c.input, c.options...)
			d := controllertest.Again(t, p, controller.At(now, c.underWay...), show)
			var states []string
			for _, n := range p.Nodes {
				states = append(states, n.State.Word())
			}
			if got := show(d); got != c.want || p.Phase != c.phase || strings.Join(states, " ") != c.states {
				t.Errorf("%q %s %q, want %q %s %q", got, p.Phase, states, c.want, c.phase, c.states)
			}
		})
	}
}

func TestAPlanThatDoesNotKnowWhatRunsSaysSo(t *testing.T) {
	p := given(t, `{"all":true}`, nodes(plan.Waiting), unknown)
	p.Decide(controller.At(now))
	if want := "a look at which of its maintenances run"; p.WaitingFor != want {
		t.Errorf("it waits for %q, want %q", p.WaitingFor, want)
	}
}

// skips has somebody skip a node.
func skips(node string) option {
	return func(p *maintenancePlan) { skip{api.NodeOfPlan{Node: node}}.Apply(p, now) }
}

func staging(change func(*staged)) option { return func(p *maintenancePlan) { change(p.Staged) } }

func TestAStagedPlanDecides(t *testing.T) {
	const w, r, done = plan.Waiting, plan.Running, plan.Done
	answered := staging(func(s *staged) {
		s.Sent, s.Answered, s.Taken = true, s.Revision, len(s.Begun)
	})
	to := func(stage api.Stage) option {
		return func(p *maintenancePlan) { p.enterStage(stage, api.Message{}, now); p.ListedAt = now }
	}
	for name, c := range map[string]struct {
		stage   string
		options []option
		want    string
		phase   api.PlanPhase
	}{
		"Idle":                              {"Idle", []option{nodes(w)}, "", api.PlanRunning},
		"Idle, with no list":                {"Idle", []option{func(p *maintenancePlan) { p.Digest = "" }}, "list", api.PlanRunning},
		"Idle, and asked":                   {"Idle", []option{nodes(w), staging(func(s *staged) { s.Asked++ })}, "intent/0/1", api.PlanRunning},
		"Idle, chosen otherwise":            {"Idle", []option{nodes(w), func(p *maintenancePlan) { p.Digest = matchAgain }}, "list", api.PlanRunning},
		"Idle, cancelled":                   {"Idle", []option{nodes(w), stopped}, "end", api.PlanCancelled},
		"Cordon looks first":                {"Cordon", []option{nodes(w), func(p *maintenancePlan) { p.ListedAt = time.Time{} }}, "list", api.PlanRunning},
		"Cordon":                            {"Cordon", []option{nodes(w)}, "intent/1/0, watch nodes", api.PlanRunning},
		"Cordon, answered":                  {"Cordon", []option{nodes(r), answered}, "intent/1/0, watch nodes", api.PlanRunning},
		"Drain after it looks first":        {"Cordon", []option{nodes(r), answered, func(p *maintenancePlan) { p.enterStage(plan.Drain, api.Message{}, now) }}, "list", api.PlanRunning},
		"Drain":                             {"Cordon", []option{nodes(r), answered, to(plan.Drain)}, "intent/2/0, watch nodes", api.PlanRunning},
		"Drain, cancelled":                  {"Drain", []option{nodes(r), answered, stopped}, "intent/2/0", api.PlanRunning},
		"Complete":                          {"Drain", []option{nodes(r), answered, to(plan.Complete)}, "intent/2/0", api.PlanRunning},
		"Complete, and given back":          {"Drain", []option{nodes(done), answered, to(plan.Complete), staging(func(s *staged) { s.Released = true })}, "end", api.PlanCompleted},
		"Complete, nothing was ever sent":   {"Idle", []option{nodes(w), to(plan.Complete)}, "end", api.PlanCompleted},
		"Complete, something may have been": {"Drain", []option{nodes(w), staging(func(s *staged) { s.Sent = true }), to(plan.Complete)}, "intent/2/0", api.PlanRunning},
		"after a reset":                     {"Drain", []option{nodes(r), answered, func(p *maintenancePlan) { p.Reset(now) }}, "find, list", api.PlanRunning},
		"after a reset, with a list":        {"Drain", []option{nodes(r), answered, func(p *maintenancePlan) { p.Reset(now); p.Known, p.ListedAt = true, now }}, "intent/1048578/1, watch nodes", api.PlanRunning},
		"what an earlier plan began":        {"Idle", []option{nodes(w), begun(planactivity.Begun{Node: "n0", RunID: "r", Earlier: true})}, "", api.PlanRunning},
	} {
		t.Run(name, func(t *testing.T) {
			p := given(t, in(c.stage), c.options...)
			if got := show(controllertest.Again(t, p, controller.At(now), show)); got != c.want || p.Phase != c.phase {
				t.Errorf("%q %s, want %q %s", got, p.Phase, c.want, c.phase)
			}
		})
	}
}

// TestWhatAnEarlierPlanHasBegunIsSaid: in the status, for each node and in the events, of which the audit record is made too.
func TestWhatAnEarlierPlanHasBegunIsSaid(t *testing.T) {
	p := given(t, `{"all":true,"strategy":{"maxParallel":3}}`, nodes("", "", ""), begun(
		planactivity.Begun{Node: "n0", RunID: "r0", Earlier: true}, planactivity.Begun{Node: "n1", RunID: "r1", Earlier: true, Refused: "drain.force differs"},
		planactivity.Begun{Node: "x", RunID: "r2", Earlier: true}))
	p.Decide(controller.At(now))
	status, err := p.page(api.PlanStatusRequest{})
	if err != nil {
		t.Fatal(err)
	}
	notes := map[string]string{}
	for _, n := range status.Nodes {
		notes[n.Node] = n.Note
	}
	if !strings.Contains(notes["n0"], "is adopted") || !strings.Contains(notes["n1"], "drain.force differs: it is begun anew when that has ended") {
		t.Errorf("%+v", notes)
	}
	var said []string
	for _, e := range api.RecordOfPlan(status, "").Phases {
		said = append(said, e.Message)
	}
	for _, want := range []string{
		"adopted from an earlier plan of this name, because the settings are the same: the maintenances of n0",
		"not adopted from an earlier plan of this name, because the settings differ: their end is waited for: the maintenances of n1",
		"left alone, because an earlier plan of this name has begun them for other nodes, or another requestor: the maintenances of x",
	} {
		if !slices.Contains(said, want) {
			t.Errorf("it says %q, not %q", said, want)
		}
	}
	// The end of what it has adopted counts, that of what it refuses has the node begun anew.
	for name, run := range map[string]string{"n0": "r0", "n1": "r1"} {
		p.nodeEnded(name, planactivity.Ended{Execution: planactivity.Execution{RunID: run}, Phase: api.Completed}, now)
	}
	if p.node("n0").State != plan.Done || p.node("n1").State != plan.Waiting || p.node("n1").Tries != 0 || len(p.Refused) > 0 {
		t.Errorf("%+v, %v", p.Nodes, p.Refused)
	}
}

// starts are the starts of a decision.
func starts(p *maintenancePlan) (all []controller.Start) {
	for _, x := range p.Decide(controller.At(now)).Effects {
		if s, ok := x.(controller.Start); ok {
			all = append(all, s)
		}
	}
	return all
}

func outcome(begun, result any, err error) controller.Outcome {
	o := controller.Came(begun, result)
	o.Err = err
	return o
}

func TestAStartThatComesToSomethingElse(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		state  plan.State
		sought bool
	}{
		"another runs under its ID": {serviceerror.NewWorkflowExecutionAlreadyStarted("it runs", "", ""), plan.Running, true},
		"it cannot be begun":        {errors.New("no such type"), plan.Failed, false},
	} {
		p := given(t, `{"all":true,"strategy":{"maxFailures":1}}`, nodes("", ""))
		p.Outcome(outcome(starts(p)[0], nil, c.err), now)
		if n := p.node("n0"); n.State != c.state || p.Sought["n0"] != c.sought {
			t.Errorf("%s: %+v, sought %v", name, n, p.Sought)
		}
	}
}

// TestANodeThatIsSkippedIsNotDrainedAgain: neither where its drain was blocked meanwhile, nor where its start was under way.
func TestANodeThatIsSkippedIsNotDrainedAgain(t *testing.T) {
	for _, strategy := range []string{`{"onBlocked":"skip"}`, `{"onBlocked":"abort"}`} {
		p := given(t, `{"all":true,"strategy":`+strategy+`}`, nodes(plan.Running), skips("n0"))
		p.nodeEnded("n0", planactivity.Ended{Execution: planactivity.Execution{RunID: "rn0"}, Phase: api.Failed, Kind: api.ErrorNotDrained, Message: "blocked"}, now)
		if n := p.node("n0"); n.State != plan.Skipped || len(p.Skipping) > 0 || p.Stop != "" {
			t.Errorf("%s: %+v, %v, %s", strategy, n, p.Skipping, p.Stop)
		}
	}
	p := given(t, `{"all":true}`, nodes("", ""))
	o := outcome(starts(p)[0], nil, nil)
	o.Run = "r"
	p.Skipping["n0"] = true
	p.Outcome(o, now)
	if got := show(p.Decide(controller.At(now))); got != "order/n0, watch ends" {
		t.Error(got)
	}
}

func TestAPaceThatIsNoneIsRefused(t *testing.T) {
	rolling, staged := given(t, `{"all":true,"strategy":{"maxParallel":2}}`), given(t, in("Drain"))
	for name, c := range map[string]struct {
		p    *maintenancePlan
		most schedule.Amount
		want string
	}{
		"none":            {rolling, schedule.Amount{}, "maxParallel: is missing"},
		"no node":         {rolling, schedule.Count(0), "plan pause"},
		"the one it has":  {rolling, schedule.Count(2), "at a time already"},
		"another":         {rolling, schedule.Percent(10), ""},
		"without a limit": {rolling, schedule.Unlimited(), ""},
		"of a staged one": {staged, schedule.Count(1), "allAtOnce"},
	} {
		err := setPace{api.SetPace{MaxParallel: c.most}}.Check(c.p, now)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	paced(5)(rolling)
	status, err := rolling.page(api.PlanStatusRequest{})
	if shown := status.Plan.Strategy.MaxParallel; err != nil || shown != schedule.Count(5) || rolling.spec.Strategy.MaxParallel != schedule.Count(2) {
		t.Errorf("shows %s: %v", shown, err)
	}
	if e := status.Events; len(e) != 1 || e[0].Message != "5 at a time instead of 2" {
		t.Errorf("the pace before is not said: %+v", e)
	}
}

// TestACancelledNodeHasNotFailed, unless it waited for a decision.
func TestACancelledNodeHasNotFailed(t *testing.T) {
	for before, want := range map[plan.State]plan.State{plan.Running: plan.Skipped, plan.Held: plan.Failed} {
		p := given(t, `{"all":true}`, nodes(before, ""))
		p.nodeEnded("n0", planactivity.Ended{Execution: planactivity.Execution{RunID: "rn0"}, Phase: api.Cancelled, Message: "cancelled by amy"}, now)
		if n := p.node("n0"); n.State != want || n.Note != "cancelled by amy" {
			t.Errorf("%s: %+v, want %s", before, n, want)
		}
	}
}

// TestANodeWhoseIDIsTakenIsLookedAt, and what it says of itself meanwhile counts.
func TestANodeWhoseIDIsTakenIsLookedAt(t *testing.T) {
	p := given(t, `{"all":true}`, nodes("begins", ""), func(p *maintenancePlan) { p.Sought["n0"] = true })
	find := p.Decide(controller.At(now)).Effects[0]
	if in := find.(controller.Activity).Input.(planactivity.FindInput); len(in.Nodes) != 1 || in.Nodes[0] != "n0" || string(in.Maintenance) != `{"node":"any","requestor":"plan-kernel"}` {
		t.Errorf("%+v", in)
	}
	early := nodeNews{api.NodeNews{Node: "n0", RunID: "r", Held: true, Why: "disk"}}
	if err := early.Check(p, now); err != nil {
		t.Fatal(err)
	}
	early.Apply(p, now)
	p.Outcome(outcome(find, api.List[planactivity.Begun]{{Node: "n0", RunID: "r"}}, nil), now)
	p.Decide(controller.At(now))
	if n := p.node("n0"); n.RunID != "r" || n.State != plan.Held || n.Note != "disk" || len(p.Early)+len(p.Sought) > 0 || p.Phase != api.PlanPaused {
		t.Errorf("%+v, %s", n, p.Phase)
	}
	p = given(t, `{"all":true}`, nodes("begins", ""), func(p *maintenancePlan) { p.Sought["n0"] = true })
	p.Outcome(outcome(p.Decide(controller.At(now)).Effects[0], api.List[planactivity.Begun]{}, nil), now) // it has just ended
	if got := show(p.Decide(controller.At(now))); got != "begin/n0" {
		t.Error(got)
	}
}

// TestAnInputThatCannotBeMadeFailsItsNode, and not the plan.
func TestAnInputThatCannotBeMadeFailsItsNode(t *testing.T) {
	p := given(t, `{"all":true,"strategy":{"maxParallel":2,"maxFailures":1}}`, nodes("", "", ""))
	p.spec.Maintenance = []byte(`{"drain":`)
	d := controllertest.Again(t, p, controller.At(now), show)
	if n := p.node("n0"); n.State != plan.Failed || !strings.Contains(n.Note, "has no input") || p.Phase != api.PlanPaused || show(d) != "" {
		t.Errorf("%+v, %s, %s", n, p.Phase, show(d))
	}
}

// TestWhatAPlanLooksUpLetsGo: where nothing answers, the plan ends and continues as new all the same. Large fleets take their time.
func TestWhatAPlanLooksUpLetsGo(t *testing.T) {
	p := given(t, `{"all":true}`, unknown, func(p *maintenancePlan) { p.Digest = "" })
	for _, x := range p.Decide(controller.At(now)).Effects {
		switch c := x.(controller.Activity).Call; controller.Came(x, nil).Key.Kind {
		case findBegun:
			if c.Heartbeat == 0 || c.Attempts == 0 || c.Within < 5*time.Minute || c.Within > time.Hour {
				t.Errorf("find: %+v", c)
			}
		case listNodes:
			if c.Heartbeat != 0 || c.Within < time.Minute || c.Within > 5*time.Minute {
				t.Errorf("list: %+v", c)
			}
		}
	}
}

func TestALookUpFromBeforeAResetDoesNotCount(t *testing.T) {
	p := given(t, `{"all":true}`, nodes(""), unknown)
	o := outcome(p.Decide(controller.At(now)).Effects[0], api.List[planactivity.Begun]{}, nil)
	o.Stale = true
	if p.Outcome(o, now); p.Known {
		t.Error("it counts")
	}
	o.Stale = false
	if p.Outcome(o, now); !p.Known {
		t.Error("it does not count")
	}
}

// TestARetryBehindAResetCounts: it is applied again before the plan has found that its node has failed. One that was followed by another
// maintenance, which runs, has had its effect.
func TestARetryBehindAResetCounts(t *testing.T) {
	const failed, again, running = "begin/n0", "order/n0, watch ends", "watch ends"
	for name, c := range map[string]struct {
		state plan.State
		found planactivity.Begun
		end   planactivity.Ended
		want  string
	}{
		"it has failed":                {plan.Running, planactivity.Begun{RunID: "rn0", Ended: true}, planactivity.Ended{Phase: api.Failed}, failed},
		"it was not begun by then":     {plan.Waiting, planactivity.Begun{RunID: "r1", Ended: true}, planactivity.Ended{Phase: api.Failed}, failed},
		"it waits for a decision":      {plan.Running, planactivity.Begun{RunID: "rn0", Held: true}, planactivity.Ended{}, again},
		"it is completed":              {plan.Running, planactivity.Begun{RunID: "r1", Ended: true}, planactivity.Ended{Phase: api.Completed}, "end"},
		"another maintenance runs":     {plan.Running, planactivity.Begun{RunID: "r1"}, planactivity.Ended{}, running},
		"and that fails too, later on": {plan.Running, planactivity.Begun{RunID: "r1"}, planactivity.Ended{Phase: api.Failed}, "end"},
	} {
		t.Run(name, func(t *testing.T) {
			p := given(t, `{"all":true}`, nodes(c.state))
			p.Reset(now)
			m := retry{api.NodeOfPlan{Node: "n0"}}
			if err := m.Check(p, now); err != nil {
				t.Fatal(err)
			}
			m.Apply(p, now)
			p.ListedAt = now
			c.found.Node = "n0"
			p.Outcome(outcome(p.Decide(controller.At(now)).Effects[0], api.List[planactivity.Begun]{c.found}, nil), now)
			p.Decide(controller.At(now))
			if c.end.RunID = c.found.RunID; c.end.Phase != "" {
				p.nodeEnded("n0", c.end, now)
			}
			if p.Digest == matchAgain {
				p.Digest = "d" // it still matches
			}
			if got := show(p.Decide(controller.At(now))); got != c.want {
				t.Errorf("%q, want %q: %+v", got, c.want, p.Nodes)
			}
			if len(p.LateRetries) > 0 {
				t.Errorf("%v is left", p.LateRetries)
			}
		})
	}
	p := given(t, `{"all":true}`, nodes(plan.Running))
	if err := (retry{api.NodeOfPlan{Node: "n0"}}).Check(p, now); err == nil {
		t.Error("a node that runs is begun anew in a plan that was not reset")
	}
}

// TestAMaintenanceThatWasTerminatedMayHaveBeenReset: it is waited for, and cancelled again where it is to end.
func TestAMaintenanceThatWasTerminatedMayHaveBeenReset(t *testing.T) {
	p := given(t, `{"all":true}`, nodes(""))
	start := starts(p)[0]
	o := outcome(start, nil, nil)
	o.Run = "r"
	p.Outcome(o, now)
	p.stop(api.PlanCancelled, "cancelled", now)
	order := p.Decide(controller.At(now)).Effects[0]
	p.Outcome(outcome(order, nil, nil), now)
	if got := show(p.Decide(controller.At(now))); got != "watch ends" {
		t.Error(got)
	}
	o.What, o.Err = controller.Terminated, &temporal.TerminatedError{}
	p.Outcome(o, now)
	if got := show(p.Decide(controller.At(now))); got != "order/n0, watch ends" {
		t.Error(got)
	}
}

func TestAPlanWhoseNodesCanNeverBeListedIsAborted(t *testing.T) {
	p := given(t, `{"all":true}`, func(p *maintenancePlan) { p.Digest = "" })
	list := p.Decide(controller.At(now)).Effects[0]
	p.Outcome(outcome(list, nil, temporal.NewNonRetryableApplicationError("15,001 nodes match", api.ErrorInvalidSpec, nil)), now)
	if d := p.Decide(controller.At(now)); d.End == nil || d.End.Err == nil || p.Phase != api.PlanAborted {
		t.Errorf("%s: %+v", p.Phase, d)
	}
}

// TestAListOfOtherNodesDoesNotCount: they were chosen otherwise while they were listed.
func TestAListOfOtherNodesDoesNotCount(t *testing.T) {
	p := given(t, in("Idle"), func(p *maintenancePlan) { p.Digest = "" })
	list := p.Decide(controller.At(now)).Effects[0]
	setSelector{api.SetSelector{Selection: plan.Selection{Selector: "a=b"}}}.Apply(p, now)
	listed := planactivity.Listed{Digest: "new", Nodes: []plan.Facts{{Name: "a"}}}
	if p.Outcome(outcome(list, listed, nil), now); len(p.Nodes) > 0 {
		t.Errorf("%+v", p.Nodes)
	}
	if p.Outcome(outcome(p.Decide(controller.At(now)).Effects[0], listed, nil), now); len(p.Nodes) != 1 {
		t.Errorf("%+v", p.Nodes)
	}
}

// TestAQuestionThatComesWhileTheIntentIsUnderWayIsAnswered: what is under way may have arrived before.
func TestAQuestionThatComesWhileTheIntentIsUnderWayIsAnswered(t *testing.T) {
	p := given(t, in("Idle"), nodes(""))
	ask := progress{api.PlanProgress{RunID: "run", Repeat: true}}
	ask.Apply(p, now)
	intent := p.Decide(controller.At(now)).Effects[0]
	ask.Apply(p, now)
	p.Outcome(outcome(intent, nil, nil), now)
	again := p.Decide(controller.At(now)).Effects
	if len(again) != 1 || controller.Came(again[0], nil).Key == controller.Came(intent, nil).Key {
		t.Fatalf("%+v", again)
	}
	if p.Outcome(outcome(again[0], nil, nil), now); len(p.Decide(controller.At(now)).Effects) > 0 {
		t.Error("it goes on answering")
	}
}

// TestANodeThatWaitsSaysWhatItsPlanWaitsFor: the lockstep sends that once for all of them.
func TestANodeThatWaitsSaysWhatItsPlanWaitsFor(t *testing.T) {
	p := given(t, in("Drain"), nodes("", ""))
	say := func(waitsFor string, nodes ...api.SharedProgress) string {
		progress{api.PlanProgress{RunID: "run", Revision: p.Staged.Revision, WaitsFor: waitsFor, Nodes: nodes}}.Apply(p, now)
		page, err := p.page(api.PlanStatusRequest{})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(page.Nodes, func(n api.PlanNode) bool { return n.Node == "n0" })
		return page.Nodes[i].Note
	}
	waits := api.SharedProgress{Node: "n0", Phase: api.Ready, Drained: true, Message: drainplan.Waiting}
	if got := say("Waiting for node n1.", waits); got != "Waiting for node n1." {
		t.Errorf("it says %q", got)
	}
	if got := say("Waiting for node n7 (other)."); got != "Waiting for node n7 (other)." {
		t.Errorf("then it says %q", got)
	}
	if got := say(""); got != drainplan.Waiting {
		t.Errorf("at last it says %q", got)
	}
}

// TestNothingIsBegunWhenThePlanIsLate has a node chosen and not begun, and one that failed, when the time of beginWithin is over.
func TestNothingIsBegunWhenThePlanIsLate(t *testing.T) {
	p := given(t, `{"all":true,"strategy":{"beginWithin":"1h","maxParallel":3,"maxFailures":3}}`, nodes(plan.Running, plan.Failed, plan.Held))
	p.CreatedAt, p.Nodes[0].RunID = now.Add(-time.Hour), ""
	for node, want := range map[string]bool{"n1": false, "n2": true} {
		if err := (retry{api.NodeOfPlan{Node: node}}).Check(p, now); (err == nil) != want {
			t.Errorf("retry of %s: %v", node, err)
		}
	}
	if got := show(p.Decide(controller.At(now))); p.Nodes[0].State != plan.Waiting || strings.Contains(got, "begin/") {
		t.Errorf("%q: %+v", got, p.Nodes)
	}
	if want := "1 of 3 nodes were left when the time of beginWithin, 1h0m0s, was over; 2 failed"; p.Phase != api.PlanIncomplete || p.Failure != want {
		t.Errorf("it is %s: %q, want %q", p.Phase, p.Failure, want)
	}
}
