package client

import (
	"context"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
)

// PlanView is what is known of a plan at one moment.
type PlanView struct {
	Run
	// Status is the plan's own answer, nil if none was given: Unanswered says why.
	Status     *api.PlanStatus
	Unanswered error
	// Result is what the plan returned; nil while it runs, and if it ended without returning anything.
	Result *api.PlanResult
	// Failure says why it ended, where it did not complete.
	Failure string
	// Refused: it ended because its input was refused, before anything was done.
	Refused bool
}

// Phase is empty while no worker has said what it is.
func (v PlanView) Phase() api.PlanPhase {
	switch {
	case v.Result != nil && v.Result.Phase != "":
		return v.Result.Phase
	case v.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return api.PlanCancelled
	case v.Status != nil && v.Status.Phase.Ended():
		return v.Status.Phase
	case !v.Running():
		return api.PlanFailed
	case v.Status != nil:
		return v.Status.Phase
	default:
		return ""
	}
}

// Message is why it paused or ended, or what its result says.
func (v PlanView) Message() string {
	switch {
	case v.Failure != "":
		return v.Failure
	case v.Status != nil && v.Status.Failure != "":
		return v.Status.Failure
	case v.Result != nil:
		return v.Result.Message
	default:
		return ""
	}
}

// Known is all that is known of the plan: its own answer, or as much of that as is known without a worker.
func (v PlanView) Known() api.Plan {
	p := api.Plan{PlanSummary: api.PlanSummary{Execution: v.execution()}, Nodes: []api.PlanNode{}}
	if r := v.Result; r != nil {
		p.Counts, p.CreatedAt, p.RunID, p.Moves = &r.Counts, r.CreatedAt, r.RunID, r.Moves
	}
	if v.Status != nil {
		p = api.PlanOf(*v.Status)
	}
	p.Name, p.Phase, p.Message = v.Name, v.Phase(), v.Message()
	if v.Running() {
		p.Unanswered = textOf(v.Unanswered)
		return p
	}
	ended := v.Ended
	if v.Result != nil && !v.Result.EndedAt.IsZero() {
		ended = v.Result.EndedAt
	}
	p.Since, p.EndedAt, p.WaitingFor, p.Until = &ended, &ended, "", nil
	return p
}

// Summary is the plan as lists have it.
func (v PlanView) Summary() api.PlanSummary { return v.Known().PlanSummary }

// As is the plan for messages in somebody else's name; an empty one changes nothing.
func (p *Plan) As(by string) *Plan { return &Plan{p.as(by)} }

// Observe looks at the plan, running or ended. That no worker answers is no error: the view says so. Where there is no such
// plan it is a NoneError.
func (p *Plan) Observe(ctx context.Context, asked api.PlanStatusRequest) (PlanView, error) {
	info, err := p.describe(ctx)
	if err != nil {
		return PlanView{}, err
	}
	v, err := p.Ended(ctx, runOf(p.Name, info))
	if err != nil {
		return v, err
	}
	status, err := p.Status(ctx, asked)
	if err != nil {
		v.Unanswered = err
		return v, nil //nolint:nilerr // nobody being there to answer is a fact: the plan itself goes on
	}
	v.Status = &status
	return v, nil
}

// paceWithin bounds the wait for what a pace is computed of: a plan is shown without it too.
const paceWithin = 3 * time.Second

// Pace is how fast a plan goes that was observed; nil where that is not known. No end is expected of one that waits.
func (p *Plan) Pace(ctx context.Context, v PlanView) *plan.Pace {
	s := v.Status
	if s == nil || !v.Running() || s.Counts.Done == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, paceWithin)
	defer cancel()
	var done []time.Time
	// The order is the plan's, so that the last of them are the latest, but for some. A page may end before its limit.
	for offset := max(0, s.Counts.Done-plan.PaceOfLast); ; {
		ends, err := p.Status(ctx, api.PlanStatusRequest{States: []string{plan.Done.Word()}, Offset: offset, Limit: plan.PaceOfLast})
		if err != nil {
			return nil
		}
		for _, n := range ends.Nodes {
			done = append(done, n.Since)
		}
		if offset = ends.NextOffset; offset == 0 || len(done) >= plan.PaceOfLast {
			break
		}
	}
	left := s.Counts.Waiting + s.Counts.Running
	if s.Phase != api.PlanRunning || s.WaitingFor != "" {
		left = 0
	}
	pace := plan.PaceOf(done, len(done) >= s.Counts.Done, s.Counts.Running, left, p.server.now())
	return &pace
}

// Ended adds to a run of the plan what it returned at its end, which takes no worker. A run that goes on has nothing to add.
func (p *Plan) Ended(ctx context.Context, run Run) (PlanView, error) {
	v := PlanView{Run: run}
	if v.Running() {
		return v, nil
	}
	end, err := endingOf(ctx, p.server, p.id, run.RunID,
		endWords{terminated: "the workflow was terminated by hand; maintenances that it began go on", cancelled: "the workflow was cancelled"}, func(r api.PlanResult) string { return r.Message })
	v.Result, v.Failure, v.Refused = end.Result, end.Failure, end.Refused
	return v, failedCall("looking at "+p.what, err)
}

// Watch looks at the plan again and again until done says that it is enough, or ctx ends, whose cause it then returns. A server or a worker
// that does not answer is waited for: done gets the error, with what was seen before.
func (p *Plan) Watch(ctx context.Context, asked api.PlanStatusRequest, done func(PlanView, error) bool) error {
	var (
		pause time.Duration
		last  PlanView
	)
	for {
		v, err := p.Observe(ctx, asked)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case isA[*NoneError](err):
			return err
		case err == nil:
			last = v
		}
		if done(last, err) {
			return nil
		}
		if pause = nextPause(pause); !sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}

// MaintenanceIn is the maintenance of a node of the plan, for the requestor that its status names.
func (p *Plan) MaintenanceIn(s api.PlanStatus, n api.PlanNode) Maintenance {
	return Maintenance{
		Node: n.Node, Requestor: s.Plan.Requestor, WorkflowID: api.MaintenanceID(p.options.Cluster, n.Node, s.Plan.Requestor),
		RunID: n.RunID, FirstRunID: n.RunID, Started: n.Since, Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}
}
