package views_test

import (
	"io"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestPreflightSaysWhatWouldBeDone(t *testing.T) {
	var text strings.Builder
	terminal.Show(&text, views.Preflights([]preflight.Report{{Node: "worker-01", Escalation: []spec.Rung{
		{After: spec.Duration(30 * time.Minute), Do: spec.ExpireSLA}, {After: spec.Duration(30 * time.Minute), Do: spec.Kill},
	}}}, noon))
	if !strings.Contains(text.String(), "When the node does not empty: after 30m the SLA is over, after 30m kill\n") {
		t.Error(text.String())
	}
}

func TestPreflightTable(t *testing.T) {
	startertest.Golden(t, "preflight", func(w io.Writer) {
		terminal.Show(w, views.Preflights([]preflight.Report{startertest.StoppedReport(), {Node: "worker-02"}}, noon))
	})
	startertest.Golden(t, "preflight_details", func(w io.Writer) {
		_, _ = io.WriteString(w, document.Details(views.Preflight(startertest.StoppedReport(), views.Brief())))
	})
}

// TestAPreflightsFindingsAreWhole, in the Temporal UI too: they end with what to do.
func TestAPreflightsFindingsAreWhole(t *testing.T) {
	const end = "which drain.force or the label consents to"
	long := strings.Repeat("it has local data, ", 12) + end
	report := preflight.Report{Node: "worker-01", Problems: []preflight.Finding{{Code: preflight.MissingConsent, Object: "pod default/bare", Message: long}}}
	if got := document.Details(views.Preflight(report, views.Brief())); !strings.Contains(got, end) {
		t.Errorf("want %q in\n%s", end, got)
	}
}
