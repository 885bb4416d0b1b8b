package nodework

import (
	"io"
	"testing"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

func seconds(n int) period.Duration { return period.Duration(time.Duration(n) * time.Second) }

func TestOutcomeTable(t *testing.T) {
	zero, three := 0, 3
	outcomes := []Outcome{
		{Node: "worker-01", Result: resultDone, ExitStatus: &zero, Duration: seconds(83)},
		{Node: "worker-02", Result: ResultFailed, ExitStatus: &three, Duration: seconds(5), Note: "exit status 3"},
		{Node: "worker-03", Result: resultCancelled, Duration: seconds(1), Note: "another node failed before the node was ready"},
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

func TestRolloutCodes(t *testing.T) {
	of := func(results ...result) []Outcome {
		outcomes := make([]Outcome, len(results))
		for i, r := range results {
			outcomes[i].Result = r
		}
		return outcomes
	}
	for name, c := range map[string]struct {
		outcomes []Outcome
		want     int
	}{
		"all done":             {of(resultDone, resultDone, ResultSkipped), 0},
		"one failed":           {of(resultDone, ResultFailed, resultNotStarted), 1},
		"cancelled":            {of(resultDone, resultCancelled), 3},
		"not started":          {of(resultDone, resultNotStarted), 3},
		"cancelled and failed": {of(resultCancelled, ResultFailed), 1},
	} {
		if got := RolloutCode(c.outcomes); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
