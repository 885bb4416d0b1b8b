package views

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
)

// NodeOutcomes has a line for each node on which a command was to work, and counts them.
func NodeOutcomes(all []api.NodeOutcome) (d document.Document) {
	t := document.Table{Header: []string{"node", "result", "duration", "exit status", "note"}}
	counts := map[api.NodeResult]int{}
	for _, o := range all {
		counts[o.Result]++
		duration, status := "-", "-"
		if o.Duration > 0 {
			duration = period.Age(o.Duration.Std().Round(time.Second))
		}
		if o.ExitStatus != nil {
			status = strconv.Itoa(*o.ExitStatus)
		}
		note, _, _ := strings.Cut(o.Note, "\n")
		t.AddPainted(1, outcomeStyle(o.Result), o.Node, string(o.Result), duration, status, note)
	}
	d.Table(t)
	var parts []string
	for _, result := range []api.NodeResult{api.OutcomeDone, api.OutcomeFailed, api.OutcomeCancelled, api.OutcomeNotStarted, api.OutcomeSkipped} {
		if counts[result] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", counts[result], result))
		}
	}
	d.Paragraph("%s: %s", number.Of(len(all), "node"), strings.Join(parts, ", "))
	return d
}

func outcomeStyle(r api.NodeResult) document.Style {
	switch r {
	case api.OutcomeDone:
		return document.Good
	case api.OutcomeFailed:
		return document.Bad
	default:
		return document.Faint
	}
}
