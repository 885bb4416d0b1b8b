package scheduler

import (
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
)

const (
	// maxDecisions bounds the log in the state, and maxEntry the words of each entry; the history has everything.
	maxDecisions = 50
	maxEntry     = 1000
)

// decisions is the log of what the scheduler and its operators decided.
type decisions struct {
	*loop
	entries []api.RecordedDecision
}

// record logs a decision; one that recurs is kept once, so that it does not displace what people decided.
func (d *decisions) record(by, what, why string) {
	what, why = cut(what, maxEntry), cut(why, maxEntry)
	d.entries = slices.DeleteFunc(d.entries, func(e api.RecordedDecision) bool { return e.By == by && e.What == what && e.Why == why })
	d.entries = append(d.entries, api.RecordedDecision{At: d.now(), By: by, What: what, Why: why})
	if extra := len(d.entries) - maxDecisions; extra > 0 {
		d.entries = d.entries[extra:]
	}
	workflow.GetLogger(d.ctx).Info("scheduler", "by", by, "what", what, "why", why)
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
