package drain

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"drydock.dev/drydock/k8s"
)

func TestMetricsShowDrainsAndWhatBlocksThem(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m := NewMetrics(registry)
	if n, err := testutil.GatherAndCount(registry, "drydock_drain_blocked_pods"); n != len(reasons) || err != nil {
		t.Errorf("%d reasons are there from the start, %v", n, err)
	}
	first, second := m.drains("n1"), m.drains("n2")
	m.blocked("n1", map[string]int{string(k8s.BudgetRefused): 2, reasonTerminating: 1})
	m.blocked("n2", map[string]int{string(k8s.BudgetRefused): 1})
	m.answered(k8s.BudgetRefused)
	expect := func(drains, refused, terminating float64) {
		t.Helper()
		for what, is := range map[string][2]float64{
			"drains":      {testutil.ToFloat64(m.running), drains},
			"refused":     {testutil.ToFloat64(m.blockers.WithLabelValues(string(k8s.BudgetRefused))), refused},
			"terminating": {testutil.ToFloat64(m.blockers.WithLabelValues(reasonTerminating)), terminating},
		} {
			if is[0] != is[1] {
				t.Errorf("%s: %v, want %v", what, is[0], is[1])
			}
		}
	}
	expect(2, 3, 1)
	if got := m.oldest(time.Now().Add(time.Minute)); got < time.Minute || got > 2*time.Minute {
		t.Errorf("blocked for %s", got)
	}
	first()
	expect(1, 1, 0)
	second()
	expect(0, 0, 0)
	if got := m.oldest(time.Now().Add(time.Minute)); got != 0 {
		t.Errorf("nothing is blocked, and for %s", got)
	}
	if got := testutil.ToFloat64(m.evictions.WithLabelValues(string(k8s.BudgetRefused))); got != 1 {
		t.Errorf("%v refusals", got)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
