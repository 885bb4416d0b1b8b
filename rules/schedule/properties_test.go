package schedule

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// simulation is a cluster with a scheduler on it. Its observation lags behind until observe is called.
type simulation struct {
	nodes    []simNode
	limits   Limits
	revision int
	freezes  []Freeze
	pending  []Request
	granted  []Grant
	released []string

	observed *Observation
	// snapshot are the nodes as observed.
	snapshot []simNode
	requests int
}

var (
	zoneGen   = rapid.SampledFrom([]string{"", "a", "b", "c"})
	poolGen   = rapid.SampledFrom([]string{"", "cpu", "gpu"})
	nodeGen   = rapid.Custom(func(t *rapid.T) string { return worker(rapid.IntRange(1, 14).Draw(t, "node")) })
	personGen = rapid.SampledFrom([]string{"alice", "bob", "carl"})
	boundGen  = rapid.OneOf(
		rapid.Map(rapid.IntRange(1, 7), Count),
		rapid.Map(rapid.IntRange(1, 100), Percent),
	)
	noneGen = rapid.SampledFrom([]Amount{{}, {}, {}, Count(0), Percent(0)})
)

// gangGen draws none in most cases.
var gangGen = rapid.Custom(func(t *rapid.T) *Gang {
	name := rapid.SampledFrom([]string{"", "", "", "x", "y", "z"}).Draw(t, "name")
	if name == "" {
		return nil
	}
	return &Gang{Name: name, Size: rapid.IntRange(1, 4).Draw(t, "size")}
})

func drawLimits(t *rapid.T) Limits {
	limits := Limits{
		MaxParallel:    rapid.OneOf(boundGen, rapid.Just(Unlimited()), rapid.SampledFrom([]Amount{{}, Unlimited()})).Draw(t, "maxParallel"),
		MaxUnavailable: rapid.OneOf(boundGen, noneGen).Draw(t, "maxUnavailable"),
		Remediations:   rapid.OneOf(boundGen, rapid.SampledFrom([]Amount{{}, Unlimited(), Count(0), Percent(0)})).Draw(t, "remediations"),
	}
	for _, g := range []Group{
		{Name: "gpu", NodeSelector: "pool=gpu"},
		{Name: "zone", GroupBy: []string{"zone"}},
		{Name: "both", NodeSelector: "pool=cpu", GroupBy: []string{"zone", "pool"}},
	} {
		if rapid.Bool().Draw(t, "has group "+g.Name) {
			g.MaxParallel = rapid.OneOf(boundGen, rapid.Just(Amount{})).Draw(t, g.Name+" maxParallel")
			g.MaxUnavailable = rapid.OneOf(boundGen, noneGen).Draw(t, g.Name+" maxUnavailable")
			if g.MaxParallel.IsZero() && g.MaxUnavailable.IsZero() {
				g.MaxParallel = Count(1)
			}
			limits.Groups = append(limits.Groups, g)
		}
	}
	limits.Quotas = drawQuotas(t)
	if err := limits.Validate(); err != nil {
		t.Fatalf("drew limits that are refused: %v", err)
	}
	return limits
}

// drawQuotas draws none in half of all cases.
func drawQuotas(t *rapid.T) (q Quotas) {
	if rapid.Bool().Draw(t, "no quotas") {
		return q
	}
	most := rapid.Ptr(rapid.IntRange(1, 4), true)
	q.HeldPerRequestor = most.Draw(t, "heldPerRequestor")
	if own := most.Draw(t, "held by alice"); own != nil {
		q.Requestors = map[string]RequestorQuota{"alice": {Held: own}}
	}
	return q
}

// observe takes a snapshot. Facts on a node now and then fail to come with it.
func (s *simulation) observe(t *rapid.T) {
	grouper, err := NewGrouper(s.limits.Groups)
	if err != nil {
		t.Fatal(err)
	}
	s.snapshot = slices.Clone(s.nodes)
	s.released = nil
	o := &Observation{Revision: s.revision, Groups: map[string]GroupCount{}, Facts: map[string]NodeFacts{}}
	for i := range 14 {
		o.Facts[worker(i+1)] = NodeFacts{Missing: true}
	}
	for _, n := range s.snapshot {
		facts := NodeFacts{Unavailable: n.unavailable(), Groups: grouper.Keys(n.labels)}
		o.Facts[n.name] = facts
		o.Nodes++
		if facts.Unavailable {
			o.Unavailable++
		}
		for _, key := range facts.Groups {
			count := o.Groups[key]
			count.Nodes++
			if facts.Unavailable {
				count.Unavailable++
			}
			o.Groups[key] = count
		}
	}
	if rapid.IntRange(0, 3).Draw(t, "facts are lost") == 0 {
		for range rapid.IntRange(1, 3).Draw(t, "lost") {
			delete(o.Facts, nodeGen.Draw(t, "unseen"))
		}
	}
	s.observed = o
}

func (s *simulation) model() model {
	m := model{
		limits:   s.limits,
		frozen:   len(s.freezes) > 0,
		current:  s.observed != nil && s.observed.Revision == s.revision,
		nodes:    s.snapshot,
		known:    map[string]bool{},
		granted:  map[string]string{},
		released: map[string]bool{},

		gangsHeld: map[string]bool{},
		repairs:   map[string]bool{},
	}
	if s.observed != nil {
		for name := range s.observed.Facts {
			m.known[name] = true
		}
	}
	for _, g := range s.granted {
		m.granted[g.Node] = g.Requestor
		if g.Remediation {
			m.repairs[g.Node] = true
			continue
		}
		m.gangsHeld[g.Gang] = m.gangsHeld[g.Gang] || g.Gang != ""
	}
	for _, name := range s.released {
		m.released[name] = true
	}
	return m
}

func (s *simulation) input() Input {
	return Input{
		Limits: s.limits, Freezes: s.freezes, Observed: s.observed, Revision: s.revision,
		Granted: s.granted, Released: s.released, Pending: s.pending,
	}
}

// shuffled is the same input in another order, sharing no list with it.
func shuffled(t *rapid.T, in Input) Input {
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	in.Pending = shuffle(r, in.Pending)
	in.Granted = shuffle(r, in.Granted)
	in.Released = shuffle(r, in.Released)
	in.Freezes = shuffle(r, in.Freezes)
	return in
}

func shuffle[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

// text writes all of the input down, to notice any change.
func text(t *rapid.T, in Input) string {
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// decide carries a decision out.
func (s *simulation) decide(t *rapid.T) {
	for _, r := range s.check(t).Grants {
		s.granted = append(s.granted, grantOf(r))
		s.pending = slices.DeleteFunc(s.pending, func(p Request) bool { return p.ID == r.ID })
	}
}

func grantOf(r Request) Grant {
	g := Grant{RequestID: r.ID, Node: r.Node, Requestor: r.Requestor, Remediation: r.Remediation}
	if r.Gang != nil {
		g.Gang = r.Gang.Name
	}
	return g
}

// check decides and checks the decision.
func (s *simulation) check(t *rapid.T) Decision {
	in := s.input()
	untouched := text(t, in)
	d := Decide(in)
	if after := text(t, in); after != untouched {
		t.Fatalf("the input was changed (-before +after):\n%s", cmp.Diff(untouched, after))
	}
	if other := Decide(shuffled(t, in)); !reflect.DeepEqual(d, other) {
		t.Fatalf("another order decides otherwise:\n%s", cmp.Diff(d, other))
	}
	s.checkComplete(t, d)
	s.checkSafe(t, d)
	s.checkWhole(t, d)
	return d
}

// checkComplete: every request is answered once, and as the model answers it. The model grants whatever fits, so
// this includes that something is granted if any candidate fits.
func (s *simulation) checkComplete(t *rapid.T, d Decision) {
	got := map[string]Code{}
	for _, r := range d.Grants {
		got[r.ID] = ""
	}
	for _, r := range d.Refused {
		got[r.Request.ID] = r.Code
		if r.Reason == "" || r.Code == "" {
			t.Fatalf("%s is refused without a word", r.Request.ID)
		}
	}
	if len(d.Grants)+len(d.Refused) != len(s.pending) {
		t.Fatalf("%d granted and %d refused of %d", len(d.Grants), len(d.Refused), len(s.pending))
	}
	if want := s.model().decide(s.pending); !maps.Equal(want, got) {
		t.Fatalf("codes (-model +got):\n%s", cmp.Diff(want, got))
	}
}

// checkSafe replays the grants one by one on the sets of nodes: what is in maintenance, and what is unavailable
// counting what is. Nothing conservative here, hence no use of the model's obstacle.
func (s *simulation) checkSafe(t *rapid.T, d Decision) {
	if len(d.Grants) > 0 && len(s.freezes) > 0 {
		t.Fatal("granted under freeze")
	}
	m := s.model()
	for _, r := range d.Grants {
		if by, taken := m.granted[r.Node]; taken {
			t.Fatalf("%s is granted to %s and to %s", r.Node, by, r.Requestor)
		}
		node, ok := m.node(r.Node)
		if !ok {
			t.Fatalf("%s is granted and does not exist", r.Node)
		}
		cost := !m.down(node)
		m.granted[r.Node] = r.Requestor
		parallel := s.limits.WithDefaults().MaxParallel
		if r.Remediation {
			m.repairs[r.Node], parallel = true, Amount{}
			if limit, ok := allowed(s.limits.WithDefaults().Remediations, len(m.nodes)); ok && len(m.granted)-m.planned() > limit {
				t.Fatalf("%d remediations, limit %d", len(m.granted)-m.planned(), limit)
			}
		} else if most := s.limits.Quotas.Of(r.Requestor).Held; most != nil && m.holds(r.Requestor) > *most {
			t.Fatalf("%s holds %d nodes by a grant, quota %d", r.Requestor, m.holds(r.Requestor), *most)
		}
		m.checkBounds(t, "cluster", parallel, s.limits.MaxUnavailable, m.planned(), cost,
			func(simNode) bool { return true })
		for _, g := range s.limits.Groups {
			if !inGroupOf(g, node, node) {
				continue
			}
			member := func(n simNode) bool { return inGroupOf(g, node, n) }
			parallel := 0
			for _, n := range m.nodes {
				if _, granted := m.granted[n.name]; granted && !m.repairs[n.name] && member(n) {
					parallel++
				}
			}
			if r.Remediation {
				g.MaxParallel = Amount{}
			}
			m.checkBounds(t, g.Name, g.MaxParallel, g.MaxUnavailable, parallel, cost, member)
		}
	}
}

func (m model) checkBounds(t *rapid.T, name string, maxParallel, maxUnavailable Amount, parallel int, cost bool, member func(simNode) bool) {
	total, unavailable := 0, 0
	for _, n := range m.nodes {
		if !member(n) {
			continue
		}
		total++
		if _, granted := m.granted[n.name]; granted || m.down(n) {
			unavailable++
		}
	}
	if limit, ok := allowed(maxParallel, total); ok && parallel > limit {
		t.Fatalf("%s: %d in maintenance, limit %d", name, parallel, limit)
	}
	if limit, ok := allowed(maxUnavailable, total); ok && cost && unavailable > limit {
		t.Fatalf("%s: a grant makes %d unavailable, limit %d", name, unavailable, limit)
	}
}

// TestProperties drives random sequences of what can happen to a scheduler and its cluster.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &simulation{limits: drawLimits(t)}
		for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
			s.addNode(t, worker(i+1))
		}
		s.observe(t)
		t.Repeat(map[string]func(*rapid.T){
			"":                   func(t *rapid.T) { s.check(t) },
			"observe":            s.observe,
			"decide":             s.decide,
			"request":            s.request,
			"request a gang":     s.requestGang,
			"change node":        s.changeNode,
			"add or remove node": s.addOrRemove,
			"cordon":             s.cordon,
			"release":            s.release,
			"freeze":             s.freeze,
			"set-limits":         s.setLimits,
		})
	})
}

// setLimits is mostly followed by an observation for the new groups.
func (s *simulation) setLimits(t *rapid.T) {
	s.limits = drawLimits(t)
	s.revision++
	if rapid.IntRange(0, 3).Draw(t, "unobserved") > 0 {
		s.observe(t)
	}
}

func (s *simulation) request(t *rapid.T) {
	for range rapid.IntRange(1, 6).Draw(t, "requests") {
		s.requests++
		s.pending = append(s.pending, Request{
			ID: fmt.Sprint("r", s.requests), Node: nodeGen.Draw(t, "node"), Requestor: personGen.Draw(t, "requestor"),
			Priority: rapid.IntRange(-1, 1).Draw(t, "priority"),
			Created:  epoch.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "minutes")) * time.Minute),
			Gang:     gangGen.Draw(t, "gang"),
			// Some in a gang, which means nothing then.
			Remediation: rapid.IntRange(0, 3).Draw(t, "remediation") == 0,
		})
	}
}

func (s *simulation) addNode(t *rapid.T, name string) {
	labels := map[string]string{}
	if zone := zoneGen.Draw(t, "zone"); zone != "" {
		labels["zone"] = zone
	}
	if pool := poolGen.Draw(t, "pool"); pool != "" {
		labels["pool"] = pool
	}
	s.nodes = append(s.nodes, simNode{name: name, labels: labels, failed: rapid.IntRange(0, 4).Draw(t, "failed") == 0})
}

func (s *simulation) addOrRemove(t *rapid.T) {
	name := nodeGen.Draw(t, "node")
	rest := slices.DeleteFunc(slices.Clone(s.nodes), func(n simNode) bool { return n.name == name })
	if len(rest) < len(s.nodes) {
		s.nodes = rest
		return
	}
	s.addNode(t, name)
}

// changeNode lets a node fail or recover by itself, after it was observed.
func (s *simulation) changeNode(t *rapid.T) {
	if len(s.nodes) == 0 {
		t.Skip("no nodes")
	}
	i := rapid.IntRange(0, len(s.nodes)-1).Draw(t, "which")
	s.nodes[i].failed = !s.nodes[i].failed
}

// cordon carries out the first step of some maintenances.
func (s *simulation) cordon(t *rapid.T) {
	if len(s.granted) == 0 {
		t.Skip("nothing granted")
	}
	for _, g := range s.granted {
		if rapid.Bool().Draw(t, "cordon "+g.Node) {
			s.setCordoned(g.Node, true)
		}
	}
}

func (s *simulation) setCordoned(name string, cordoned bool) {
	for i := range s.nodes {
		if s.nodes[i].name == name {
			s.nodes[i].cordoned = cordoned
		}
	}
}

func (s *simulation) release(t *rapid.T) {
	if len(s.granted) == 0 {
		t.Skip("nothing granted")
	}
	i := rapid.IntRange(0, len(s.granted)-1).Draw(t, "which")
	name := s.granted[i].Node
	s.granted = slices.Delete(slices.Clone(s.granted), i, i+1)
	s.released = append(s.released, name)
	s.setCordoned(name, false)
}

// freeze freezes, or thaws what is frozen.
func (s *simulation) freeze(t *rapid.T) {
	if len(s.freezes) > 0 {
		s.freezes = nil
		return
	}
	for range rapid.IntRange(1, 4).Draw(t, "freezes") {
		s.freezes = append(s.freezes, Freeze{By: personGen.Draw(t, "by"), Reason: "test", At: epoch})
	}
}
