package record

import (
	"strings"
	"testing"
	"time"
)

func TestARemediationIsShown(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	timedOut, yes := at.Add(5*time.Minute), true
	r := Record{
		Schema: Schema, WorkflowID: "node-remediation/workers/n1", RunID: "r1", Node: "n1", Requestor: "health-check.workers", Phase: "Completed",
		CreatedAt: at, EndedAt: at.Add(time.Hour),
		Remediation: &Remediation{Check: "workers", Why: "condition Ready is Unknown", Since: at.Add(-5 * time.Minute), Recovered: true, Steps: []RemediationStep{
			{Step: 1, What: "Fence fixers/n1", StartedAt: at, TimedOut: &timedOut},
			{Step: 2, What: "node-maintenance/n1/health-check.workers", StartedAt: timedOut, Succeeded: &yes},
			{Step: 3, Failure: "there is no template"},
		}, MoreSteps: 2},
	}
	for name, shown := range map[string]string{"text": drawn(View(r, at)), "Markdown": Markdown(r, at)} {
		for _, want := range []string{
			"workers", "condition Ready is Unknown, since", "Fence", "succeeded", "there is no template", "and 2 more",
		} {
			if !strings.Contains(shown, want) {
				t.Errorf("%s without %q:\n%s", name, want, shown)
			}
		}
	}
	if !strings.Contains(Markdown(r, at), "Remediation of n1 by health check workers") {
		t.Errorf("another title:\n%s", Markdown(r, at))
	}
	if report := Summarize([]Record{r}, at, at.Add(24*time.Hour)); report.Maintenances != 0 {
		t.Errorf("the report counts %d maintenances", report.Maintenances)
	}
}
