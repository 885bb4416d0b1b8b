package show

import (
	"io"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
)

func TestPreflightSaysWhatWouldBeDone(t *testing.T) {
	var text strings.Builder
	Preflights(&text, []preflight.Report{{Node: "worker-01", Escalation: []spec.Rung{
		{After: spec.Duration(30 * time.Minute), Do: spec.ExpireSLA}, {After: spec.Duration(30 * time.Minute), Do: spec.Kill},
	}}})
	if !strings.Contains(text.String(), "When the node does not empty: after 30m the SLA is over, after 30m kill\n") {
		t.Error(text.String())
	}
}

func TestPreflightTable(t *testing.T) {
	startertest.Golden(t, "preflight", func(w io.Writer) {
		Preflights(w, []preflight.Report{startertest.StoppedReport(), {Node: "worker-02"}})
	})
}
