package scheduler

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/call"
)

const (
	// maxDecisions bounds the log in the state, and maxEntry the text of each entry, in bytes; the history has everything.
	maxDecisions = 50
	maxEntry     = 1000
)

// firstRetry is the pause after the first failure. It doubles up to maxRetry, and up to maxPersonRetry where only a person can help.
const (
	firstRetry     = 10 * time.Second
	maxRetry       = time.Minute
	maxPersonRetry = time.Hour
)

// decisions is the log of what the scheduler and its operators decided.
type decisions struct {
	*loop
	// trouble is what fails at present, failures how often in a row.
	trouble  *api.Trouble
	failures int
}

// fails notes what failed and why, and returns how long to wait before the next try.
func (d *decisions) fails(what string, err error, most time.Duration) time.Duration {
	if d.trouble == nil || d.trouble.What != what {
		d.trouble, d.failures = &api.Trouble{What: what, Since: d.now()}, 0
	}
	if call.IsError(err, api.ErrorMissingPermission) {
		most = maxPersonRetry
	}
	wait := period.Doubled(firstRetry, most, d.failures)
	d.failures++
	d.trouble.Why, d.trouble.NextTry = bounds.Cut(call.Cause(err), maxEntry), d.now().Add(wait)
	d.record("", what, call.Cause(err))
	return wait
}

func (d *decisions) works(what string) {
	if d.trouble != nil && d.trouble.What == what {
		d.trouble, d.failures = nil, 0
	}
}

// record logs a decision. One that recurs is kept once, so that it does not displace what people decided.
func (d *decisions) record(by, what, why string) {
	by, what, why = bounds.Cut(by, maxName), bounds.Cut(what, maxEntry), bounds.Cut(why, maxEntry)
	d.Decisions = slices.DeleteFunc(d.Decisions, func(e api.RecordedDecision) bool { return e.By == by && e.What == what && e.Why == why })
	d.Decisions = append(d.Decisions, api.RecordedDecision{At: d.now(), By: by, What: what, Why: why})
	d.Decisions = d.Decisions[max(len(d.Decisions)-maxDecisions, 0):]
	workflow.GetLogger(d.ctx).Info("scheduler", "by", by, "what", what, "why", why)
}
