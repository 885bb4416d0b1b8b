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

// quiet reports that a decision says nothing.
func quiet(d Decision) bool {
	return len(d.Begin)+len(d.Orders)+len(d.Events) == 0 && !d.Anew
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
	// plain is the same check without restarts, announced of facts in another order.
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
	o := Observation{Full: true, At: w.now}
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

// someRunning is a remediation that runs, nil if none does.
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
	said := *p
	said.Steps = slices.Clone(p.Steps)
	w.state.Report(said)
	said.Steps = slices.Clone(p.Steps)
	w.plain.Report(said)
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
			p.LeaseHeldBy, p.Indispensable = "somebody", ""
			if w.draw("indispensable", 2) == 0 {
				p.LeaseHeldBy, p.Indispensable = "", "etcd's budget"
			}
		}
	}
	w.tell(p)
}

func TestAnythingMayHappen(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(r)
		for range rapid.IntRange(1, 30).Draw(r, "steps") {
			switch w.draw("what", 8) {
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
				w.overlaps()
			case 7:
				w.seeAnew()
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

// overlaps has another check select a node too, or not any more.
func (w *world) overlaps() {
	other := Overlap{}
	if w.draw("overlap", 2) == 0 {
		other = Overlap{Check: rapid.SampledFrom([]string{"elder", "eldest"}).Draw(w.r, "check"), Node: w.names[0]}
	}
	w.more = func(o *Observation) { o.Overlap = other }
	w.see()
	w.more = func(*Observation) {}
}

// seeAnew forgets what was seen, as after a reset: nothing is begun or ordered until the nodes are seen again.
func (w *world) seeAnew() {
	w.state.Forget()
	w.plain.Forget()
	w.step()
	if len(w.last.Begin)+len(w.last.Orders) > 0 {
		w.r.Fatalf("nothing is known of the nodes, and %+v", w.last)
	}
	if w.draw("seen", 2) == 0 {
		w.see()
	}
}

// TestPartsSayTheSame: what is announced in parts leaves the state that one observation of everything does.
func TestPartsSayTheSame(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var before State
		whole := Observation{Full: true, At: start, Groups: []GroupCount{{Nodes: 20}}}
		for i := range rapid.IntRange(0, 20).Draw(r, "nodes") {
			f := Facts{Name: fmt.Sprintf("n%02d", i), UID: "u", Matches: []Match{{Since: start}}}
			if rapid.Bool().Draw(r, "remediated") {
				before.Nodes = append(before.Nodes, Node{Facts: Facts{Name: f.Name}, Unseen: true, Remediation: &Running{Order: Order{Node: f.Name, Revision: 1}}})
			}
			if rapid.Bool().Draw(r, "named") {
				whole.Nodes = append(whole.Nodes, f)
			}
		}
		once, parts := before, before
		once.Observe(whole)
		rest := whole
		for rest.More = true; rest.More; rest.Full = false {
			part := rest
			most := rapid.IntRange(1, 5).Draw(r, "part")
			part.More = len(rest.Nodes) > most
			part.Nodes = rest.Nodes[:min(len(rest.Nodes), most)]
			rest.Nodes, rest.More = rest.Nodes[len(part.Nodes):], part.More
			if parts.Observe(part); parts.Seen.Known == part.More {
				r.Fatalf("known %t with more %t", parts.Seen.Known, part.More)
			}
		}
		if a, b := asJSON(r, once), asJSON(r, parts); a != b {
			r.Fatalf("at once %s, in parts %s", a, b)
		}
	})
}
