package health

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func asJSON(t failer, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// quiet tells that a decision says nothing.
func quiet(d Decision) bool {
	return len(d.Begin)+len(d.Orders)+len(d.Events) == 0 && !d.Changed && !d.Ask
}

var someSpecs = []string{
	oneTemplate,
	oneTemplate + `,"maxUnhealthy":2,"stormCooldownDuration":"2m"`,
	escalating("1m", "3m", "1m") + `,"healthyDelay":"90s","flapping":{"within":"20m"}`,
	escalating("2m", "2m") + `,"minHealthy":"40%","healthyDelay":"-1s","stormCooldownDuration":"30s"`,
	oneTemplate + `,"minHealthy":0,"groups":{"by":["zone"],"maxUnhealthy":1},"unhealthyConditions":[{"type":"A","status":"B","duration":"1m"},{"type":"C","status":"D","duration":"4m"}]`,
}

// world is a cluster to which anything may happen.
type world struct {
	*cluster
	r *rapid.T
	// names are sorted, so that what is drawn is the same again.
	names []string
	// plain is the same check without restarts, told of facts in another order.
	plain State
	more  func(*Observation)
}

func newWorld(r *rapid.T) *world {
	s := specOf(r, rapid.SampledFrom(someSpecs).Draw(r, "spec"))
	w := &world{r: r, names: numbered(rapid.IntRange(1, 9).Draw(r, "nodes")), more: func(*Observation) {}}
	w.cluster = &cluster{t: r, spec: s, now: start, nodes: map[string]*Facts{}, running: map[string]*Progress{}}
	for i, name := range w.names {
		w.nodes[name] = &Facts{Name: name, UID: "uid-" + name, Group: string("ab"[i%2]), ControlPlane: i < 2}
	}
	w.step()
	w.see()
	return w
}

// step decides twice: with a state that was written and read, and without. Both have to say the same.
func (w *world) step() {
	w.r.Helper()
	var read State
	if err := json.Unmarshal([]byte(asJSON(w.r, w.state)), &read); err != nil {
		w.r.Fatal(err)
	}
	again := Decide(Input{Spec: w.spec, State: read, Now: w.now})
	before := asJSON(w.r, w.plain)
	d := Decide(Input{Spec: w.spec, State: w.plain, Now: w.now})
	if after := asJSON(w.r, w.plain); after != before {
		w.r.Fatalf("the input was changed from %s to %s", before, after)
	}
	if a, b := asJSON(w.r, again), asJSON(w.r, d); a != b {
		w.r.Fatalf("after a restart %s, without %s", a, b)
	}
	w.check(d)
	w.plain = d.State
	w.cluster.decide()
	w.checkWake(d)
}

// check holds a decision to what has to be true of every one.
func (w *world) check(d Decision) {
	w.r.Helper()
	for _, b := range d.Begin {
		if w.running[b.Node] != nil {
			w.r.Fatalf("%s is remediated already", b.Node)
		}
	}
	if len(d.Begin) > 0 {
		w.checkThresholds(d)
	}
	planes := 0
	for _, n := range d.State.Nodes {
		if n.Remediation != nil && n.ControlPlane {
			planes++
		}
	}
	if planes > 1 {
		w.r.Fatalf("%d control-plane nodes are remediated", planes)
	}
	for _, o := range d.Orders {
		n, _ := w.plain.Node(o.Node)
		if before := n.Remediation.Order; before.Healthy || o.Step < before.Step || o.Revision <= before.Revision {
			w.r.Fatalf("order %+v follows %+v", o, before)
		}
	}
	if next := Decide(Input{Spec: w.spec, State: d.State, Now: w.now}); !quiet(next) {
		w.r.Fatalf("%+v follows at once on %+v", next, d)
	}
}

// checkThresholds: of what was counted, as many stay healthy as have to, whatever is remediated.
func (w *world) checkThresholds(d Decision) {
	w.r.Helper()
	for _, g := range d.State.Seen.Groups {
		remediated, begins := 0, g.Group == ""
		for _, n := range d.State.Nodes {
			if n.Remediation != nil && !n.Left && (g.Group == "" || n.Group == g.Group) {
				remediated++
				begins = begins || slices.ContainsFunc(d.Begin, func(b Begin) bool { return b.Node == n.Name })
			}
		}
		least := w.spec.Required(g.Nodes)
		switch {
		case !begins || g.Group != "" && w.spec.Groups == nil:
			continue
		case g.Group != "":
			least = required(w.spec.Groups.MinHealthy, w.spec.Groups.MaxUnhealthy, g.Nodes)
		}
		if remediated > g.Nodes-least {
			w.r.Fatalf("%d of %d nodes of group %q are remediated, and %d have to be healthy: %+v", remediated, g.Nodes, g.Group, least, d)
		}
	}
}

// checkWake: before the wake nothing is said.
func (w *world) checkWake(d Decision) {
	w.r.Helper()
	until := d.Wake
	if until.IsZero() {
		until = w.now.Add(100 * time.Hour)
	}
	if !until.After(w.now) {
		w.r.Fatalf("the wake %s is not after %s", until, w.now)
	}
	span := until.Sub(w.now)
	for _, at := range []time.Time{until.Add(-1), w.now.Add(span / 2), w.now.Add(time.Duration(rapid.Int64Range(0, int64(span)-1).Draw(w.r, "instant")))} {
		if early := Decide(Input{Spec: w.spec, State: d.State, Now: at}); !quiet(early) {
			w.r.Fatalf("at %s, before the wake %s: %+v", at, d.Wake, early)
		}
	}
}

// see is an observation, of which two orders of facts say the same.
func (w *world) see() {
	w.r.Helper()
	w.seq++
	o := Observation{Revision: w.state.Revision, Watch: "w", Sequence: w.seq, Full: true, At: w.now}
	for _, group := range []string{"", "a", "b"} {
		g := GroupCount{Group: group}
		for _, name := range w.names {
			if f := w.nodes[name]; !f.Left && (group == "" || f.Group == group) {
				g.Nodes++
				if len(f.Matches) > 0 {
					g.Matching++
				}
			}
		}
		o.Groups = append(o.Groups, g)
	}
	for _, name := range w.names {
		if f := w.nodes[name]; len(f.Matches) > 0 || w.running[name] != nil {
			o.Nodes = append(o.Nodes, *f)
		}
	}
	w.more(&o)
	w.state.Observe(o)
	shuffled := o
	shuffled.Nodes, shuffled.Groups = slices.Clone(o.Nodes), slices.Clone(o.Groups)
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(w.r, "order"), 0))
	random.Shuffle(len(o.Nodes), func(i, j int) {
		shuffled.Nodes[i], shuffled.Nodes[j] = shuffled.Nodes[j], shuffled.Nodes[i]
	})
	random.Shuffle(len(o.Groups), func(i, j int) {
		shuffled.Groups[i], shuffled.Groups[j] = shuffled.Groups[j], shuffled.Groups[i]
	})
	w.plain.Observe(shuffled)
	w.step()
}

func (w *world) draw(what string, n int) int { return rapid.IntRange(0, n-1).Draw(w.r, what) }

func (w *world) node() *Facts { return w.nodes[w.names[w.draw("node", len(w.names))]] }

// someRunning is a remediation that runs, nil where none does.
func (w *world) someRunning() *Progress {
	var running []string
	for _, name := range w.names {
		if w.running[name] != nil {
			running = append(running, name)
		}
	}
	if len(running) == 0 {
		return nil
	}
	return w.running[running[w.draw("remediation", len(running))]]
}

func (w *world) tell(p *Progress) {
	told := *p
	told.Steps = slices.Clone(p.Steps)
	w.state.Report(told)
	told.Steps = slices.Clone(p.Steps)
	w.plain.Report(told)
	if p.Ended {
		delete(w.running, p.Node)
	}
	w.step()
}

// conditions change what a node has.
func (w *world) conditions() {
	f := w.node()
	f.Matches = nil
	for i := range w.draw("matches", 3) {
		f.Matches = append(f.Matches, Match{Index: i, Since: w.now.Add(-time.Duration(w.draw("age", 400)) * time.Second)})
	}
	f.Excluded, f.Exclude = w.draw("excluded", 8) == 0, rapid.SampledFrom([]string{"true", "", "false"}).Draw(w.r, "exclude")
	f.Confirmed, f.UnderMaintenance = w.draw("confirmed", 4) == 0, ""
	if w.draw("maintenance", 8) == 0 {
		f.UnderMaintenance = "node-maintenance/x/y"
	}
	f.Left, f.Gone = w.draw("left", 10) == 0, false
	if f.Left {
		f.Matches, f.Gone = nil, w.draw("gone", 2) == 0
	}
	w.see()
}

// remediations make objects, take orders, fail and end.
func (w *world) remediations() {
	p := w.someRunning()
	if p == nil {
		return
	}
	n, _ := w.state.Node(p.Node)
	order := n.Remediation.Order
	p.Revision, p.Step = order.Revision, order.Step
	switch w.draw("progress", 6) {
	case 0, 1:
		if p.step(p.Step) == nil {
			p.Steps = append(p.Steps, StepState{Index: p.Step, StartedAt: w.now, Resource: &Resource{Kind: "Reboot", Name: p.Node}})
		}
	case 2:
		if len(p.Steps) > 0 {
			p.Steps[len(p.Steps)-1].Succeeded = ptr(w.draw("succeeded", 2) == 0)
		}
	case 3:
		p.PermanentNodeDeletionExpected = !p.PermanentNodeDeletionExpected
	case 4:
		p.Ended = order.Healthy
	case 5:
		p.Ended = true
		if len(p.Steps) == 0 {
			p.LeaseHeldBy = "somebody"
		}
	}
	w.tell(p)
}

func TestAnythingMayHappen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			switch w.draw("what", 7) {
			case 0, 1:
				w.conditions()
			case 2:
				w.remediations()
			case 3:
				w.now = w.now.Add(time.Duration(w.draw("seconds", 400)) * time.Second)
				w.step()
			case 4:
				if wake := w.last.Wake; !wake.IsZero() {
					w.now = wake
				}
				w.step()
			case 5:
				w.pauseOrUpgrade()
			case 6:
				w.permits()
			}
		}
	})
}

func (w *world) pauseOrUpgrade() {
	switch w.draw("hold", 4) {
	case 0:
		for _, s := range []*State{&w.state, &w.plain} {
			if err := s.Pause("ops", "", w.now); err != nil {
				w.r.Fatal(err)
			}
		}
		w.step()
	case 1:
		_, _ = w.state.Resume("ops"), w.plain.Resume("ops") // nobody may have paused
		w.step()
	case 2:
		w.more = func(o *Observation) { o.Upgrading = "yes" }
		w.see()
	case 3:
		w.more = func(*Observation) {}
		w.see()
	}
}

// permits answers what is wanted, not always rightly.
func (w *world) permits() {
	permit := ""
	if wants := w.last.Intent.WantPermit; len(wants) > 0 {
		permit = wants[0]
	} else if w.draw("wrong", 3) == 0 {
		permit = w.names[0]
	}
	w.more = func(o *Observation) { o.Permit = permit }
	w.see()
	w.more = func(*Observation) {}
}

// TestNoTwoPermits lets intents and answers of two checks take their time, and remediations run as they like.
func TestNoTwoPermits(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		type check struct {
			*cluster
			intents []Contender
			news    []Observation
			seen    *Contender
		}
		var checks []*check
		for i := range 2 {
			c := &check{cluster: &cluster{t: r, spec: specOf(r, oneTemplate, `"minHealthy":0`, `"unhealthyConditions":[{"type":"A","status":"B","duration":"1s"}]`),
				now: start, nodes: map[string]*Facts{}, running: map[string]*Progress{}}}
			for j := range 3 {
				name := fmt.Sprintf("c%d-%d", i, j)
				c.nodes[name] = &Facts{Name: name, ControlPlane: true}
			}
			checks = append(checks, c)
		}
		out, now := Permitted{}, start
		said := func(i int) {
			if c := checks[i]; c.last.Changed {
				c.intents = append(c.intents, Contender{Name: fmt.Sprint(i), RunID: "r", CreatedAt: start, Revision: c.state.Revision,
					WantPermit: c.last.Intent.WantPermit, HoldPermit: c.last.Intent.HoldPermit})
			}
		}
		for i, c := range checks {
			c.decide()
			said(i)
		}
		for range rapid.IntRange(10, 80).Draw(r, "steps") {
			now = now.Add(time.Second)
			i := rapid.IntRange(0, 1).Draw(r, "check")
			c := checks[i]
			c.now = now
			name := fmt.Sprintf("c%d-%d", i, rapid.IntRange(0, 2).Draw(r, "node"))
			switch rapid.IntRange(0, 4).Draw(r, "what") {
			case 0: // the watch hears of an intent
				if len(c.intents) > 0 {
					c.seen, c.intents = &c.intents[0], c.intents[1:]
				}
			case 1: // the watch tells of the nodes, and of the permit
				var known []Contender
				for _, other := range checks {
					if other.seen != nil {
						known = append(known, *other.seen)
					}
				}
				if c.seen == nil {
					continue
				}
				out, _ = Permit(known, out, nil)
				c.seq++
				o := Observation{Revision: c.seen.Revision, Watch: "w", Sequence: c.seq, Full: true, At: now, Groups: []GroupCount{{Nodes: 3}}}
				if out.Check == c.seen.Name {
					o.Permit = out.Node
				}
				for _, f := range c.nodes {
					if len(f.Matches) > 0 || c.running[f.Name] != nil {
						o.Nodes = append(o.Nodes, *f)
					}
					if len(f.Matches) > 0 {
						o.Groups[0].Matching++
					}
				}
				c.news = append(c.news, o)
			case 2: // the check hears of it
				if len(c.news) > 0 {
					c.state.Observe(c.news[0])
					c.news = c.news[1:]
					c.decide()
					said(i)
				}
			case 3:
				f := c.nodes[name]
				if f.Matches = append(f.Matches, Match{Index: 0, Since: now.Add(-time.Minute)}); len(f.Matches) > 1 {
					f.Matches = nil
				}
			case 4:
				if c.running[name] != nil {
					c.end(name)
					said(i)
				}
			}
			if running := len(checks[0].running) + len(checks[1].running); running > 1 {
				r.Fatalf("%d control-plane nodes are remediated: %v and %v", running, checks[0].begun(), checks[1].begun())
			}
		}
	})
}

// TestOverlapLeavesNoNodeToTwoChecks: of the checks that may run, no two select one node, and each that is refused shares one.
func TestOverlapLeavesNoNodeToTwoChecks(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		checks := make([]Contender, rapid.IntRange(1, 5).Draw(r, "checks"))
		for i := range checks {
			checks[i] = Contender{Name: string(rune('a' + i)), CreatedAt: start.Add(time.Duration(rapid.IntRange(0, 3).Draw(r, "age")) * time.Second)}
		}
		var nodes []Membership
		for i := range rapid.IntRange(0, 8).Draw(r, "nodes") {
			m := Membership{Node: fmt.Sprint("n", i)}
			for _, c := range checks {
				if rapid.Bool().Draw(r, "selects") {
					m.Checks = append(m.Checks, c.Name)
				}
			}
			nodes = append(nodes, m)
		}
		refused := Overlap(checks, nodes)
		of := func(name string) bool {
			return slices.ContainsFunc(refused, func(r Refusal) bool { return r.Check == name })
		}
		for _, n := range nodes {
			if run := slices.DeleteFunc(slices.Clone(n.Checks), of); len(run) > 1 {
				r.Fatalf("%s is left to %v", n.Node, run)
			}
		}
		for _, one := range refused {
			if of(one.With) || !slices.ContainsFunc(nodes, func(m Membership) bool {
				return m.Node == one.Node && slices.Contains(m.Checks, one.Check) && slices.Contains(m.Checks, one.With)
			}) {
				r.Fatalf("%+v", one)
			}
		}
		slices.Reverse(checks)
		slices.Reverse(nodes)
		if again := Overlap(checks, nodes); !slices.Equal(again, refused) {
			r.Fatalf("in another order %+v, not %+v", again, refused)
		}
	})
}
