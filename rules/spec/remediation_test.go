package spec_test

import (
	"strings"
	"testing"

	"drydock.dev/drydock/rules/spec"
)

func TestRemediationHasDefaultsOfItsOwn(t *testing.T) {
	workers := `{"requestor":"ops","approval":true,"windows":["night"],"preflight":"wait","work":"off","drain":{"onNodeNotReady":"wait","force":true}}`
	for name, defaults := range map[string]string{"none": "", "the worker's": workers} {
		m, err := spec.Decode([]byte(`{"node":"n1","remediation":{"check":"workers"}}`), []byte(defaults))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if m.Requestor != "health-workers" || m.Type != spec.Unplanned || m.Drain.OnNodeNotReady != spec.IgnoreStuck || m.Approval ||
			len(m.Windows) > 0 || m.Preflight != spec.PreflightOff || m.Drain.Force != (defaults != "") {
			t.Errorf("%s: %+v", name, m)
		}
	}
	m, err := spec.Decode([]byte(`{"node":"n1","remediation":{"check":"workers"},"drain":{"onNodeNotReady":"wait"},"approval":true,"work":"off","outOfService":true}`), nil)
	if err != nil || m.Drain.OnNodeNotReady != spec.WaitForKubelet || !m.Approval || !m.Judged().WaitForVolumeDetach || m.Drain.WaitForVolumeDetach {
		t.Errorf("%+v: %v", m, err)
	}
}

func TestWhatARemediationCannotBe(t *testing.T) {
	for input, want := range map[string]string{
		`"remediation":{}`:            `remediation.check: required: the name of the health check`,
		`"remediation":{"check":"A"}`: `remediation.check: "A" is not the name of a health check`,
		`"remediation":{"check":"` + strings.Repeat("a", 41) + `"}`:       `has 41 characters: want at most 40`,
		`"remediation":{"check":"a","by":"me"}`:                           `remediation.by: unknown field`,
		`"remediation":{"check":"a"},"requestor":"ops"`:                   `requestor: "ops": a remediation of check a has the requestor "health-a"`,
		`"remediation":{"check":"a"},"type":"planned"`:                    `type: planned: a remediation is unplanned`,
		`"remediation":{"check":"a"},"lockstep":true,"requestor":"plans"`: `requestor: "plans": a remediation of check a`,
		`"remediation":{"check":"a"},"windows":["night"]`:                 `windows: a remediation waits for no window`,
		`"outOfService":true`:                                             `outOfService: work is required`,
		`"outOfService":true,"work":"off","drain":{"mode":"external"}`:    `outOfService: drain.mode external`,
	} {
		if _, err := spec.Decode([]byte(`{"node":"n1",`+input+`}`), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", input, err, want)
		}
	}
	if err := spec.CheckDefaults([]byte(`{"remediation":{"check":"a"}}`)); err == nil || !strings.Contains(err.Error(), "remediation: identifies one maintenance") {
		t.Errorf("as a default: %v", err)
	}
	for requestor, want := range map[string]bool{"health-a": true, "health-": false, "ops": false, "health-A": false} {
		if spec.IsRemediationRequestor(requestor) != want {
			t.Errorf("%s: %t", requestor, !want)
		}
	}
}
