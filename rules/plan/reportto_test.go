package plan_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

func TestEveryMaintenanceOfAPlanReportsToItsWorkflow(t *testing.T) {
	p, err := plan.Decode("kernel", []byte(`{"nodes": ["a", "b"], "reportTo": {"workflow": "rollout", "signal": "node-report"}}`))
	if err != nil {
		t.Fatal(err)
	}
	input, err := p.InputOf("b", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	var m spec.Maintenance
	if err := json.Unmarshal(input, &m); err != nil {
		t.Fatal(err)
	}
	if want := (spec.ReportTo{Workflow: "rollout", Signal: "node-report"}); m.ReportTo == nil || *m.ReportTo != want {
		t.Errorf("the input of b is %s", input)
	}
	for want, fields := range map[string]string{
		"reportTo.signal: must not be empty":            `"reportTo": {"workflow": "a", "signal": ""}`,
		"maintenance.reportTo: is the plan's to say":    `"maintenance": {"reportTo": {"workflow": "a", "signal": "b"}}`,
		"reportTo: a Kubernetes object cannot ask":      `"reportTo": {"workflow": "a", "signal": "b"}, "object": {"resource": "maintenanceplans.drydock.dev", "name": "kernel", "uid": "1"}`,
		"reportTo: a maintenance that plans share":      `"reportTo": {"workflow": "a", "signal": "b"}, "strategy": {"type": "allAtOnce"}`,
		"reportTo.workflow: \"a\\u202e\" has character": `"reportTo": {"workflow": "a\u202e", "signal": "b"}`,
	} {
		_, err := plan.Decode("kernel", []byte(`{"nodes": ["a"], `+fields+`}`))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", fields, err, want)
		}
	}
}
