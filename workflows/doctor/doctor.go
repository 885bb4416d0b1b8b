// Package doctor is the workflow that lists inconsistencies, and heals those that need no person.
package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	doctoractivity "drydock.dev/drydock/activities/doctor"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

const (
	// usualPause is longer than any inconsistency lasts that goes away by itself.
	usualPause = 5 * time.Second
	// evaluateWithin bounds one evaluation, and healWithin the healing of one finding.
	evaluateWithin = 10 * time.Minute
	healWithin     = 2 * time.Minute
	// rounds bounds how often findings are evaluated again: a fix may reveal what another fix heals.
	rounds = 4
	// maxHealed bounds those listed in a report.
	maxHealed = 300
)

// examination is one run of Doctor.
type examination struct {
	ctx    workflow.Context
	in     api.DoctorInput
	names  doctoractivity.Names
	report doctor.Report
	// tried has the outcomes of the fixes that were tried, by finding.
	tried map[string]string
}

// Doctor lists inconsistencies between the cluster, the scheduler and the maintenances. With fix it heals those that need no person, by one
// activity per finding, so that its history is the record.
func Doctor(ctx workflow.Context, input converter.RawValue) (doctor.Report, error) {
	in, err := decode(inbox.Payload(input))
	if err != nil {
		return doctor.Report{}, inbox.InvalidSpec(err)
	}
	queue := workflow.GetInfo(ctx).TaskQueueName
	cluster := api.ClusterOf(queue)
	d := &examination{ctx: ctx, in: in, tried: map[string]string{}, names: doctoractivity.Names{
		Maintenances: api.MaintenanceIDPrefix(cluster), Transitions: api.ProfileTransitionIDPrefix(cluster), Scheduler: api.SchedulerID(cluster),
		Listed:     execution.InventoryInput{WorkflowType: api.NodeMaintenanceType, TaskQueue: queue},
		QueryState: api.QueryState, QuerySlot: api.QuerySlot, QueryStatus: api.QueryStatus,
		Deliveries: []string{api.NotificationType, api.AuditRecordType},
		Lost:       in.Lost,
	}}
	return d.run()
}

func decode(input []byte) (api.DoctorInput, error) {
	in, err := inbox.Decode[api.DoctorInput](input)
	if err != nil {
		return in, err
	}
	in.Pause = cmp.Or(in.Pause, spec.Duration(usualPause))
	var errs []error
	if in.Fix && in.By == "" {
		errs = append(errs, errors.New("by: say who wants it healed"))
	}
	for i, name := range in.Nodes {
		if err := spec.NodeName(name); err != nil {
			errs = append(errs, fmt.Errorf("nodes[%d]: %w", i, err))
		}
	}
	if len(in.Lost) > doctor.MaxLost {
		errs = append(errs, fmt.Errorf("lost: %d namespaces: %d at most", len(in.Lost), doctor.MaxLost))
	}
	for i, id := range in.Lost {
		if err := doctor.NamespaceID(id); err != nil {
			errs = append(errs, fmt.Errorf("lost[%d]: %w", i, err))
		}
	}
	return in, errors.Join(errs...)
}

func (d *examination) run() (doctor.Report, error) {
	d.report = doctor.Report{Fix: d.in.Fix, By: d.in.By, Comment: d.in.Comment, Nodes: d.in.Nodes, Lost: d.in.Lost}
	for round := 1; ; round++ {
		if err := d.find(); err != nil {
			return doctor.Report{}, err
		}
		if !d.in.Fix || round == rounds || !d.heal() {
			break
		}
	}
	workflow.SetCurrentDetails(d.ctx, document.Details(views.Doctor(d.report, false, views.Brief())))
	return d.report, nil
}

// find evaluates everything twice, and keeps the findings of both evaluations.
func (d *examination) find() error {
	first, err := d.evaluate(nil)
	if err != nil {
		return err
	}
	found := first.Findings
	if len(found) > 0 {
		timer := workflow.NewTimerWithOptions(d.ctx, d.in.Pause.Std(), workflow.TimerOptions{Summary: "what is so in passing passes"})
		if err := timer.Get(d.ctx, nil); err != nil {
			return err
		}
		again, err := d.evaluate(runsIn(found))
		if err != nil {
			return err
		}
		found = doctor.Confirm(found, again.Findings)
	}
	for i := range found {
		found[i].Tried = d.tried[found[i].Key()]
	}
	d.report.Missing = first.Missing
	d.report.At, d.report.Looked, d.report.Notes, d.report.MoreNotes = first.At, first.Looked, first.Notes, first.MoreNotes
	d.noteHealed(found)
	d.report.Findings, d.report.More = found, first.More
	if d.report.Findings == nil {
		d.report.Findings = []doctor.Finding{}
	}
	return nil
}

// runsIn returns the runs to evaluate again. The list is never empty: that would stand for all runs.
func runsIn(findings []doctor.Finding) []string {
	runs := []string{""}
	for _, f := range findings {
		if f.RunID != "" {
			runs = append(runs, f.RunID)
		}
	}
	slices.Sort(runs)
	return slices.Compact(runs)
}

// evaluate returns the present inconsistencies, of all maintenances or of the given runs.
func (d *examination) evaluate(runs []string) (found doctor.Evaluation, err error) {
	summary := "look at everything"
	if runs != nil {
		summary = "look again"
	}
	ctx := call.Within(call.Long(d.ctx, summary), evaluateWithin)
	err = workflow.ExecuteActivity(ctx, call.Doctors.Look, doctoractivity.EvaluateInput{Names: d.names, Nodes: d.in.Nodes, Runs: runs}).Get(ctx, &found)
	if err != nil {
		return found, fmt.Errorf("looking: %w", err)
	}
	return found, nil
}

// heal tries the fixes that were not tried yet, and reports whether there were any.
func (d *examination) heal() (tried bool) {
	for _, f := range d.report.Findings {
		if f.Fix == "" || f.Tried != "" {
			continue
		}
		tried = true
		ctx := call.Within(call.Long(d.ctx, fmt.Sprintf("%s: %s", f.Fix, strings.TrimPrefix(f.Node+" ", " ")+string(f.Kind))), healWithin)
		var did string
		err := workflow.ExecuteActivity(ctx, call.Doctors.Heal, doctoractivity.HealInput{
			Names: d.names, Finding: f, By: d.in.By, Comment: d.in.Comment,
			SignalRequest: api.SignalSlotRequest, SignalRelease: api.SignalSlotRelease, SignalChanged: api.SignalNodeChanged,
		}).Get(ctx, &did)
		if err != nil {
			did = "failed: " + call.Cause(err)
		}
		d.tried[f.Key()] = did
	}
	return tried
}

// noteHealed moves findings to the healed ones that were tried and are not found any more.
func (d *examination) noteHealed(now []doctor.Finding) {
	found := map[string]bool{}
	for _, f := range now {
		found[f.Key()] = true
	}
	for _, f := range d.report.Findings {
		did, tried := d.tried[f.Key()]
		if !tried || found[f.Key()] {
			continue
		}
		if len(d.report.Healed) == maxHealed {
			d.report.MoreHealed++
			continue
		}
		f.Tried = did
		d.report.Healed = append(d.report.Healed, doctor.Healed{Finding: f, At: d.report.At})
	}
}
