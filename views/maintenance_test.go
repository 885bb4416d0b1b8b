package views

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

func TestUntilWhenANodeIsValidated(t *testing.T) {
	began := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	m := api.MaintenanceOf(api.Status{
		Phase: api.Validating, Since: began, Validation: &api.ValidationStatus{State: validation.Waiting},
		Spec: spec.Maintenance{Node: "a", Validation: &validation.Validation{Deadline: period.Duration(10 * time.Minute)}},
	})
	text := document.Markdown(Maintenance(m, At(began.Add(2*time.Minute))))
	if want := "12:10:00 UTC (8m00s left, then it waits for a decision)"; !strings.Contains(text, want) {
		t.Errorf("%s\nwant %s", text, want)
	}
}

func TestWhoWasVerifiedIsShownBesideWhoSaysSo(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for want, a := range map[string]api.ApprovalStatus{
		" by amy: fine": {At: at, By: "amy", Comment: "fine"},
		" by amy (verified: jwt:amy@example.com)":             {At: at, By: "amy", Principal: "jwt:amy@example.com"},
		" (verified: jwt:amy@example.com): without saying so": {At: at, Principal: "jwt:amy@example.com", Comment: "without saying so"},
	} {
		if got := byAt(&a, At(at)); !strings.HasSuffix(got, want) {
			t.Errorf("%q, want %q at its end", got, want)
		}
	}
}
