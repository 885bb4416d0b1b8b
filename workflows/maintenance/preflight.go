package maintenance

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	preflightactivity "drydock/activities/preflight"
	"drydock/api"
	"drydock/rules/preflight"
	"drydock/rules/spec"
	"drydock/workflows/call"
	preflights "drydock/workflows/preflight"
)

// problemsNamed is how many problems of a preflight are named where only a sentence is wanted.
const problemsNamed = 3

// preflight looks, before a slot is asked for, at what would stop the drain, and as the specification asks ends the
// maintenance for it or waits until there is nothing.
func (m *maintenance) preflight() error {
	if m.spec.Preflight == spec.PreflightOff {
		return nil
	}
	m.enter(api.Pending, "")
	m.waiting("a preflight of the node")
	var report preflight.Report
	var err error
	if m.spec.Preflight == spec.PreflightFail {
		report, err = preflights.Check(m.steps, m.spec, nil)
	} else {
		report, err = m.awaitPreflight()
	}
	if err != nil {
		return m.stepFailed(err)
	}
	if report.Has(preflight.NodeMissing) {
		return ending{phase: api.Failed, kind: api.ErrorNodeNotFound, message: report.Problems[0].String()}
	}
	if report.ProblemCount() > 0 {
		return ending{phase: api.Failed, kind: api.ErrorPreflightFailed, message: "the drain would be stopped: " + report.Summary(problemsNamed)}
	}
	m.note("preflight: nothing would stop the drain")
	return nil
}

// awaitPreflight waits until nothing would stop the drain.
func (m *maintenance) awaitPreflight() (preflight.Report, error) {
	m.inPreflight = true
	defer func() { m.inPreflight = false }()
	var report preflight.Report
	ctx := call.Long(m.steps, "wait until nothing would stop a drain of "+m.spec.Node)
	err := workflow.ExecuteActivity(ctx, call.Preflights.AwaitPreflight, preflightactivity.Input{
		Node: m.spec.Node, Drain: m.spec.Drain, WaitsForPods: m.spec.WaitForPodCompletion != nil, BlockedSignal: api.SignalDrainBlocked,
	}).Get(ctx, &report)
	if err == nil && report.ProblemCount() > 0 && !report.Has(preflight.NodeMissing) {
		err = errors.New("the preflight ended before its time")
	}
	return report, err
}

// stoppedBy shows what a preflight waits for.
func (m *maintenance) stoppedBy(p api.DrainProgress) {
	if len(p.Blockers) == 0 {
		m.waiting("a preflight of the node")
		return
	}
	first := p.Blockers[0]
	text := fmt.Sprintf("what would stop the drain to be mended: %s: %s", first.Pod, first.Message)
	if more := len(p.Blockers) - 1 + p.MoreBlockers; more > 0 {
		text += fmt.Sprintf(" (and %d more problems)", more)
	}
	m.waiting(text)
}
