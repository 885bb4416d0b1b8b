package maintenance_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/worker/metrics"
	"drydock.dev/drydock/workflows/workflowtest"
)

// measured is a site whose maintenance a worker measures.
func measured(t *testing.T) (*workflowtest.Site, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	s := workflowtest.New(t)
	s.MeasureBy(metrics.Handler(registry, client.MetricsNopHandler, nil))
	return s, registry
}

// readMeasures returns how often each was counted or measured, under names such as drydock_phase_duration_seconds{Ready}, and the sums of
// durations.
func readMeasures(t *testing.T, registry *prometheus.Registry) (counts map[string]int64, took map[string]time.Duration) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts, took = map[string]int64{}, map[string]time.Duration{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += "{" + label.GetValue() + "}"
			}
			counts[name] = int64(m.GetCounter().GetValue()) + int64(m.GetHistogram().GetSampleCount())
			took[name] = time.Duration(m.GetHistogram().GetSampleSum() * float64(time.Second))
		}
	}
	return counts, took
}

// expectMeasures checks how often each was counted or measured.
func expectMeasures(t *testing.T, registry *prometheus.Registry, want map[string]int64) {
	t.Helper()
	counts, _ := readMeasures(t, registry)
	for name, n := range want {
		if got := counts[name]; got != n {
			t.Errorf("%s: %d, want %d", name, got, n)
		}
	}
}

func TestAMaintenanceIsMeasuredOnce(t *testing.T) {
	for name, at := range map[string][]time.Duration{"in one run": nil, "in three": {90 * time.Second, 2 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			s, registry := measured(t)
			for _, d := range at {
				s.ContinueAt(d)
			}
			s.DoneAt(3 * time.Hour)
			s.Run(workflowtest.InputWith(workflowtest.Input{"readyTimeout": "9h"}))
			s.ExpectCompleted()
			if s.Runs != len(at)+1 {
				t.Fatalf("%d runs", s.Runs)
			}
			expectMeasures(t, registry, map[string]int64{
				"drydock_maintenances_started_total": 1, "drydock_maintenances_ended_total{Completed}": 1,
				"drydock_maintenances_ended_total{Failed}": 0, "drydock_maintenance_duration_seconds{Completed}": 1,
				"drydock_phase_duration_seconds{Pending}": 1, "drydock_phase_duration_seconds{Scheduled}": 1,
				"drydock_phase_duration_seconds{Cordoning}": 1, "drydock_phase_duration_seconds{Draining}": 1,
				"drydock_phase_duration_seconds{Ready}": 1, "drydock_phase_duration_seconds{Releasing}": 1,
				"drydock_phase_duration_seconds{Completed}": 0, "drydock_sla_expired_total": 0,
			})
			_, took := readMeasures(t, registry)
			whole, ready := took["drydock_maintenance_duration_seconds{Completed}"], took["drydock_phase_duration_seconds{Ready}"]
			if whole < 3*time.Hour || whole > 3*time.Hour+time.Minute || ready < 2*time.Hour+50*time.Minute || ready > 3*time.Hour {
				t.Errorf("it took %s, and was Ready for %s", whole, ready)
			}
		})
	}
}

func TestExpiredSLAsAndRungsAreCounted(t *testing.T) {
	s, registry := measured(t)
	endless(s)
	s.Run(workflowtest.InputWith(workflowtest.Input{
		"sla": workflowtest.Input{"after": "10m"}, "drain": workflowtest.Input{"escalation": []workflowtest.Input{
			{"after": "20m", "do": "notify"}, {"after": "30m", "do": "fail"},
		}},
	}))
	s.ExpectFailure(api.ErrorNotDrained, "not empty")
	expectMeasures(t, registry, map[string]int64{
		"drydock_sla_expired_total": 1, "drydock_escalations_total{notify}": 1, "drydock_escalations_total{fail}": 1,
		"drydock_escalations_total{expireSLA}": 0, "drydock_maintenances_ended_total{Failed}": 1,
	})
}
