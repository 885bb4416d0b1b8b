package profile

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/profile/state"
)

// drawMachine is a configuration in which every way into maintenance goes by limit.
func drawMachine(r *rapid.T, limit string) string {
	check := rapid.SampledFrom([]string{"a", "b", "!a", "a || b", "a && !c", "stagger", "err || a", "!(b && c)"})
	list := func(what string, names ...string) string {
		return rapid.SampledFrom(append([]string{"''"}, names...)).Draw(r, what)
	}
	text := ""
	for _, name := range []string{"p", "q", "default"} {
		text += "- name: " + name + "\n"
		for _, s := range state.All() {
			text += fmt.Sprintf("  %s:\n    enter: %s\n    notify: %s\n    transitions:\n", s, list("enter", "t", "t && u"), list("notify", "say", "once", "say && once"))
			for range rapid.IntRange(0, 3).Draw(r, "transitions") {
				next, chain := rapid.SampledFrom(state.All()).Draw(r, "next"), check.Draw(r, "check")
				if next == state.Maintenance {
					chain = limit + " && (" + chain + ")"
				}
				text += fmt.Sprintf("    - {check: '%s', trigger: %s, next: %s}\n", chain, list("trigger", "t", "u"), next)
			}
		}
	}
	return machine(text)
}

// world is a cluster to which anything may happen; what was begun ends at any time later.
type world struct {
	*cluster
	r     *rapid.T
	begun []func()
}

func drawWorld(r *rapid.T, limit string) *world {
	c, err := Load([]byte(drawMachine(r, limit)), environment())
	if err != nil {
		r.Fatal(err)
	}
	w := &world{cluster: &cluster{config: c, now: now}, r: r}
	for i := range rapid.IntRange(1, 6).Draw(r, "nodes") {
		w.nodes = append(w.nodes, newNode(fmt.Sprintf("n%d", i), w.label()))
	}
	return w
}

func (w *world) label() string {
	return rapid.SampledFrom([]string{"", "p", "q", "p--q", "q--p", "p--gone", "default--p"}).Draw(w.r, "label")
}

func (w *world) anyNode() Node { return w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(w.r, "node")] }

// evaluate decides, writes, and begins what is to be done.
func (w *world) evaluate() {
	for _, e := range w.decide() {
		w.write(e)
		for _, p := range e.Profiles {
			if p.Move == nil && len(p.Enter) == 0 {
				continue
			}
			busy := Busy{To: p.State, Enter: true}
			if p.Move != nil {
				busy = Busy{To: p.Move.To}
			}
			w.node(e.Node).Busy[p.Profile] = busy
			w.begun = append(w.begun, func() { w.finish(e.Node, p) })
		}
	}
}

func (w *world) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"evaluate": func(*rapid.T) { w.evaluate() },
		"finish": func(r *rapid.T) {
			if len(w.begun) == 0 {
				r.Skip()
			}
			i := rapid.IntRange(0, len(w.begun)-1).Draw(r, "which")
			w.begun[i]()
			w.begun = slices.Delete(w.begun, i, i+1)
		},
		"annotate": func(r *rapid.T) {
			n, key := w.anyNode(), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "key")
			if _, there := n.Object.Annotations[key]; there {
				delete(n.Object.Annotations, key)
			} else {
				n.Object.Annotations[key] = ""
			}
		},
		"time": func(r *rapid.T) {
			w.now = w.now.Add(time.Duration(rapid.IntRange(1, 5000).Draw(r, "seconds")) * time.Second)
		},
	}
}

// inMaintenance are the profiles of a node that are there, or on their way.
func (w *world) inMaintenance(n Node) []string {
	var in []string
	for name, p := range w.data(n.Object.Name).Profiles {
		if p.Current == state.Maintenance {
			in = append(in, name)
		}
	}
	for name, busy := range n.Busy {
		if busy.To == state.Maintenance && !slices.Contains(in, name) {
			in = append(in, name)
		}
	}
	return in
}

func TestNeverTwoProfilesOfANodeInMaintenance(t *testing.T) {
	seen := 0
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, "(a || b || !c)")
		actions := w.actions()
		actions[""] = func(r *rapid.T) {
			for _, n := range w.nodes {
				in := w.inMaintenance(n)
				seen = max(seen, len(in))
				if len(in) > 1 {
					r.Fatalf("%s: %v", n.Object.Name, in)
				}
			}
		}
		r.Repeat(actions)
	})
	if seen == 0 {
		t.Error("no node was ever in maintenance")
	}
}

func TestTheLimitHoldsAtEveryInstant(t *testing.T) {
	seen := 0
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, "one")
		actions := w.actions()
		// Labels of profiles may change, of nodes that are not in maintenance: whoever takes a label away ends a maintenance.
		actions["relabel"] = func(r *rapid.T) {
			n := w.anyNode()
			if len(w.inMaintenance(n)) > 0 || len(n.Busy) > 0 {
				r.Skip()
			}
			n.Object.Labels[state.ProfileLabel] = w.label()
		}
		actions[""] = func(r *rapid.T) {
			var in []string
			for _, n := range w.nodes {
				if len(w.inMaintenance(n)) > 0 {
					in = append(in, n.Object.Name)
				}
			}
			seen = max(seen, len(in))
			if len(in) > 1 {
				r.Fatalf("%v", in)
			}
		}
		r.Repeat(actions)
	})
	if seen == 0 {
		t.Error("no node was ever in maintenance")
	}
}

func TestTheDecisionIsThatOfAnyOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, "one")
		r.Repeat(w.actions())
		want, err := json.Marshal(w.decide())
		if err != nil {
			r.Fatal(err)
		}
		w.nodes = rapid.Permutation(w.nodes).Draw(r, "order")
		got, err := json.Marshal(w.decide())
		if err != nil || string(got) != string(want) {
			r.Fatalf("%s\nand not\n%s", got, want)
		}
	})
}

func TestDecidingChangesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, "one")
		r.Repeat(w.actions())
		before, err := json.Marshal([]any{w.nodes, fmt.Sprint(w.facts)})
		if err != nil {
			r.Fatal(err)
		}
		w.decide()
		after, err := json.Marshal([]any{w.nodes, fmt.Sprint(w.facts)})
		if err != nil || string(before) != string(after) {
			r.Fatalf("%s\nbecame\n%s", before, after)
		}
	})
}

// What was written and begun once is not written or begun again. A Lease that is taken while a profile stays in its state is a
// change: other transitions may hold next.
func TestEvaluatingTwiceDoesNothing(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := drawWorld(r, "one")
		r.Repeat(w.actions())
		w.now = w.now.Add(time.Second)
		for _, e := range w.decide() {
			for _, p := range e.Profiles {
				if p.Claims != nil && p.Move == nil {
					r.Skip()
				}
			}
		}
		w.evaluate()
		for _, e := range w.decide() {
			if e.Changed {
				r.Fatalf("%s is written again: %+v", e.Node, e)
			}
			for _, p := range e.Profiles {
				if p.Move != nil || p.Enter != nil || p.Notify != nil || p.Claims != nil {
					r.Fatalf("%s: %+v", e.Node, p)
				}
			}
		}
	})
}
