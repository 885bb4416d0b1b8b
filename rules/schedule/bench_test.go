package schedule_test

import (
	"fmt"
	"testing"
	"time"

	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/schedule/scheduletest"
	"drydock.dev/drydock/rules/window"
)

func BenchmarkDecide(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 15000, 45000} {
		for _, c := range []struct {
			name   string
			limits schedule.Limits
		}{
			{"full", schedule.Limits{MaxParallel: schedule.Count(1)}},
			{"mixed", schedule.Limits{MaxParallel: schedule.Percent(20), MaxUnavailable: schedule.Percent(10)}},
			{"open", schedule.Limits{MaxParallel: schedule.Unlimited()}},
			{"gangs of 20", schedule.Limits{MaxParallel: schedule.Percent(20), MaxUnavailable: schedule.Percent(10)}},
			{"one gang", schedule.Limits{MaxParallel: schedule.Unlimited()}},
			{"windows", schedule.Limits{MaxParallel: schedule.Percent(20), Windows: []string{"nights"}}},
		} {
			in, err := scheduletest.Cluster(nodes, c.limits)
			if err != nil {
				b.Fatal(err)
			}
			in.Now = time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
			in.Horizon = &window.Horizon{Windows: map[string]window.Openings{
				"nights": {Until: in.Now.AddDate(0, 0, 9), Openings: []window.Opening{{From: in.Now, Until: in.Now.Add(time.Hour)}}},
			}}
			in.Limits.Groups = append(in.Limits.Groups, schedule.Group{Name: "idle", NodeSelector: "pool=idle", Windows: in.Limits.Windows})
			switch c.name {
			case "open":
				in.Limits.Groups = nil
			case "gangs of 20":
				in = scheduletest.InGangs(in, 20)
			case "one gang":
				in.Limits.Groups = nil
				in = scheduletest.InGangs(in, len(in.Pending))
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
