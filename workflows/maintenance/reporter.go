package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
)

// reporterState is what the workflow knows that the maintenance reports to (Status.ReportsTo): that of the input, until report-to names another.
// The maintenance signals it when the node becomes Ready or RequestorFailed, when it no longer is, and at the end. What happens before and
// between is not reported: a node that is given back again and again would fill the other workflow's history.
type reporterState struct {
	Reported reported `json:"reported,omitzero"`
	// Asked is set where a report-to is not answered yet, and Answers is its ID.
	Asked   bool   `json:"asked,omitempty"`
	Answers string `json:"answers,omitempty"`
}

// reported is what is reported when it changes; it is empty while the node is not yet its requestors'.
type reported struct {
	Phase api.Phase `json:"phase,omitempty"`
	Since time.Time `json:"since,omitzero"`
}

func (o *outbox) toReport() reported {
	s := o.journal.status()
	if s.Phase == api.Ready || s.Phase == api.RequestorFailed || s.Phase.Ended() {
		return reported{Phase: s.Phase, Since: s.Since}
	}
	return reported{}
}

// beginReports takes the workflow that the input names, unless a report-to that came before the input was read has named one.
func (o *outbox) beginReports() {
	if to := o.spec.ReportTo; to != nil && o.journal.status().ReportsTo == nil {
		o.journal.change(func(s *api.Status) { s.ReportsTo = to })
	}
}

func (o *outbox) reportDue() bool {
	return o.journal.status().ReportsTo != nil && (o.Asked || o.toReport() != o.Reported)
}

// report sends one report after the other, so that none overtakes another.
func (o *outbox) report(ctx workflow.Context) {
	for workflow.Await(ctx, o.reportDue) == nil {
		s := o.journal.status()
		to := *s.ReportsTo
		report := api.MaintenanceReport{
			WorkflowID: o.workflowID, RunID: o.runID, Node: o.spec.Node, Requestor: o.spec.Requestor, Phase: s.Phase, Since: s.Since,
			ReadyDeadline: s.ReadyDeadline, Message: cmp.Or(s.Failure, s.WaitingFor), Answers: o.Answers, DoneID: doneID(s, o.spec.Requestor),
		}
		o.reporting, o.Reported, o.Asked, o.Answers = true, o.toReport(), false, ""
		err := workflow.SignalExternalWorkflow(ctx, to.Workflow, "", to.Signal, report).Get(ctx, nil)
		o.reporting = false
		if err != nil {
			o.stopReporting(to, err)
		}
	}
}

// doneID is the ID of the done of a requestor; empty until then.
func doneID(s api.Status, requestor string) string {
	for _, one := range s.Requestors {
		if one.Name == requestor {
			return one.DoneID
		}
	}
	return ""
}

// stopReporting gives up a workflow that takes no signal: it has ended, or has had as many as a workflow may. One that begins again asks again.
func (o *outbox) stopReporting(to spec.ReportTo, err error) {
	o.journal.note(fmt.Sprintf("does not report to workflow %s any more: %s", to.Workflow, call.Cause(err)))
	o.journal.change(func(s *api.Status) {
		if s.ReportsTo != nil && *s.ReportsTo == to {
			s.ReportsTo = nil
		}
	})
}

func (o *outbox) checkReportTo(p api.ReportTo) error {
	if err := o.thisRun(p.Run); err != nil {
		return err
	}
	if err := api.CheckReportTo(p.To()); err != nil {
		return err
	}
	if o.spec.Lockstep {
		return errors.New("plans share this maintenance, and it reports to them: ask the plan")
	}
	if now := o.journal.status().ReportsTo; now != nil && now.Workflow != p.Workflow && !p.Replace {
		return fmt.Errorf("it reports to workflow %s: with replace it reports to this one instead", now.Workflow)
	}
	return nil
}

func (o *outbox) applyReportTo(p api.ReportTo) string {
	o.journal.change(func(s *api.Status) { s.ReportsTo = new(p.To()) })
	o.Asked, o.Answers = true, p.ID
	return fmt.Sprintf("reports to workflow %s as signal %s", p.Workflow, p.Signal)
}
