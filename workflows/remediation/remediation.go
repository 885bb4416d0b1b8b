// Package remediation is the workflow of one remediation of one node by a health check: it takes the node's lease, makes the
// remediation objects or has the node maintained, and takes all of it back once the check says that the node is healthy. What is
// to be done the check decides, by its orders.
package remediation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/inbox"
)

// remediation is the state of a NodeRemediation.
type remediation struct {
	controller.Base
	controller.Recorder
	// Order is the latest that was taken.
	Order health.Order `json:"order"`
	// Slot is that of a control-plane node.
	Slot   slot `json:"slot,omitzero"`
	Leased bool `json:"leased,omitempty"`
	// Maintained is the maintenance that runs; nil is none. Steps begin theirs one after the other, under one workflow ID.
	Maintained *Maintained     `json:"maintained,omitempty"`
	Progress   health.Progress `json:"progress"`
	Reports    reports         `json:"reports,omitzero"`
	// Seen is what the watch has reported last; nil is that this is not known any more.
	Seen *activity.RemediationSeen `json:"seen,omitempty"`
	// Old: the objects that are older than 48 h are marked.
	Old bool `json:"old,omitempty"`
	// Ending says why it ends without an order.
	Ending string `json:"ending,omitempty"`
	// Removing: the objects were deleted, and finalizers keep some.
	Removing bool `json:"removing,omitempty"`
	// Recovered: the node was seen healthy or gone while no check answered.
	Recovered bool `json:"recovered,omitempty"`
	// Sought: it is known which maintenance an earlier workflow has left.
	Sought bool `json:"sought,omitempty"`
	// OrderBy is until when a remediation that follows an earlier workflow waits for an order. Without one it looks for the objects that
	// the earlier workflow has made; Looked is that this is done.
	OrderBy time.Time `json:"orderBy,omitzero"`
	Looked  bool      `json:"looked,omitempty"`
	// WasReset: an activity of before the reset may have made an object that is not known.
	WasReset bool `json:"wasReset,omitempty"`

	in api.RemediationInput
	// attributed: the namespace has search attributes.
	attributed bool
}

// reports are what the check has received.
type reports struct {
	// Last is the latest report that was delivered, and At when.
	Last string    `json:"last,omitempty"`
	At   time.Time `json:"at,omitzero"`
	// Urgent: the check waits for a report. Final: the end was reported.
	Urgent bool `json:"urgent,omitempty"`
	Final  bool `json:"final,omitempty"`
	// Failed counts the reports in a row that were not delivered.
	Failed int `json:"failed,omitempty"`
	// Orphaned is since when the check does not run.
	Orphaned time.Time `json:"orphaned,omitzero"`
}

// Maintained is a maintenance that a step has begun.
type Maintained struct {
	Step  int    `json:"step"`
	RunID string `json:"runId"`
	// Ending: its end was requested.
	Ending bool `json:"ending,omitempty"`
}

var messages = []controller.Message[*remediation]{
	{Name: api.SignalRemediationOrder, Payload: order{}, FromWorkflows: true},
	{Name: api.SignalSlotGranted, Payload: granted{}, FromWorkflows: true},
	{Name: api.SignalSlotPending, Payload: pending{}, FromWorkflows: true},
}

var queries = []controller.Query[*remediation]{
	{Name: api.QueryStatus, Doc: "the steps, how they stand, and what the check has ordered", Question: status{}},
	{Name: api.QuerySlot, Doc: "the slot that it holds or asks for, where the node is one of the control plane", Question: slotWanted{}},
}

// NodeRemediation remediates a node for a health check. Its workflow ID is api.RemediationID, its input an api.RemediationInput.
// Packed is what a run hands to the next.
func NodeRemediation(ctx workflow.Context, input converter.RawValue, packed []byte) (api.RemediationProgress, error) {
	info := controller.Identify(ctx)
	cluster, check, node, err := api.ParseRemediationID(info.WorkflowID)
	r := &remediation{}
	if err = info.Check(cluster, err); err == nil {
		r.in, err = decode(inbox.Payload(input), check, node)
	}
	if err != nil {
		return api.RemediationProgress{}, inbox.InvalidSpec(err)
	}
	_, r.attributed = workflow.GetTypedSearchAttributes(ctx).GetKeyword(api.AttributeKind)
	err = controller.Run(ctx, r, controller.Program[*remediation]{
		Type: api.NodeRemediationType, Messages: messages, Queries: queries, Input: input,
	}, packed)
	return r.Progress, err
}

const maxSteps = 50

func decode(input []byte, check, node string) (api.RemediationInput, error) {
	in, err := inbox.Decode[api.RemediationInput](input)
	switch {
	case err != nil:
		return in, err
	case in.Check != check || in.Node != node:
		return in, fmt.Errorf("check, node: the workflow ID is that of %s and %s", check, node)
	case len(in.Steps) == 0 || len(in.Steps) > maxSteps:
		return in, fmt.Errorf("steps: there are %d: want 1 to %d", len(in.Steps), maxSteps)
	case in.Step < 0 || in.Step >= len(in.Steps):
		return in, fmt.Errorf("step: %d: want 0 to %d", in.Step, len(in.Steps)-1)
	case in.Revision < 0:
		return in, fmt.Errorf("revision: %d is negative", in.Revision)
	case api.RunID(in.CheckRunID) != nil:
		return in, fmt.Errorf("checkRunId: %w", api.RunID(in.CheckRunID))
	}
	for i, step := range in.Steps {
		if (step.Template == nil) == (step.Maintenance == nil) {
			return in, fmt.Errorf("steps[%d]: want either template or maintenance", i)
		}
	}
	in.Why = bounds.Cut(in.Why, bounds.Text)
	return in, nil
}

func (r *remediation) Begin(now time.Time) {
	in := &r.in
	r.Order = health.Order{Node: in.Node, Step: in.Step, Revision: in.Revision, Why: in.Why}
	r.Progress = health.Progress{
		Node: in.Node, UID: in.UID, ControlPlane: in.ControlPlane, RunID: r.Info.Run, Revision: in.Revision, Step: in.Step, StartedAt: r.Info.Started,
	}
	if in.Resume {
		r.Progress.Steps = slices.Clone(in.Left)
		r.Leased = r.began()
		r.OrderBy = now.Add(orderWithin)
		r.Slot.Unknown = true
	}
	r.noteSlot()
}

// Decide implements controller.Controller. It does one thing at a time, watches what it has made, and reports to its check.
func (r *remediation) Decide(t controller.Turn) (d controller.Decision) {
	// What comes of an act decides what is next.
	if !t.AnyUnderWay(actFind, actLook, actMake, actMaintain, actLease, actMark, actEnd, actRemove) {
		if !r.ends() {
			r.Ending = r.pointless(t.Now)
		}
		if next := r.next(t.Now); next != nil {
			d.Effects = append(d.Effects, next)
		}
	}
	d.Effects = append(d.Effects, r.slotEffects()...)
	d.Watches = r.watches(t.Now)
	r.Progress.Trouble = r.trouble()
	r.report(t.Now, &d)
	if !r.ends() && r.followsUnknown(t.Now) && t.Now.Before(r.OrderBy) {
		d.WakeAt(r.OrderBy, "go on without an order")
	}
	if since := r.Reports.Orphaned; !since.IsZero() && !r.alone(t.Now) {
		d.WakeAt(since.Add(orphanedFor), "decide without the check")
	}
	if !r.Progress.Ended || !r.reported() || r.Slot.Asked {
		return d
	}
	if record := r.record(); record != nil {
		d.Effects = append(d.Effects, record)
		return d
	}
	d.End = &controller.End{}
	return d
}

func (r *remediation) Reset(now time.Time) {
	r.WasReset, r.Looked, r.OrderBy = true, false, now.Add(orderWithin)
	r.Old, r.Progress.Ended, r.Removing, r.Seen = false, false, false, nil
	r.Slot = slot{Asked: r.Progress.ControlPlane, Unknown: true}
	r.noteSlot()
	r.Reports.Last, r.Reports.Urgent, r.Reports.Final = "", true, false
}

func (r *remediation) Cancel(time.Time) {
	if !r.ends() {
		r.Ending = "it was cancelled"
	}
}

// ends reports whether everything is to be taken back.
func (r *remediation) ends() bool { return r.Order.Healthy || r.Ending != "" }

// pointless says why it ends without an order; empty is that it goes on.
func (r *remediation) pointless(now time.Time) string {
	switch {
	case r.deserted():
		return "somebody has deleted what remediates the node"
	case r.began() || r.seeks() || r.followsUnknown(now):
		return ""
	case r.in.Resume && r.missing() < 0: // whether it begins anew is for the check to decide
		return "an earlier workflow of it has ended without a word"
	case r.alone(now):
		return "its check does not run, and nothing has begun"
	default:
		return ""
	}
}

// seeks reports whether an earlier workflow may have begun a maintenance, and it is not known which.
func (r *remediation) seeks() bool {
	return r.in.Resume && !r.Sought && slices.ContainsFunc(r.in.Steps, func(s health.Remediation) bool { return s.Maintenance != nil })
}

// followsUnknown reports whether an earlier workflow may have made an object of which nothing is known: the check has not said yet what it
// wants, and the objects have not been looked for. The activity of the earlier workflow may still run. What it makes is taken up, not
// removed, or the check would begin the same step again.
func (r *remediation) followsUnknown(now time.Time) bool {
	if !r.in.Resume || r.Order.Revision > 0 || r.began() {
		return false
	}
	if s := r.step(r.in.Step); s != nil && !s.StartedAt.IsZero() {
		return false // it was known, and is over
	}
	return now.Before(r.OrderBy) || !r.Looked && len(r.templates()) > 0
}

func (r *remediation) templates() (all []health.TemplateRef) {
	for _, step := range r.in.Steps {
		if step.Template != nil {
			all = append(all, *step.Template)
		}
	}
	return all
}

// missing is the index of the step that should be at work and is not yet, -1 where there is none.
func (r *remediation) missing() int {
	want := r.Order.Step
	if s := r.step(want); s != nil && !s.StartedAt.IsZero() {
		return -1
	}
	if r.in.Resume && r.Order.Revision == 0 {
		return -1 // the check has not said yet what it wants
	}
	return want
}

// deserted reports whether nothing is left of what was begun, though nobody has ordered that.
func (r *remediation) deserted() bool {
	return r.missing() < 0 && !r.began() &&
		slices.ContainsFunc(r.Progress.Steps, func(s health.StepState) bool { return s.Resource != nil && s.Gone })
}

func (r *remediation) left() (steps []health.StepState) {
	for _, s := range r.Progress.Steps {
		if s.Resource != nil && !s.Gone {
			steps = append(steps, s)
		}
	}
	return steps
}

// unmarked are the steps that have timed out and are not marked so.
func (r *remediation) unmarked() (steps []int) {
	for _, i := range r.Order.TimedOut {
		if s := r.step(i); s != nil && !s.StartedAt.IsZero() && s.TimedOut == nil && !s.Gone {
			steps = append(steps, i)
		}
	}
	return steps
}

// began reports whether something of a step is there.
func (r *remediation) began() bool {
	return slices.ContainsFunc(r.Progress.Steps, func(s health.StepState) bool { return !s.StartedAt.IsZero() && !s.Gone })
}

// hasMade reports whether a step has made an object, or begun a maintenance. One that was passed over has not.
func (r *remediation) hasMade() bool {
	return slices.ContainsFunc(r.Progress.Steps, func(s health.StepState) bool { return s.Resource != nil || s.WorkflowID != "" })
}

func (r *remediation) step(index int) *health.StepState {
	return r.find(func(s health.StepState) bool { return s.Index == index })
}

func (r *remediation) stepOf(object health.Resource) *health.StepState {
	return r.find(func(s health.StepState) bool { return s.Resource != nil && *s.Resource == object })
}

func (r *remediation) find(is func(s health.StepState) bool) *health.StepState {
	if i := slices.IndexFunc(r.Progress.Steps, is); i >= 0 {
		return &r.Progress.Steps[i]
	}
	return nil
}

func (r *remediation) setStep(s health.StepState) {
	s.Failure = bounds.Cut(s.Failure, bounds.Text)
	if known := r.step(s.Index); known != nil {
		*known = s
		return
	}
	r.Progress.Steps = append(r.Progress.Steps, s)
	slices.SortFunc(r.Progress.Steps, func(a, b health.StepState) int { return cmp.Compare(a.Index, b.Index) })
}
