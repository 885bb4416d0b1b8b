package client

import (
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// View is what is known of a maintenance at one moment.
type View struct {
	Maintenance
	// Status is the workflow's own answer, nil until a worker has given one. The progress of a drain in it is live.
	Status *api.Status
	// Result is what the workflow returned; nil while it runs, and if it ended without returning anything.
	Result *api.Result
	// Failure says why it ended, where it failed.
	Failure string
	// Refused: it ended because its input was refused, before anything was done.
	Refused bool
	// Unanswered says why the workflow could not be asked; Status is then old or nil.
	Unanswered error
}

// Phase is empty while no worker has said what it is.
func (v View) Phase() api.Phase {
	switch {
	case v.Result != nil && v.Result.Phase != "":
		return v.Result.Phase
	case v.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return api.Cancelled
	case !v.Running():
		return api.Failed
	case v.Status != nil:
		return v.Status.Phase
	default:
		return ""
	}
}

// WasReady reports whether the requestor ever had the node.
func (v View) WasReady() bool {
	var transitions []api.Transition
	if v.Status != nil {
		transitions = v.Status.Transitions
	}
	if v.Result != nil {
		transitions = slices.Concat(transitions, v.Result.Transitions)
	}
	return slices.ContainsFunc(transitions, func(t api.Transition) bool { return t.Phase == api.Ready })
}

// Message is what the end, or a failure that somebody has to decide about, has to say for itself.
func (v View) Message() string {
	switch {
	case v.Failure != "":
		return v.Failure
	case v.Result != nil && v.Result.Message != "":
		return v.Result.Message
	case v.Status != nil:
		return v.Status.Failure
	default:
		return ""
	}
}

// Transitions prefer the result's: of a run that ended, the last status is of before the end.
func (v View) Transitions() []api.Transition {
	switch {
	case v.Result != nil && len(v.Result.Transitions) > 0:
		return v.Result.Transitions
	case v.Status != nil && len(v.Status.Transitions) > 0:
		return v.Status.Transitions
	case v.Refused:
		return []api.Transition{{Phase: v.Phase(), At: v.Closed, Message: v.Failure}} // it was in no phase before
	default:
		return nil
	}
}

// Record is the audit record of what is known of the maintenance, in a cluster's name and as of now.
func (v View) Record(cluster string, now time.Time) record.Record {
	status := api.Status{
		WorkflowID: v.WorkflowID, RunID: v.FirstRunID, Spec: spec.Maintenance{Node: v.Node, Requestor: v.Requestor}, Phase: v.Phase(), Since: v.Started,
	}
	if v.Status != nil {
		status = *v.Status
	}
	status.Transitions = v.Transitions()
	r := api.RecordOf(status, cluster)
	r.CreatedAt = v.Began()
	if !prepared(v.Status) {
		r.Specification = nil
	}
	if v.Running() {
		r.AsOf = now
		return r
	}
	r.Phase, r.Failure, r.EndedAt = string(v.Phase()), v.Message(), v.Ended()
	return r
}

// Began is when the maintenance was started: Started is that of its last run only.
func (v View) Began() time.Time {
	switch {
	case v.Status != nil && !v.Status.CreatedAt.IsZero():
		return v.Status.CreatedAt
	case v.Result != nil && !v.Result.CreatedAt.IsZero():
		return v.Result.CreatedAt
	default:
		return v.Started
	}
}

// Ended is when the maintenance ended. Its workflow closes a little later, when everybody knows.
func (v View) Ended() time.Time {
	if all := v.Transitions(); len(all) > 0 && all[len(all)-1].Phase.Ended() {
		return all[len(all)-1].At
	}
	return v.Closed
}

// prepared reports whether a maintenance has read its input, so that its spec is complete.
func prepared(s *api.Status) bool { return s != nil && s.Spec.Type != "" }

// releasing reports whether a maintenance is at its end, and only has its node and its slot to give back.
func releasing(s *api.Status) bool { return s.Phase == api.Releasing || s.Phase.Ended() }

// IsUndecided reports whether the node has failed its validation, and that somebody has to decide what becomes of it.
func (v View) IsUndecided() bool {
	s := v.Status
	return s != nil && s.Phase == api.Validating && s.Validation != nil && s.Validation.State == validation.Failed
}

// Summary is the maintenance as lists have it.
func (v View) Summary() api.MaintenanceSummary {
	s := api.MaintenanceSummary{
		Node: v.Node, Requestor: v.Requestor, Phase: v.Phase(), Message: v.Message(),
		Execution: api.Execution{WorkflowID: v.WorkflowID, RunID: v.FirstRunID, CreatedAt: v.Began(), Unanswered: textOf(v.Unanswered)},
	}
	if v.Status != nil {
		s.Since, s.Attempt, s.WaitingFor = &v.Status.Since, v.Status.Attempt, v.Status.WaitingFor
		s.Reason, s.Ticket = v.Status.Spec.Reason, v.Status.Spec.Ticket
	}
	if !v.Running() {
		ended := v.Ended()
		s.Since, s.EndedAt, s.WaitingFor = &ended, &ended, ""
	}
	return s
}

// Known is all that is known of the maintenance: its own answer, or as much of that as is known without a worker.
func (v View) Known() api.Maintenance {
	m := api.Maintenance{MaintenanceSummary: v.Summary()}
	if v.Status != nil {
		m.Status = *v.Status
	}
	if m.Spec.Node == "" {
		m.Spec = spec.Maintenance{Node: v.Node, Requestor: v.Requestor}
	}
	m.Transitions = v.Transitions()
	return m
}

// Summaries are maintenances as lists have them. They are never nil, so that none is an empty list and not null.
func Summaries(views []View) api.Maintenances {
	all := make(api.Maintenances, len(views))
	for i, v := range views {
		all[i] = v.Summary()
	}
	return all
}
