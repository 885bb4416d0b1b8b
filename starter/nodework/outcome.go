package nodework

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// RolloutCode is the exit code of a rollout.
func RolloutCode(outcomes []Outcome) int {
	code := exit.OK
	for _, o := range outcomes {
		switch o.Result {
		case ResultFailed:
			return exit.Failed
		case resultCancelled, resultNotStarted:
			code = exit.Cancelled
		}
	}
	return code
}

// RenderOutcomes shows a line for each node, and counts them.
func RenderOutcomes(w io.Writer, outcomes []Outcome) {
	fmt.Fprintln(w)
	r := terminal.NewRows(w, "NODE", "RESULT", "DURATION", "EXIT STATUS", "NOTE")
	counts := map[result]int{}
	for _, o := range outcomes {
		counts[o.Result]++
		duration, status := "-", "-"
		if o.Duration > 0 {
			duration = period.Age(o.Duration.Std().Round(time.Second))
		}
		if o.ExitStatus != nil {
			status = fmt.Sprint(*o.ExitStatus)
		}
		note, _, _ := strings.Cut(o.Note, "\n")
		r.AddPainted(1, o.Result.style(), o.Node, string(o.Result), duration, status, note)
	}
	r.Done()
	var parts []string
	for _, kind := range []result{resultDone, ResultFailed, resultCancelled, resultNotStarted, ResultSkipped} {
		if counts[kind] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[kind], kind))
		}
	}
	fmt.Fprintf(w, "\n%s: %s\n", terminal.Plural(len(outcomes), "node"), strings.Join(parts, ", "))
}

// result is how the work on a node came out.
type result string

// The results of the work on a node.
const (
	resultDone       result = "done"
	ResultFailed     result = "failed"
	resultCancelled  result = "cancelled"
	resultNotStarted result = "not started"
	ResultSkipped    result = "skipped"
)

func (r result) style() document.Style {
	switch r {
	case resultDone:
		return document.Good
	case ResultFailed:
		return document.Bad
	}
	return document.Faint
}

// Outcome is the result of a session.
type Outcome struct {
	Node   string `json:"node"`
	Result result `json:"result"`
	// ExitStatus is the command's; absent where it did not run.
	ExitStatus *int            `json:"exitStatus,omitempty"`
	Duration   period.Duration `json:"duration,omitzero"`
	Note       string          `json:"note,omitempty"`
	// Code is what exec exits with.
	Code int `json:"-"`
}
