package remediation

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
)

const (
	// pace is the shortest time between two reports where nobody waits for one, and reportAgain the longest between two where
	// nothing has changed.
	pace        = time.Second
	reportAgain = 10 * time.Minute
	// orphanedFor is how long a remediation waits for a check that does not run, before it decides by itself.
	orphanedFor = 30 * time.Minute
	// finalReports bounds how often the end is reported: a check that does not receive it finds out.
	finalReports = 5
	// maxRevision is more than anybody counts to, maxLead far more than the orders of which one can be the first that arrives: a
	// later order would not count.
	maxRevision = 1 << 40
	maxLead     = 1 << 20
)

type order struct{ api.RemediationOrder }

// Check implements controller.Payload: it refuses an order that cannot be meant for this remediation.
func (o order) Check(r *remediation, _ time.Time) error {
	known := r.Order.Revision
	switch {
	case o.RunID != "" && o.RunID != r.Info.Run:
		return fmt.Errorf("it is meant for run %.40q, and this is run %s", o.RunID, r.Info.Run)
	case o.RemediationOrder.Check != r.in.Check:
		return fmt.Errorf("it is of check %.60q, and this is a remediation of check %s", o.RemediationOrder.Check, r.in.Check)
	case o.Node != "" && o.Node != r.in.Node:
		return fmt.Errorf("it is about node %.60q", o.Node)
	case api.RunID(o.CheckRunID) != nil:
		return fmt.Errorf("checkRunId: %w", api.RunID(o.CheckRunID))
	case o.Revision < 0 || o.Revision > maxRevision || known > 0 && o.Revision > known+maxLead:
		return fmt.Errorf("revision: %d is not one that follows %d", o.Revision, known)
	case o.Step < 0:
		return fmt.Errorf("step: %d is negative", o.Step)
	case len(o.TimedOut) > maxSteps || slices.ContainsFunc(o.TimedOut, func(i int) bool { return i < 0 }):
		return fmt.Errorf("timedOut: %.100v: these are no steps", o.TimedOut)
	}
	return nil
}

func (o order) Apply(r *remediation, now time.Time) string {
	r.Reports.Urgent = r.Reports.Urgent || o.Report
	r.Reports.Orphaned, r.Reports.Failed = time.Time{}, 0
	r.ClearBackoff(controller.Key{Kind: sendReport})
	switch {
	case r.in.Resume && r.Order.Revision == 0 && o.Revision == 0:
		r.OrderBy = now
		return "the check has no order: what an earlier workflow has made is looked for"
	case o.Revision <= r.Order.Revision:
		return "it is done already, or being done"
	}
	want := o.Order
	want.Why = bounds.Cut(want.Why, bounds.Text)
	want.Healthy = want.Healthy || r.Order.Healthy // it is never withdrawn
	// A check that was started anew may have more steps than there were.
	last := len(r.in.Steps) - 1
	want.Step = min(max(want.Step, r.Order.Step), last)
	want.TimedOut = slices.DeleteFunc(want.TimedOut, func(i int) bool { return i > last })
	want.Old = want.Old || r.Order.Old
	r.Order = want
	r.Progress.Revision, r.Reports.Urgent = want.Revision, true
	return "taken"
}

func (r *remediation) report(now time.Time, d *controller.Decision) {
	if r.reported() || r.hasNothingToReport() {
		return
	}
	due, why := now, ""
	switch {
	case r.Reports.Urgent, r.Progress.Ended:
	case textOf(r.Progress) != r.Reports.Last:
		due, why = r.Reports.At.Add(pace), "report what has changed"
	default:
		due, why = r.Reports.At.Add(reportAgain), "report that it goes on"
	}
	if now.Before(due) {
		d.WakeAt(due, why)
		return
	}
	said := r.Progress
	said.Steps = slices.Clone(said.Steps)
	d.Effects = append(d.Effects, controller.Signal{
		Meta: controller.Meta{Key: controller.Key{Kind: sendReport}, Summary: "report to the check"},
		To:   api.HealthCheckID(r.Info.Cluster, r.in.Check), Name: api.SignalRemediationProgress, Payload: said,
	})
}

// hasNothingToReport reports whether nothing has happened but the start, which the check knows of.
func (r *remediation) hasNothingToReport() bool {
	p := &r.Progress
	return r.Reports.At.IsZero() && !r.Reports.Urgent && !r.in.Resume && len(p.Steps) == 0 && p.Failure == "" && p.Waiting == "" && p.Trouble == "" && !p.Ended
}

// textOf is a report in words to compare it with others.
func textOf(p api.RemediationProgress) string {
	text, _ := json.Marshal(p) // of texts, numbers and times
	return string(text)
}

func (r *remediation) delivered(o controller.Outcome, now time.Time) {
	said := o.Begun.(controller.Signal).Payload.(api.RemediationProgress)
	reports := &r.Reports
	reports.At = now
	if o.Err == nil {
		reports.Last, reports.Failed, reports.Orphaned = textOf(said), 0, time.Time{}
		reports.Urgent = reports.Urgent && said.Revision < r.Progress.Revision
		reports.Final = reports.Final || said.Ended
		return
	}
	reports.Last = ""
	reports.Failed++
	if call.IsNobody(o.Err) {
		if reports.Orphaned.IsZero() {
			reports.Orphaned = now
		}
		reports.Final = reports.Final || said.Ended // there is nobody to receive it
		return
	}
	r.Note(now, "the check did not receive a report", call.Cause(o.Err))
}

// reported reports whether the check knows that it has ended, or does not receive that.
func (r *remediation) reported() bool {
	return r.Progress.Ended && (r.Reports.Final || r.Reports.Failed >= finalReports)
}

// alone reports whether the check has not run for so long that the remediation decides by itself.
func (r *remediation) alone(now time.Time) bool {
	return !r.Reports.Orphaned.IsZero() && !now.Before(r.Reports.Orphaned.Add(orphanedFor))
}
