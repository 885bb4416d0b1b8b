package maintenance

import (
	preflightactivity "drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/preflight"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/preflight"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	preflights "drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/preflight"
	"errors"
	"fmt"
	"go.temporal.io/sdk/workflow"
)

// problemsNamed is how many problems are named where only a sentence is wanted.
const problemsNamed = 3

// preflighter looks, before a slot is asked for, at what would stop the drain, and as the specification asks ends the
// maintenance for it or waits until there is nothing.
type preflighter struct {
	core
	// waits: a preflight is waited for, and what blocks is heard of from it.
	waits bool
}

func (p *preflighter) preflight() error {
	if p.spec.Preflight == spec.PreflightOff {
		return nil
	}
	p.journal.enter(api.Pending, "")
	p.journal.waiting("a preflight of the node")
	var report preflight.Report
	var err error
	if p.spec.Preflight == spec.PreflightFail {
		report, err = preflights.Check(p.stop.steps, p.spec, nil)
	} else {
		report, err = p.await()
	}
	if err != nil {
		return p.stop.stepFailed(err)
	}
	if report.Has(preflight.NodeMissing) {
		return ending{Phase: api.Failed, Kind: api.ErrorNodeNotFound, Message: report.Problems[0].String()}
	}
	if report.ProblemCount() > 0 {
		return ending{Phase: api.Failed, Kind: api.ErrorPreflightFailed, Message: "the drain would be stopped: " + report.Summary(problemsNamed)}
	}
	p.journal.note("preflight: nothing would stop the drain")
	return nil
}

// await waits until nothing would stop the drain.
func (p *preflighter) await() (preflight.Report, error) {
	p.waits = true
	defer func() { p.waits = false }()
	var report preflight.Report
	ctx := call.In(call.Long(p.stop.steps, "wait until nothing would stop a drain of "+p.spec.Node), api.LanePreflights)
	err := workflow.ExecuteActivity(ctx, call.Preflights.AwaitPreflight, preflightactivity.Input{
		Node: p.spec.Node, Drain: p.spec.Judged(), WaitsForPods: p.spec.WaitForPodCompletion != nil, BlockedSignal: api.SignalDrainBlocked,
	}).Get(ctx, &report)
	if err == nil && report.ProblemCount() > 0 && !report.Has(preflight.NodeMissing) {
		err = errors.New("the preflight ended before its time")
	}
	return report, err
}

// stoppedBy shows what a preflight waits for.
func (p *preflighter) stoppedBy(progress api.DrainProgress) {
	if len(progress.Blockers) == 0 {
		p.journal.waiting("a preflight of the node")
		return
	}
	first := progress.Blockers[0]
	text := fmt.Sprintf("what would stop the drain to be mended: %s: %s", first.Pod, first.Message)
	if more := len(progress.Blockers) - 1 + progress.MoreBlockers; more > 0 {
		text += fmt.Sprintf(" (and %d more problems)", more)
	}
	p.journal.waiting(text)
}
