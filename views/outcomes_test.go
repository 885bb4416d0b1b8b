package views_test

import (
	"io"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func seconds(n int) period.Duration { return period.Duration(time.Duration(n) * time.Second) }

func TestOutcomeTable(t *testing.T) {
	zero, three := 0, 3
	outcomes := []api.NodeOutcome{
		{Node: "worker-01", Result: api.OutcomeDone, ExitStatus: &zero, Duration: seconds(83)},
		{Node: "worker-02", Result: api.OutcomeFailed, ExitStatus: &three, Duration: seconds(5), Note: "exit status 3"},
		{Node: "worker-03", Result: api.OutcomeCancelled, Duration: seconds(1), Note: "another node failed before the node was ready"},
		{Node: "worker-04", Result: api.OutcomeNotStarted, Note: "another node failed"},
		{Node: "cp-01", Result: api.OutcomeSkipped, Note: "control plane"},
	}
	startertest.Golden(t, "outcomes", func(w io.Writer) { terminal.Show(w, views.NodeOutcomes(outcomes)) })
	startertest.Golden(t, "outcomes_json", func(w io.Writer) {
		o := terminal.Output{Format: terminal.FormatJSON}
		if err := o.Write(w, outcomes); err != nil {
			t.Error(err)
		}
	})
}
