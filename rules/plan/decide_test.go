package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// fleet makes nodes out of "name/zone/state", in their order.
func fleet(written ...string) []plan.Node {
	var nodes []plan.Node
	for _, w := range written {
		parts := strings.Split(w, "/")
		n := plan.Node{Facts: plan.Facts{Name: parts[0]}}
		if len(parts) > 1 {
			n.Zone = parts[1]
		}
		if len(parts) > 2 {
			n.State = plan.State(parts[2])
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// forgiven is a fleet whose first node is forgiven.
func forgiven(written ...string) []plan.Node {
	nodes := fleet(written...)
	nodes[0].Forgiven = true
	return nodes
}

func one() plan.Strategy {
	return plan.Strategy{Type: plan.Rolling, MaxParallel: schedule.Count(1), MaxFailures: schedule.Count(0), Order: plan.ByName, OnBlocked: plan.WaitBlocked}
}

func with(change func(*plan.Strategy)) plan.Strategy {
	s := one()
	change(&s)
	return s
}

// told is a decision in words.
func told(d plan.Decision, nodes []plan.Node) string {
	var parts []string
	for _, i := range d.Start {
		parts = append(parts, "start "+nodes[i].Name)
	}
	if d.CanaryPassed {
		parts = append(parts, "canary passed")
	}
	if d.Pause != "" {
		parts = append(parts, "pause: "+d.Pause)
	}
	if d.End {
		parts = append(parts, "end")
	}
	if d.WaitsForApproval {
		parts = append(parts, "asks")
	}
	if d.Waits != "" {
		parts = append(parts, "waits for "+d.Waits)
	}
	if !d.Until.IsZero() {
		parts = append(parts, "until "+d.Until.Sub(noon).String())
	}
	if !d.Over.IsZero() {
		parts = append(parts, "over "+d.Over.Sub(noon).String())
	}
	return strings.Join(parts, ", ")
}

func TestDecisions(t *testing.T) {
	two := with(func(s *plan.Strategy) { s.MaxParallel = schedule.Count(2) })
	half := with(func(s *plan.Strategy) { s.MaxParallel = schedule.Percent(50) })
	zones := with(func(s *plan.Strategy) { s.MaxParallel, s.Order = schedule.Count(3), plan.ByZone })
	canary := with(func(s *plan.Strategy) {
		s.MaxParallel = schedule.Count(3)
		s.Canary = &plan.Canary{Nodes: 2, Soak: spec.Duration(time.Hour), Approval: true}
	})
	pausing := with(func(s *plan.Strategy) { s.PauseBetween = spec.Duration(5 * time.Minute) })
	lenient := with(func(s *plan.Strategy) { s.MaxFailures = schedule.Percent(50) })
	short := with(func(s *plan.Strategy) { s.BeginWithin, s.MaxParallel = spec.Duration(time.Hour), schedule.Count(2) })
	inTime, late := plan.Progress{CreatedAt: noon.Add(-time.Minute)}, plan.Progress{CreatedAt: noon.Add(-time.Hour)}
	back := fleet("a", "b")
	back[0].NotBefore = noon.Add(time.Minute).Unix()
	for name, c := range map[string]struct {
		strategy plan.Strategy
		nodes    []plan.Node
		progress plan.Progress
		want     string
	}{
		"the first":                     {one(), fleet("a", "b"), plan.Progress{}, "start a"},
		"one at a time":                 {one(), fleet("a//running", "b"), plan.Progress{}, ""},
		"two at a time":                 {two, fleet("a//running", "b", "c"), plan.Progress{}, "start b"},
		"a percentage":                  {half, fleet("a", "b", "c", "d", "e"), plan.Progress{}, "start a, start b, start c"},
		"a percentage of those matched": {half, fleet("a", "b", "c//gone", "d//gone"), plan.Progress{}, "start a"},
		"nothing left":                  {one(), fleet("a//done", "b//skipped", "c//gone"), plan.Progress{}, "end"},
		"nothing at all":                {one(), nil, plan.Progress{}, "end"},
		"a held node takes no place":    {lenient, fleet("a//held", "b"), plan.Progress{}, "start b"},
		"one that failed":               {one(), fleet("a//failed", "b"), plan.Progress{}, "pause: 1 node failed: maxFailures is 0"},
		"too many failed":               {lenient, fleet("a//failed", "b//held", "c//failed", "d"), plan.Progress{}, "pause: 3 nodes failed: maxFailures is 50%"},
		"forgiven":                      {one(), forgiven("a//failed", "b"), plan.Progress{}, "start b"},
		"forgiven, and another fails":   {one(), forgiven("a//failed", "b//failed", "c"), plan.Progress{}, "pause: 2 nodes failed: maxFailures is 0"},
		"paused":                        {one(), fleet("a", "b"), plan.Progress{Paused: true}, "waits for paused"},
		"all failed at the end":         {one(), fleet("a//failed"), plan.Progress{}, "end"},
		"a zone":                        {zones, fleet("a/1", "b/1", "c/2"), plan.Progress{}, "start a, start b"},
		"the last of a zone":            {zones, fleet("a/1/done", "b/1/running", "c/2"), plan.Progress{}, "waits for the last nodes of zone 1"},
		"the next zone":                 {zones, fleet("a/1/done", "b/1/done", "c/2"), plan.Progress{}, "start c"},
		"the canary":                    {canary, fleet("a", "b", "c"), plan.Progress{}, "start a, start b"},
		"half a canary":                 {canary, fleet("a//done", "b//running", "c"), plan.Progress{}, ""},
		"a canary that failed":          {canary, fleet("a//failed", "b//running", "c"), plan.Progress{}, "pause: 1 node failed: maxFailures is 0"},
		"more run than a canary has":    {canary, fleet("a//running", "b//running", "c//running", "d"), plan.Progress{}, ""},
		"a canary that soaks": {canary, fleet("a//done", "b//done", "c"), plan.Progress{LastEnd: noon.Add(-time.Minute)},
			"waits for the canary's soak, until 59m0s"},
		"a canary that waits": {canary, fleet("a//done", "b//done", "c"), plan.Progress{LastEnd: noon.Add(-time.Hour)},
			"asks, waits for approval after the canary"},
		"a canary that is approved": {canary, fleet("a//done", "b//done", "c"), plan.Progress{LastEnd: noon.Add(-time.Hour), Approved: true},
			"start c, canary passed"},
		"a pause between nodes": {pausing, fleet("a//done", "b"), plan.Progress{LastEnd: noon.Add(-time.Minute)},
			"waits for pauseBetween, until 4m0s"},
		"after the pause":                {pausing, fleet("a//done", "b"), plan.Progress{LastEnd: noon.Add(-time.Hour)}, "start b"},
		"a node that comes back later":   {one(), back, plan.Progress{}, "start b"},
		"before the time is over":        {short, fleet("a//running", "b"), inTime, "start b, over 59m0s"},
		"when the time is over":          {short, fleet("a//running", "b"), late, "waits for the last nodes: the time of beginWithin is over"},
		"the time is over, none is left": {short, fleet("a//running"), late, ""},
		"the time is over, none runs":    {short, fleet("a//done", "b"), late, "end"},
		"the time of a paused plan is over": {short, fleet("a//failed", "b"), plan.Progress{CreatedAt: late.CreatedAt, Paused: true},
			"end"},
		"nothing but one that does that": {one(), back[:1], plan.Progress{}, "waits for blocked nodes, which come back later, until 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := told(plan.Decide(c.strategy, c.nodes, c.progress, noon), c.nodes); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestAnyPlanKeepsItsPaceAndEnds plays random plans with random ends of their nodes.
func TestAnyPlanKeepsItsPaceAndEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := with(func(s *plan.Strategy) {
			s.MaxParallel = schedule.Count(rapid.IntRange(1, 5).Draw(t, "maxParallel"))
			s.MaxFailures = schedule.Count(rapid.IntRange(0, 3).Draw(t, "maxFailures"))
			s.Order = rapid.SampledFrom([]string{plan.ByName, plan.ByZone, plan.FewestPods}).Draw(t, "order")
			s.PauseBetween = spec.Duration(rapid.IntRange(0, 2).Draw(t, "pause")) * spec.Duration(time.Minute)
			if n := rapid.IntRange(0, 4).Draw(t, "canary"); n > 0 {
				s.Canary = &plan.Canary{Nodes: n, Soak: spec.Duration(rapid.IntRange(0, 9).Draw(t, "soak")) * spec.Duration(time.Minute)}
			}
		})
		var matching []plan.Facts
		for i := range rapid.IntRange(0, 20).Draw(t, "nodes") {
			matching = append(matching, plan.Facts{
				Name: fmt.Sprintf("n%02d", i), Zone: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "zone"), Pods: rapid.IntRange(0, 3).Draw(t, "pods"),
			})
		}
		g := &game{t: t, s: s, now: noon}
		g.nodes, _, _ = plan.Match(s.Order, nil, matching, noon)
		g.play()
		for _, n := range g.nodes {
			if !n.State.Over() {
				t.Fatalf("the plan is over, and %s is %s", n.Name, n.State.Word())
			}
		}
	})
}

type game struct {
	t     *rapid.T
	s     plan.Strategy
	nodes []plan.Node
	p     plan.Progress
	now   time.Time
	last  time.Time
}

func (g *game) play() {
	for range 2000 {
		d := plan.Decide(g.s, g.nodes, g.p, g.now)
		g.p.CanaryPassed = g.p.CanaryPassed || d.CanaryPassed
		switch {
		case d.End:
			return
		case d.Pause != "":
			plan.Forgive(g.nodes)
		case len(d.Start) > 0:
			g.start(d)
		case g.running() > 0:
			g.end()
		case !d.Until.IsZero():
			g.now = d.Until
		default:
			g.t.Fatalf("nothing runs and nothing is waited for: %q, %+v", told(d, g.nodes), g.nodes)
		}
	}
	g.t.Fatal("it does not end")
}

func (g *game) running() int { return plan.Count(g.nodes).Running }

func (g *game) start(d plan.Decision) {
	if pause := g.s.PauseBetween.Std(); pause > 0 && !g.last.IsZero() && g.now.Sub(g.last) < pause {
		g.t.Fatalf("a node is begun %s after the last end", g.now.Sub(g.last))
	}
	for _, i := range d.Start {
		if g.nodes[i].State != plan.Waiting {
			g.t.Fatalf("%s is begun, and it is %s", g.nodes[i].Name, g.nodes[i].State)
		}
		g.nodes[i].State = plan.Running
	}
	counts := plan.Count(g.nodes)
	if counts.Running > g.s.MaxParallel.Of(counts.Total) {
		g.t.Fatalf("%d run", counts.Running)
	}
	if c := g.s.Canary; c != nil && !g.p.CanaryPassed && counts.Running+counts.Done+counts.Failures() > c.Nodes {
		g.t.Fatalf("the canary has %d nodes: %+v", c.Nodes, counts)
	}
	if g.s.Order == plan.ByZone {
		var zones []string
		for _, n := range g.nodes {
			if n.State == plan.Running && !slices.Contains(zones, n.Zone) {
				zones = append(zones, n.Zone)
			}
		}
		if len(zones) > 1 {
			g.t.Fatalf("nodes of zones %q run at once", zones)
		}
	}
}

// end ends one of the nodes that run.
func (g *game) end() {
	which := rapid.IntRange(0, g.running()-1).Draw(g.t, "which")
	for i := range g.nodes {
		if g.nodes[i].State != plan.Running {
			continue
		}
		if which--; which >= 0 {
			continue
		}
		g.now = g.now.Add(time.Second)
		g.nodes[i].State = rapid.SampledFrom([]plan.State{plan.Done, plan.Done, plan.Failed, plan.Skipped, plan.Waiting}).Draw(g.t, "end")
		if g.nodes[i].State == plan.Waiting {
			g.nodes[i].NotBefore = g.now.Add(time.Minute).Unix()
		}
		g.p.LastEnd, g.last = g.now, g.now
		return
	}
}

// TestAServerIsAskedForNoMoreThanItTakes: 2,000 children of a run are its limit, whatever a percentage makes of many nodes.
func TestAServerIsAskedForNoMoreThanItTakes(t *testing.T) {
	var nodes []plan.Node
	for i := range plan.MaxNodes {
		nodes = append(nodes, plan.Node{Facts: plan.Facts{Name: fmt.Sprint("n", i)}})
	}
	all := with(func(s *plan.Strategy) { s.MaxParallel = schedule.Percent(100) })
	if n := len(plan.Decide(all, nodes, plan.Progress{}, noon).Start); n != plan.MaxAtOnce {
		t.Errorf("%d are begun", n)
	}
	for i := range plan.MaxAtOnce {
		nodes[i].State = plan.Running
	}
	if n := len(plan.Decide(all, nodes, plan.Progress{}, noon).Start); n > 0 {
		t.Errorf("%d more are begun", n)
	}
}

// TestForgivenFailuresAreThoseOfTheNodes: one that was repaired leaves no failure over for another node.
func TestForgivenFailuresAreThoseOfTheNodes(t *testing.T) {
	nodes := fleet("a//held", "b//running", "c")
	plan.Forgive(nodes)
	nodes[0].State, nodes[1].State = plan.Done, plan.Failed
	if d := plan.Decide(one(), nodes, plan.Progress{}, noon); d.Pause == "" {
		t.Errorf("it does not pause: %+v", d)
	}
}

func TestWhoIsForgivenStaysSo(t *testing.T) {
	nodes := fleet("a//held", "b")
	plan.Forgive(nodes)
	nodes[0].State = plan.Running
	plan.Forgive(nodes)
	nodes[0].State = plan.Failed // it was cancelled
	if d := plan.Decide(one(), nodes, plan.Progress{}, noon); d.Pause != "" {
		t.Errorf("it pauses: %s", d.Pause)
	}
}

func TestNodesComeAndGo(t *testing.T) {
	before := fleet("a//done", "b", "c//running", "d//gone")
	after, came, went := plan.Match(plan.ByName, before, []plan.Facts{{Name: "d"}, {Name: "e"}}, noon)
	var states []string
	for _, n := range after {
		states = append(states, n.Name+" "+n.State.Word())
	}
	want := []string{"a done", "b gone", "c running", "d waiting", "e waiting"}
	if !slices.Equal(states, want) || came != 2 || went != 1 {
		t.Errorf("%q, %d came, %d went; want %q", states, came, went, want)
	}
	if before[1].State != plan.Waiting {
		t.Error("the list before was changed")
	}
}

func TestWaves(t *testing.T) {
	s := with(func(s *plan.Strategy) {
		s.MaxParallel, s.Order, s.Canary = schedule.Count(2), plan.ByZone, &plan.Canary{Nodes: 1, Soak: spec.Duration(time.Hour), Approval: true}
	})
	got := fmt.Sprint(plan.Waves(s, fleet("d/2", "a/1", "c/1", "b/1", "e/2")))
	if want := "[[a] [b c] [d e]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func BenchmarkDecide(b *testing.B) {
	var nodes []plan.Node
	for i := range plan.MaxNodes {
		nodes = append(nodes, plan.Node{Facts: plan.Facts{Name: fmt.Sprintf("ip-10-0-%d.example.com", i), Zone: "zone-" + fmt.Sprint(i%3)}})
	}
	s := with(func(s *plan.Strategy) { s.MaxParallel, s.Order = schedule.Count(50), plan.ByZone })
	plan.Sort(s.Order, nodes)
	for b.Loop() {
		plan.Decide(s, nodes, plan.Progress{}, noon)
	}
}
