package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"slices"
	"time"
)

const (
	// maxDecisions bounds the log in the state, and maxEntry the words of each entry; the history has everything.
	maxDecisions = 50
	maxEntry     = 1000
)

const (
	// tryAgain is the pause after what failed for the first time. It doubles up to tryAgainMost, and up to tryAgainLast
	// where only a person can change it.
	tryAgain     = 10 * time.Second
	tryAgainMost = time.Minute
	tryAgainLast = time.Hour
)

// decisions is the log of what the scheduler and its operators decided.
type decisions struct {
	*loop
	entries []api.RecordedDecision
	// trouble is what fails at present; failures counts how often it has in a row.
	trouble  *api.Trouble
	failures int
}

// fails notes what failed and why, and returns how long to wait before it is tried again, at most so long.
func (d *decisions) fails(what string, err error, most time.Duration) time.Duration {
	if d.trouble == nil || d.trouble.What != what {
		d.trouble, d.failures = &api.Trouble{What: what, Since: d.now()}, 0
	}
	if missingPermission(err) {
		most = tryAgainLast
	}
	wait := doubled(tryAgain, most, d.failures)
	d.failures++
	d.trouble.Why, d.trouble.NextTry = bounds.Cut(call.Cause(err), maxEntry), d.now().Add(wait)
	d.record("", what, call.Cause(err))
	return wait
}

// works notes that something does not fail any more.
func (d *decisions) works(what string) {
	if d.trouble != nil && d.trouble.What == what {
		d.trouble, d.failures = nil, 0
	}
}

func missingPermission(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && cause.Type() == api.ErrorMissingPermission
}

// record logs a decision; one that recurs is kept once, so that it does not displace what people decided.
func (d *decisions) record(by, what, why string) {
	by, what, why = bounds.Cut(by, maxName), bounds.Cut(what, maxEntry), bounds.Cut(why, maxEntry)
	d.entries = slices.DeleteFunc(d.entries, func(e api.RecordedDecision) bool { return e.By == by && e.What == what && e.Why == why })
	d.entries = append(d.entries, api.RecordedDecision{At: d.now(), By: by, What: what, Why: why})
	if extra := len(d.entries) - maxDecisions; extra > 0 {
		d.entries = d.entries[extra:]
	}
	workflow.GetLogger(d.ctx).Info("scheduler", "by", by, "what", what, "why", why)
}
