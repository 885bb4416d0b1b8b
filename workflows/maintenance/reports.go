package maintenance

import (
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
)

func (p *plans) open() {
	if p.planID != "" {
		workflow.GoNamed(p.control.life, "report to the plan", p.reportHeld)
	}
	if p.spec.Lockstep {
		workflow.GoNamed(p.control.life, "report to the lockstep", p.reportToLockstep)
	}
}

// reportToLockstep reports every change while the maintenance runs, and repeats the report where the lockstep sends nothing.
func (p *plans) reportToLockstep(ctx workflow.Context) {
	pause := reportAgainFirst
	for {
		revision := p.Revision
		news := p.control.awaitAlwaysUpTo(ctx, pause, "report to the lockstep again", func() bool { return p.closed || p.due() })
		if pause = min(2*pause, reportAgainLast); news || p.Revision != revision {
			pause = reportAgainFirst
		}
		if p.due() && !p.Owed {
			urgent := func() bool { return p.closed || p.Owed || p.emptied() }
			p.control.awaitAlwaysUpTo(ctx, reportWithin, "the next report to the lockstep", urgent)
			if !p.closed && !p.due() {
				continue
			}
		}
		if early := reportEvery - workflow.Now(ctx).Sub(p.sentAt); early > 0 && !p.closed {
			p.control.awaitAlwaysUpTo(ctx, early, "the next report to the lockstep, not at once", func() bool { return p.closed || p.emptied() })
		}
		if p.closed {
			return
		}
		p.send(ctx)
	}
}

// emptied reports whether the node was drained to its targets since the last report. Other nodes wait for that report, so it is not delayed.
func (p *plans) emptied() bool {
	now := p.standing()
	return now.Drained && (p.Reported == nil || !p.Reported.Drained || p.Reported.Rise != now.Rise)
}

func (p *plans) send(ctx workflow.Context) {
	now := p.standing()
	p.sending, p.sentMeanwhile, p.Owed, p.Reported, p.sentAt = true, true, false, &now, workflow.Now(ctx)
	defer func() { p.sending = false }()
	if err := workflow.SignalExternalWorkflow(ctx, p.lockstepID(), "", api.SignalNodeProgress, p.progress(now)).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Info("the lockstep did not get a report", "error", err)
	}
}

// close reports the end to the lockstep, as the last report.
func (p *plans) close() {
	if !p.spec.Lockstep {
		return
	}
	p.closed = true
	p.control.awaitAlways(func() bool { return !p.sending })
	p.send(p.control.life)
}

// held reports whether the node stays out of service until somebody decides.
func (p *plans) held() bool {
	return p.journal.phase() == api.RequestorFailed || p.validator.undecided()
}

// backSignal reports to the plan that the node is back; the activity that releases the node sends it. It is nil without a plan.
func (p *plans) backSignal() *node.Signal {
	if p.planID == "" {
		return nil
	}
	payload := encode(api.NodeNews{Node: p.spec.Node, RunID: p.runID, Back: true})
	return &node.Signal{WorkflowID: p.planID, Name: api.SignalNodeNews, Payload: payload}
}

// reportHeld reports to the plan while the maintenance runs; the server reports the end.
func (p *plans) reportHeld(ctx workflow.Context) {
	for workflow.Await(ctx, func() bool { return p.held() != p.reportedHeld }) == nil {
		p.reportedHeld, p.reporting = p.held(), true
		news := api.NodeNews{Node: p.spec.Node, RunID: p.runID, Held: p.reportedHeld, Why: p.journal.status().Failure}
		if err := workflow.SignalExternalWorkflow(ctx, p.planID, "", api.SignalNodeNews, news).Get(ctx, nil); err != nil {
			// The plan may have ended.
			workflow.GetLogger(ctx).Info("the plan did not get a signal", "plan", p.planID, "error", err)
		}
		p.reporting = false
	}
}
