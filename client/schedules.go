package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

// Recurring is the schedule of a recurring plan, by the plan's name.
type Recurring struct {
	Name string

	server  *server
	options Options
}

// RecurringOf is the schedule of the plan of that name, whether there is one or not.
func RecurringOf(c *Client, name string) *Recurring {
	return &Recurring{Name: name, server: c.server, options: c.options}
}

// As is the schedule for changes in somebody else's name; an empty one changes nothing.
func (r *Recurring) As(by string) *Recurring {
	own := *r
	own.options.By = cmp.Or(by, own.options.By)
	return &own
}

// ID is the schedule's in Temporal.
func (r *Recurring) ID() string { return api.ScheduleID(r.options.Cluster, r.Name) }

// NoScheduleError says that a plan of that name has no schedule.
type NoScheduleError struct{ Name string }

func (e *NoScheduleError) Error() string { return fmt.Sprintf("plan %s has no schedule", e.Name) }

// RunGoesOnError says that a run of a schedule goes on, so that another one would be skipped.
type RunGoesOnError struct{ Name string }

func (e *RunGoesOnError) Error() string {
	return fmt.Sprintf("a run of plan %s goes on: another one would be skipped", e.Name)
}

// catchUp is how late a run may begin that was missed because Temporal was away: nodes are taken out of service when
// people expect it, or the next time.
const catchUp = 10 * time.Minute

// Set makes the schedule, or changes the one that there is; a pause stays as it is. What would be refused is ErrInvalid.
func (r *Recurring) Set(ctx context.Context, when plan.Recurrence, input json.RawMessage) (created bool, err error) {
	decoded, err := plan.Decode(r.Name, input)
	if err = errors.Join(err, decoded.Reserved(), api.CheckReportToOf(decoded.ReportTo), when.Check()); err != nil {
		return false, marked{err, ErrInvalid}
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	action := &temporalclient.ScheduleWorkflowAction{
		ID: api.PlanRunID(r.options.Cluster, r.Name), Workflow: api.PlanRunType, TaskQueue: r.server.taskQueue,
		Args: []any{api.PlanRunInput{Name: r.Name, Plan: input}}, StaticSummary: PlanSummary(r.Name, decoded),
	}
	calendar := specOf(when)
	_, err = r.server.temporal.ScheduleClient().Create(ctx, temporalclient.ScheduleOptions{
		ID: r.ID(), Spec: calendar, Action: action, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp,
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		return err == nil, r.failed("making the schedule of plan "+r.Name, err)
	}
	err = r.handle(ctx).Update(ctx, temporalclient.ScheduleUpdateOptions{
		DoUpdate: func(is temporalclient.ScheduleUpdateInput) (*temporalclient.ScheduleUpdate, error) {
			return &temporalclient.ScheduleUpdate{Schedule: &temporalclient.Schedule{
				Action: action, Spec: &calendar, State: is.Description.Schedule.State,
				Policy: &temporalclient.SchedulePolicies{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: catchUp},
			}}, nil
		},
	})
	return false, r.failed("changing the schedule of plan "+r.Name, err)
}

// specOf is a recurrence as Temporal takes it. The server keeps the comment of a cron expression and nothing else of it, so
// that repeats the expression.
func specOf(when plan.Recurrence) temporalclient.ScheduleSpec {
	if when.Cron == "" {
		return temporalclient.ScheduleSpec{Intervals: []temporalclient.ScheduleIntervalSpec{{Every: when.Every.Std()}}}
	}
	return temporalclient.ScheduleSpec{CronExpressions: []string{when.Cron + " #" + when.Cron}, TimeZoneName: when.Timezone}
}

// recurrenceOf is the inverse of specOf, as far as a schedule that somebody else made has one.
func recurrenceOf(s *temporalclient.ScheduleSpec) plan.Recurrence {
	switch {
	case s == nil:
		return plan.Recurrence{}
	case len(s.Calendars) == 1:
		when := plan.Recurrence{Cron: s.Calendars[0].Comment, Timezone: s.TimeZoneName}
		if when.Cron == "" || when.Check() != nil {
			when.Cron = cronOf(s.Calendars[0])
		}
		return when
	case len(s.Intervals) == 1:
		return plan.Recurrence{Every: spec.Duration(s.Intervals[0].Every)}
	default:
		return plan.Recurrence{}
	}
}

// cronOf is the cron expression that means the same as a calendar of a Schedule; empty if there is none.
func cronOf(c temporalclient.ScheduleCalendarSpec) string {
	atZero := []temporalclient.ScheduleRange{{}}
	seconds := rangesText(c.Second, atZero, 0, 59)
	text := []string{
		rangesText(c.Minute, atZero, 0, 59), rangesText(c.Hour, atZero, 0, 23), rangesText(c.DayOfMonth, nil, 1, 31),
		rangesText(c.Month, nil, 1, 12), rangesText(c.DayOfWeek, nil, 0, 6),
	}
	// Of days of the month and of the week cron takes either, and a calendar both.
	if seconds != "0" || len(c.Year) > 0 || text[2] != "*" && text[4] != "*" {
		return ""
	}
	return strings.Join(text, " ")
}

// rangesText is a field of a cron expression whose values are from least to most; missing stands for no ranges, and nil for all.
func rangesText(ranges, missing []temporalclient.ScheduleRange, least, most int) string {
	if len(ranges) == 0 {
		ranges = missing
	}
	var texts []string
	for _, r := range ranges {
		end, step := max(r.Start, r.End), max(r.Step, 1)
		text := fmt.Sprintf("%d-%d", r.Start, end)
		switch {
		case r.Start == least && end == most:
			text = "*"
		case r.Start == end:
			text, step = fmt.Sprint(r.Start), 1
		}
		if step > 1 {
			text += fmt.Sprintf("/%d", step)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 || slices.Contains(texts, "*") {
		return "*"
	}
	return strings.Join(texts, ",")
}

func (r *Recurring) handle(ctx context.Context) temporalclient.ScheduleHandle {
	return r.server.temporal.ScheduleClient().GetHandle(ctx, r.ID())
}

func (r *Recurring) failed(doing string, err error) error {
	switch {
	case isA[*serviceerror.NotFound](err):
		return &NoScheduleError{r.Name}
	case isA[*serviceerror.InvalidArgument](err):
		return marked{fmt.Errorf("%s: %w", doing, err), ErrInvalid}
	}
	return failedCall(doing, err)
}

// Pause begins no more runs until Resume. A run that goes on does so.
func (r *Recurring) Pause(ctx context.Context, comment string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return r.failed("pausing the schedule of plan "+r.Name, r.handle(ctx).Pause(ctx, temporalclient.SchedulePauseOptions{Note: r.note("paused", comment)}))
}

// Resume begins runs again at their times. Those that were missed are not made up for.
func (r *Recurring) Resume(ctx context.Context, comment string) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return r.failed("resuming the schedule of plan "+r.Name, r.handle(ctx).Unpause(ctx, temporalclient.ScheduleUnpauseOptions{Note: r.note("resumed", comment)}))
}

func (r *Recurring) note(what, comment string) string {
	return bounds.Cut(what+" by "+r.options.By+colon(comment), bounds.Text)
}

// Delete forgets the schedule. A run that goes on does so.
func (r *Recurring) Delete(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return r.failed("deleting the schedule of plan "+r.Name, r.handle(ctx).Delete(ctx))
}

// Trigger begins a run now, paused or not. While one goes on it is a RunGoesOnError.
func (r *Recurring) Trigger(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	handle := r.handle(ctx)
	described, err := handle.Describe(ctx)
	if err == nil && len(described.Info.RunningWorkflows) > 0 {
		return &RunGoesOnError{r.Name}
	}
	if err == nil {
		err = handle.Trigger(ctx, temporalclient.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP})
	}
	return r.failed("beginning a run of plan "+r.Name, err)
}

// Look returns the state of the schedule, and the results of its last runs.
func (r *Recurring) Look(ctx context.Context) (api.PlanSchedule, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*CallTimeout)
	defer cancel()
	described, err := r.handle(ctx).Describe(ctx)
	if err != nil {
		return api.PlanSchedule{}, r.failed("looking at the schedule of plan "+r.Name, err)
	}
	info := described.Info
	s := api.PlanSchedule{
		Name: r.Name, Recurrence: recurrenceOf(described.Schedule.Spec), Plan: r.planIn(described.Schedule.Action), Next: info.NextActionTimes,
		Overlapped: info.NumActionsSkippedOverlap, Missed: info.NumActionsMissedCatchupWindow, ScheduleID: r.ID(), CreatedAt: info.CreatedAt,
	}
	if state := described.Schedule.State; state != nil {
		s.Paused, s.Note = state.Paused, state.Note
	}
	if s.Paused {
		s.Next = nil
	}
	for _, action := range info.RecentActions {
		if action.StartWorkflowResult == nil {
			continue
		}
		run, err := r.run(ctx, action)
		if err != nil {
			return s, err
		}
		s.Runs = append(s.Runs, run)
	}
	return s, nil
}

func (r *Recurring) planIn(action temporalclient.ScheduleAction) *plan.Plan {
	start, ok := action.(*temporalclient.ScheduleWorkflowAction)
	if !ok || len(start.Args) != 1 {
		return nil
	}
	payload, ok := start.Args[0].(*commonpb.Payload)
	var in api.PlanRunInput
	if !ok || converter.GetDefaultDataConverter().FromPayload(payload, &in) != nil {
		return nil
	}
	decoded, err := plan.Decode(r.Name, in.Plan)
	if err != nil {
		return nil
	}
	return &decoded
}

func (r *Recurring) run(ctx context.Context, action temporalclient.ScheduleActionResult) (api.PlanScheduleRun, error) {
	run := api.PlanScheduleRun{DueAt: action.ScheduleTime, StartedAt: action.ActualTime, WorkflowID: action.StartWorkflowResult.WorkflowID}
	// Without a run ID: it may have been reset since.
	described, err := r.server.describe(ctx, run.WorkflowID, "")
	switch {
	case isA[*serviceerror.NotFound](err):
		return runEnded(run, ending[api.PlanRunResult]{Failure: "Temporal does not keep it any more"}), nil
	case err != nil:
		return run, failedCall("looking at the runs of plan "+r.Name, err)
	}
	info := described.GetWorkflowExecutionInfo()
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		run.Running = true
		return run, nil
	}
	end, err := endingOf(ctx, r.server, run.WorkflowID, info.GetExecution().GetRunId(), endWords{terminated: "it was terminated by hand", cancelled: "it was cancelled"},
		func(r api.PlanRunResult) string { return r.Message })
	return runEnded(run, end), failedCall("looking at the runs of plan "+r.Name, err)
}

func runEnded(run api.PlanScheduleRun, end ending[api.PlanRunResult]) api.PlanScheduleRun {
	run.Message = end.Failure
	if r := end.Result; r != nil {
		run.Phase, run.Skipped, run.Message = r.Phase, r.Skipped, cmp.Or(end.Failure, r.Message)
	}
	if run.Phase == "" && !run.Skipped {
		run.Phase = api.PlanFailed
	}
	return run
}
