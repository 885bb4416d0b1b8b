package schedule_test

import (
	"fmt"
	"testing"

	"drydock/rules/schedule"
	"drydock/rules/schedule/scheduletest"
)

func BenchmarkDecide(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 15000} {
		for _, c := range []struct {
			name   string
			limits schedule.Limits
		}{
			{"full", schedule.Limits{MaxParallel: schedule.Count(1)}},
			{"mixed", schedule.Limits{MaxParallel: schedule.Percent(20), MaxUnavailable: schedule.Percent(10)}},
			{"open", schedule.Limits{MaxParallel: schedule.Unlimited()}},
		} {
			in, err := scheduletest.Cluster(nodes, c.limits)
			if err != nil {
				b.Fatal(err)
			}
			if c.name == "open" {
				in.Limits.Groups = nil
			}
			b.Run(fmt.Sprintf("nodes=%d/candidates=%d/%s", nodes, len(in.Pending), c.name), func(b *testing.B) {
				b.ReportAllocs()
				var d schedule.Decision
				for b.Loop() {
					d = schedule.Decide(in)
				}
				b.ReportMetric(float64(len(d.Grants)), "grants")
			})
		}
	}
}

func BenchmarkKeys(b *testing.B) {
	grouper, err := schedule.NewGrouper([]schedule.Group{{Name: "gpu", NodeSelector: "pool=gpu"}, {Name: "zone", GroupBy: []string{"zone"}}})
	if err != nil {
		b.Fatal(err)
	}
	labels := map[string]string{"zone": "a", "pool": "gpu", "kubernetes.io/os": "linux"}
	b.ReportAllocs()
	for b.Loop() {
		grouper.Keys(labels)
	}
}
