package show

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

func TestQuotasAreShownWithTheLimits(t *testing.T) {
	two, none := 2, 0
	l := api.LimitsInForce{SetBy: "ann", Limits: schedule.Limits{MaxParallel: schedule.Count(1), Quotas: schedule.Quotas{
		HeldPerRequestor: &two, Requestors: map[string]schedule.RequestorQuota{"intern": {Pending: &none}},
	}}}
	var text strings.Builder
	Limits(&text, l, time.Now())
	var rows []string
	for line := range strings.Lines(text.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := "LIMIT MAX PARALLEL MAX UNAVAILABLE NODES\ncluster 1 - all\nRemediations of health checks, in slots of their own: 10%\n\nREQUESTOR MAX PENDING MAX HELD\neach - 2\nintern 0 2\n\nSet by ann"
	if got := strings.Join(rows, "\n"); got != want {
		t.Errorf("shown\n%s\nwant\n%s", got, want)
	}
}
