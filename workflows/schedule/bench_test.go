package schedule

import (
	"fmt"
	"testing"
	"time"
)

// benchInput is a cluster in 3 zones and racks of 40 nodes, one node in 50 unavailable, with a request for every
// third node of a handful of requestors and one maintenance per hundred nodes.
func benchInput(b *testing.B, nodes int, limits Limits) Input {
	b.Helper()
	limits.Groups = []Group{
		{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: Percent(10)},
		{Name: "zone", GroupBy: []string{"zone"}, MaxUnavailable: Percent(20)},
		{Name: "rack", GroupBy: []string{"zone", "rack"}, MaxUnavailable: Count(4)},
	}
	grouper, err := NewGrouper(limits.Groups)
	if err != nil {
		b.Fatal(err)
	}
	in := Input{Limits: limits, Observed: &Observation{
		Nodes: nodes, Groups: map[string]GroupCount{}, Facts: map[string]NodeFacts{},
	}}
	for i := range nodes {
		name := fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i>>16, i>>8&255, i&255)
		labels := map[string]string{"zone": string(rune('a' + i%3)), "rack": fmt.Sprint(i / 40)}
		if i%5 == 0 {
			labels["pool"] = "gpu"
		}
		facts := NodeFacts{Unavailable: i%50 == 0, Groups: grouper.Keys(labels)}
		for _, key := range facts.Groups {
			count := in.Observed.Groups[key]
			count.Nodes++
			if facts.Unavailable {
				count.Unavailable++
			}
			in.Observed.Groups[key] = count
		}
		if facts.Unavailable {
			in.Observed.Unavailable++
		}
		switch {
		case i%3 == 0:
			in.Observed.Facts[name] = facts
			in.Pending = append(in.Pending, Request{
				ID: fmt.Sprintf("node-maintenance/%s/team-%d", name, i%7), Node: name, Requestor: fmt.Sprintf("team-%d", i%7),
				Created: epoch.Add(time.Duration(i*7919%nodes) * time.Second),
			})
		case i%100 == 1:
			in.Observed.Facts[name] = facts
			in.Granted = append(in.Granted, Grant{RequestID: name, Node: name, Requestor: "team-1"})
		}
	}
	return in
}

func BenchmarkDecide(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 15000} {
		for _, c := range []struct {
			name   string
			limits Limits
		}{
			{"full", Limits{MaxParallel: Count(1)}},
			{"mixed", Limits{MaxParallel: Percent(20), MaxUnavailable: Percent(10)}},
			{"open", Limits{MaxParallel: Unlimited()}},
		} {
			in := benchInput(b, nodes, c.limits)
			if c.name == "open" {
				in.Limits.Groups = nil
			}
			b.Run(fmt.Sprintf("nodes=%d/candidates=%d/%s", nodes, len(in.Pending), c.name), func(b *testing.B) {
				b.ReportAllocs()
				var d Decision
				for b.Loop() {
					d = Decide(in)
				}
				b.ReportMetric(float64(len(d.Grants)), "grants")
			})
		}
	}
}

func BenchmarkKeys(b *testing.B) {
	grouper, err := NewGrouper([]Group{{Name: "gpu", NodeSelector: "pool=gpu"}, {Name: "zone", GroupBy: []string{"zone"}}})
	if err != nil {
		b.Fatal(err)
	}
	labels := map[string]string{"zone": "a", "pool": "gpu", "kubernetes.io/os": "linux"}
	b.ReportAllocs()
	for b.Loop() {
		grouper.Keys(labels)
	}
}
