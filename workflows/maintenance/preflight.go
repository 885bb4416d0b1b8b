package maintenance

import (
	"errors"

	preflightactivity "drydock.dev/drydock/activities/preflight"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	preflights "drydock.dev/drydock/workflows/preflight"
)

// problemsNamed is how many problems are named where only a sentence is wanted.
const problemsNamed = 3

// preflight finds what would stop the drain, before a slot is requested. As the specification says it ends the maintenance for that, or
// waits until there is nothing.
func (a *admission) preflight() error {
	if a.spec.Preflight == spec.PreflightOff {
		return nil
	}
	a.journal.enter(api.Pending, "")
	a.journal.waiting("the preflight")
	var report preflight.Report
	var err error
	if a.spec.Preflight == spec.PreflightFail {
		report, err = preflights.Check(a.control.steps, a.spec, nil)
	} else {
		report, err = a.awaitPreflight()
	}
	if err != nil {
		return a.control.stepFailed(err)
	}
	if report.Has(preflight.NodeMissing) {
		return ending{Phase: api.Failed, Kind: api.ErrorNodeNotFound, Message: report.Problems[0].String()}
	}
	if report.ProblemCount() > 0 {
		return ending{Phase: api.Failed, Kind: api.ErrorPreflightFailed, Message: "the drain would be stopped: " + report.Summary(problemsNamed)}
	}
	a.journal.note("preflight: nothing would stop the drain")
	return nil
}

func (a *admission) awaitPreflight() (preflight.Report, error) {
	a.inPreflight = true
	defer func() { a.inPreflight = false }()
	ctx := call.In(call.Long(a.control.steps, "wait until nothing would stop a drain of "+a.spec.Node), api.LanePreflights)
	report, err := run[preflight.Report](ctx, call.Preflights.AwaitPreflight, preflightactivity.Input{
		Node: a.spec.Node, Drain: a.spec.Judged(), WaitsForPods: a.spec.WaitForPodCompletion != nil, BlockedSignal: api.SignalDrainBlocked,
	})
	if err == nil && report.ProblemCount() > 0 && !report.Has(preflight.NodeMissing) {
		err = errors.New("the preflight ended before its time")
	}
	return report, err
}

func (a *admission) preflightBlocked(progress api.DrainProgress) {
	if len(progress.Blockers) == 0 {
		a.journal.waiting("the preflight")
		return
	}
	a.journal.waiting("a fix for what would stop the drain: " + firstBlocker(progress, "more problem"))
}
