package plan

import (
	"fmt"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

// reportDue reports whether the workflow that the plan reports to is to hear something: an answer, or the end.
func (p *maintenancePlan) reportDue() bool {
	asked := p.Asked && (p.Known || p.Phase.Ended()) // a plan that was reset does not know yet what runs
	return p.ReportsTo != nil && (asked || p.Phase.Ended() && !p.Reported)
}

func (p *maintenancePlan) report() []controller.Effect {
	if !p.reportDue() {
		return nil
	}
	report := api.PlanReport{
		WorkflowID: p.Info.WorkflowID, RunID: p.Info.Run, Plan: p.name, Requestor: p.spec.Requestor, Phase: p.Phase, Since: p.Since, Message: p.summary(),
		Answers: p.Answers,
	}
	for i := range p.Nodes {
		// There are no more than plan.MaxAtOnce of them.
		if n := &p.Nodes[i]; n.State == plan.Running && n.RunID != "" && !p.Refused[n.Name] {
			report.Maintenances = append(report.Maintenances, api.NodeRun{Node: n.Name, RunID: n.RunID})
		}
	}
	return []controller.Effect{controller.Signal{
		Meta: controller.Meta{Key: controller.Key{Kind: sendReport, Of: report.Answers}, Summary: "report to workflow " + p.ReportsTo.Workflow},
		To:   p.ReportsTo.Workflow, Name: p.ReportsTo.Signal, Payload: report,
	}}
}

// reportSent takes whether a report came to its workflow. One that takes no signal has ended, or has had as many as a workflow may: it has to
// ask again.
func (p *maintenancePlan) reportSent(o controller.Outcome, now time.Time) {
	sent := o.Begun.(controller.Signal)
	report := sent.Payload.(api.PlanReport)
	answered := p.Answers == report.Answers // and nobody has asked since
	if answered {
		p.Asked, p.Answers = false, ""
	}
	p.Reported = p.Reported || report.Phase.Ended()
	if o.Err != nil {
		p.note(fmt.Sprintf("does not report to workflow %s any more: %s", sent.To, call.Cause(o.Err)), now)
		if answered {
			p.ReportsTo = nil
		}
	}
}

// reportTo has a plan report to a workflow, and its maintenances that begin from now on.
type reportTo struct{ api.ReportTo }

func (m reportTo) Check(p *maintenancePlan, _ time.Time) error {
	switch now := p.ReportsTo; {
	case m.Run != "" && m.Run != p.Info.Run && m.Run != p.Info.Current:
		return fmt.Errorf("it is meant for run %s, and this is run %s", m.Run, p.Info.Run)
	case p.Staged != nil:
		return fmt.Errorf("the plan is of strategy allAtOnce, which reports to no workflow: ask for its status")
	case now != nil && now.Workflow != m.Workflow && !m.Replace:
		return fmt.Errorf("it reports to workflow %s: with replace it reports to this one instead", now.Workflow)
	case len(m.ID) > maxNote:
		return fmt.Errorf("id: has %d bytes: at most %d are taken", len(m.ID), maxNote)
	}
	return api.CheckReportTo(m.To())
}

func (m reportTo) Apply(p *maintenancePlan, _ time.Time) string {
	p.ReportsTo, p.Asked, p.Answers, p.Reported = new(m.To()), true, m.ID, false
	return fmt.Sprintf("reports to workflow %s as signal %s; so do the maintenances that begin from now on", m.Workflow, m.Signal)
}
