package nodework

import (
	"io"
	"testing"
	"time"

	"drydock/starter/startertest"
	"drydock/starter/terminal"
)

func TestOutcomeTable(t *testing.T) {
	zero, three := 0, 3
	outcomes := []Outcome{
		{Node: "worker-01", Result: resultDone, ExitStatus: &zero, Duration: 83 * time.Second},
		{Node: "worker-02", Result: ResultFailed, ExitStatus: &three, Duration: 5 * time.Second, Note: "exit status 3"},
		{Node: "worker-03", Result: resultCancelled, Duration: time.Second, Note: "another node failed before the node was ready"},
		{Node: "worker-04", Result: resultNotStarted, Note: "another node failed"},
		{Node: "cp-01", Result: ResultSkipped, Note: "control plane"},
	}
	startertest.Golden(t, "outcomes", func(w io.Writer) { RenderOutcomes(w, outcomes) })
	startertest.Golden(t, "outcomes_json", func(w io.Writer) {
		o := terminal.Output{Format: terminal.FormatJSON}
		if err := o.Write(w, outcomes, nil); err != nil {
			t.Error(err)
		}
	})
}
