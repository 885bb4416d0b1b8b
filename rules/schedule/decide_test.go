package schedule

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// decideCase is a row: want holds a line for each request, grants first, each list in rank order.
type decideCase struct {
	name string
	in   Input
	want []string
}

func runDecideCases(t *testing.T, cases []decideCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, lines(Decide(c.in))); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
		})
	}
}

func lines(d Decision) []string {
	var all []string
	for _, r := range d.Grants {
		all = append(all, "granted "+r.ID)
	}
	for _, r := range d.Refused {
		all = append(all, fmt.Sprintf("%s %s: %s", r.Code, r.Request.ID, r.Reason))
	}
	return all
}

// worker is the name of the i-th node.
func worker(i int) string { return fmt.Sprintf("worker-%02d", i) }

// cluster observes n nodes, those given being unavailable, with facts on all.
func cluster(n int, unavailable ...int) *Observation {
	o := &Observation{At: epoch, Nodes: n, Unavailable: len(unavailable), Facts: map[string]NodeFacts{}}
	for i := 1; i <= n; i++ {
		o.Facts[worker(i)] = NodeFacts{}
	}
	for _, i := range unavailable {
		o.Facts[worker(i)] = NodeFacts{Unavailable: true}
	}
	return o
}

// others names nodes as cordoned by somebody.
func (o *Observation) others(nodes ...int) *Observation {
	for _, i := range nodes {
		o.Others = append(o.Others, UnavailableNode{Node: worker(i), Why: "cordoned"})
	}
	return o
}

// with puts nodes into a group.
func (o *Observation) with(key string, nodes ...int) *Observation {
	if o.Groups == nil {
		o.Groups = map[string]GroupCount{}
	}
	var n GroupCount
	for _, i := range nodes {
		facts := o.Facts[worker(i)]
		facts.Groups = append(facts.Groups, key)
		o.Facts[worker(i)] = facts
		n.Nodes++
		if facts.Unavailable {
			n.Unavailable++
		}
	}
	o.Groups[key] = n
	return o
}

// where sets the facts of a node without changing the counts.
func (o *Observation) where(node string, facts NodeFacts) *Observation {
	o.Facts[node] = facts
	return o
}

func (o *Observation) forget(i int) *Observation {
	delete(o.Facts, worker(i))
	return o
}

// ask is a request of ops for the i-th node; its ID is the node's name.
func ask(i int) Request {
	return Request{ID: worker(i), Node: worker(i), Requestor: "ops", Created: epoch}
}

// by gives the request to another requestor, whose name becomes part of the ID.
func (r Request) by(requestor string) Request {
	r.ID, r.Requestor = r.Node+"/"+requestor, requestor
	return r
}

func (r Request) prio(p int) Request { r.Priority = p; return r }

func (r Request) later(minutes int) Request {
	r.Created = epoch.Add(time.Duration(minutes) * time.Minute)
	return r
}

func asks(nodes ...int) []Request {
	var all []Request
	for _, i := range nodes {
		all = append(all, ask(i))
	}
	return all
}

// held are grants of other requestors than ops.
func held(nodes ...int) []Grant {
	var all []Grant
	for _, i := range nodes {
		all = append(all, Grant{RequestID: worker(i) + "/net", Node: worker(i), Requestor: "net"})
	}
	return all
}

func limit(maxParallel int) Limits { return Limits{MaxParallel: Count(maxParallel)} }

func (l Limits) unavailable(a Amount) Limits { l.MaxUnavailable = a; return l }

// open are limits that refuse nothing.
var open = Limits{MaxParallel: Unlimited()}

// TestMaintenanceOperatorExamples has the examples of maintenance-operator's document.
func TestMaintenanceOperatorExamples(t *testing.T) {
	// availableSlots=3 and canBecomeUnavailable=1
	limits := limit(3)
	runDecideCases(t, []decideCase{
		{
			"If 2 requests target already-unavailable nodes and 1 targets an available node, all 3 can be scheduled",
			Input{Limits: limits.unavailable(Count(3)), Observed: cluster(10, 2, 3), Pending: asks(1, 2, 3)},
			[]string{"granted worker-01", "granted worker-02", "granted worker-03"},
		},
		{
			"If 3 requests target available nodes, only 1 can be scheduled",
			Input{Limits: limits.unavailable(Count(1)), Observed: cluster(10), Pending: asks(1, 2, 3)},
			[]string{
				"granted worker-01",
				"MaxUnavailable worker-02: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)",
				"MaxUnavailable worker-03: maxUnavailable 1: 1 is unavailable (1 in maintenance: worker-01)",
			},
		},
		{
			"10 nodes (all available), MaxParallelOperations=2, MaxUnavailable=5, 5 requests: 2 requests scheduled",
			Input{Limits: limit(2).unavailable(Count(5)), Observed: cluster(10), Pending: asks(1, 2, 3, 4, 5)},
			[]string{
				"granted worker-01",
				"granted worker-02",
				"MaxParallel worker-03: maxParallel 2: all 2 slots are taken (worker-01, worker-02)",
				"MaxParallel worker-04: maxParallel 2: all 2 slots are taken (worker-01, worker-02)",
				"MaxParallel worker-05: maxParallel 2: all 2 slots are taken (worker-01, worker-02)",
			},
		},
		{
			"10 nodes (2 already unavailable), MaxParallelOperations=5, MaxUnavailable=3, 3 requests: 1 request scheduled",
			Input{Limits: limit(5).unavailable(Count(3)), Observed: cluster(10, 9, 10), Pending: asks(1, 2, 3)},
			[]string{
				"granted worker-01",
				"MaxUnavailable worker-02: maxUnavailable 3: 3 are unavailable (1 in maintenance: worker-01)",
				"MaxUnavailable worker-03: maxUnavailable 3: 3 are unavailable (1 in maintenance: worker-01)",
			},
		},
	})
}

// TestMaintenanceOperatorAlgorithm has a row for each sentence of maintenance-operator's scheduling algorithm.
func TestMaintenanceOperatorAlgorithm(t *testing.T) {
	runDecideCases(t, append(availabilityCases(), selectionCases()...))
}

func availabilityCases() []decideCase {
	return []decideCase{
		{
			"MaxParallelOperations can be an absolute number",
			Input{Limits: limit(1), Observed: cluster(3), Pending: asks(1, 2)},
			[]string{"granted worker-01", "MaxParallel worker-02: maxParallel 1: the slot is taken (worker-01)"},
		},
		{
			"or a percentage of total nodes",
			Input{Limits: Limits{MaxParallel: Percent(10)}, Observed: cluster(20), Pending: asks(1, 2, 3)},
			[]string{"granted worker-01", "granted worker-02",
				"MaxParallel worker-03: maxParallel 10% (= 2 of 20 nodes): all 2 slots are taken (worker-01, worker-02)"},
		},
		{
			"The number of available slots is determined by subtracting the nodes under maintenance",
			Input{Limits: limit(3), Observed: cluster(5), Granted: held(4, 5), Pending: asks(1, 2)},
			[]string{"granted worker-01",
				"MaxParallel worker-02: maxParallel 3: all 3 slots are taken (worker-04, worker-05, worker-01)"},
		},
		{
			"MaxUnavailable can be an absolute number or a percentage of total nodes",
			Input{Limits: open.unavailable(Percent(20)), Observed: cluster(10), Pending: asks(1, 2, 3)},
			[]string{"granted worker-01", "granted worker-02",
				"MaxUnavailable worker-03: maxUnavailable 20% (= 2 of 10 nodes): 2 are unavailable (2 in maintenance: worker-01, worker-02)"},
		},
		{
			"If unspecified, no limit is applied",
			Input{Limits: open, Observed: cluster(4, 3, 4), Pending: asks(1, 2)},
			[]string{"granted worker-01", "granted worker-02"},
		},
		{
			"Unavailable nodes: the nodes that have NodeMaintenance in progress and those unschedulable or not ready",
			Input{Limits: open.unavailable(Count(3)), Observed: cluster(9, 8, 9), Granted: held(7), Pending: asks(1)},
			[]string{"MaxUnavailable worker-01: maxUnavailable 3: 3 are unavailable (1 in maintenance: worker-07)"},
		},
		{
			"A node already targeted by a NodeMaintenance in progress is not a candidate",
			Input{Limits: open, Observed: cluster(3), Granted: held(1), Pending: asks(1, 2)},
			[]string{"granted worker-02", "NodeBusy worker-01: worker-01 is in maintenance for net"},
		},
		{
			"maxUnavailable zero allows maintenance on nodes already unavailable but prevents new ones",
			Input{Limits: open.unavailable(Count(0)), Observed: cluster(4, 2), Pending: asks(1, 2)},
			[]string{"granted worker-02",
				"MaxUnavailable worker-01: maxUnavailable 0: no further node may become unavailable"},
		},
	}
}

func selectionCases() []decideCase {
	return []decideCase{
		{
			"Prioritizes requestors that already have NodeMaintenance objects in progress",
			Input{Limits: limit(2), Observed: cluster(9), Granted: held(9),
				Pending: []Request{ask(1).by("fast").later(-5), ask(2).by("net"), ask(3).by("net")}},
			[]string{"granted worker-02/net",
				"MaxParallel worker-03/net: maxParallel 2: all 2 slots are taken (worker-09, worker-02)",
				"MaxParallel worker-01/fast: maxParallel 2: all 2 slots are taken (worker-09, worker-02)"},
		},
		{
			"Prioritizes requestors with fewer pending NodeMaintenance objects",
			Input{Limits: limit(1), Observed: cluster(9),
				Pending: []Request{ask(1).by("many"), ask(2).by("many"), ask(3).by("few").later(5)}},
			[]string{"granted worker-03/few",
				"MaxParallel worker-01/many: maxParallel 1: the slot is taken (worker-03)",
				"MaxParallel worker-02/many: maxParallel 1: the slot is taken (worker-03)"},
		},
		{
			"Prioritizes by creation time (older first)",
			Input{Limits: limit(1), Observed: cluster(9), Pending: []Request{ask(1).later(2), ask(2).later(1)}},
			[]string{"granted worker-02", "MaxParallel worker-01: maxParallel 1: the slot is taken (worker-02)"},
		},
		{
			"No more than canBecomeUnavailable additional nodes become unavailable",
			Input{Limits: open.unavailable(Count(4)), Observed: cluster(9, 9, 8), Pending: asks(1, 2, 3)},
			[]string{"granted worker-01", "granted worker-02",
				"MaxUnavailable worker-03: maxUnavailable 4: 4 are unavailable (2 in maintenance: worker-01, worker-02)"},
		},
		{
			"If a target node is already unavailable, it doesn't count against the limit",
			Input{Limits: open.unavailable(Count(2)), Observed: cluster(9, 1), Pending: asks(1, 2)},
			[]string{"granted worker-01", "granted worker-02"},
		},
		{
			"Only one NodeMaintenance object per node is scheduled (highest-ranked wins if multiple exist)",
			Input{Limits: open, Observed: cluster(9),
				Pending: []Request{ask(1).by("b"), ask(1).by("a").later(1), ask(1).by("c").prio(-1)}},
			[]string{"granted worker-01/b",
				"Outranked worker-01/a: the request of b for worker-01 goes first",
				"Outranked worker-01/c: the request of b for worker-01 goes first"},
		},
	}
}
