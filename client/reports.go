package client

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/window"
)

// Preflight looks at what a drain of a node would meet, without changing anything. The input is that of a maintenance,
// and may have "together", a list of nodes that are to be drained at the same time. It is given up, by the server too,
// after within. A preflight that fails is a FailedError; where ctx ends, or no worker sees to it, it is taken back.
func (c *Client) Preflight(ctx context.Context, node string, in Input, within time.Duration) (preflight.Report, error) {
	return reportOf[preflight.Report](ctx, c, question{
		id: api.PreflightID(c.options.Cluster, node, occasion()), kind: api.PreflightType, in: in,
		what: "the preflight of " + node, summary: "preflight of " + markdown.Text(node),
	}, within)
}

// question is a workflow that runs for its report alone.
type question struct {
	id, kind string
	in       any
	// what it is, in errors and in Temporal's lists.
	what, summary string
}

// reportOf asks a worker for a report by a workflow of its own.
func reportOf[T any](ctx context.Context, c *Client, q question, within time.Duration) (report T, err error) {
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	run, err := c.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID: q.id, WorkflowExecutionTimeout: within, StaticSummary: q.summary, StaticDetails: "Started by " + markdown.Text(c.options.By) + ".",
	}, q.kind, q.in)
	if err != nil {
		return report, failedCall(q.what, err)
	}
	err = c.server.resultOf(ctx, run, q.what, &report)
	if err != nil && (ctx.Err() != nil || isA[*NoWorkerError](err)) {
		c.server.takeBack(ctx, run)
	}
	return report, err
}

// takeBack cancels what nobody waits for any more; it would end by itself too.
func (s *server) takeBack(ctx context.Context, run temporalclient.WorkflowRun) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CallTimeout)
	defer cancel()
	_ = s.temporal.CancelWorkflow(ctx, run.GetID(), run.GetRunID())
}

func occasion() string { return uuid.NewString()[:8] }

// Permissions asks what the worker's account lacks for something that is about to be started, without changing anything. It is given
// up, by the server too, after within. What a worker refuses is a FailedError; where ctx ends, or no worker sees to it, it is taken
// back.
func Permissions(ctx context.Context, c *Client, in api.PermissionsInput, within time.Duration) (api.PermissionsReport, error) {
	return reportOf[api.PermissionsReport](ctx, c, question{
		id: api.PermissionsID(c.options.Cluster, occasion()), kind: api.PermissionsType, in: in,
		what: "asking for the worker's permissions", summary: "what the worker may do",
	}, within)
}

// ProfileReport asks what becomes of nodes by their profiles, without changing anything: of all, of those that the input chooses,
// or of one that is to be explained. It is given up, by the server too, after within. What a worker refuses, such as a node
// that there is not, is a FailedError; where ctx ends, or no worker sees to it, it is taken back.
func (c *Client) ProfileReport(ctx context.Context, in api.ProfileReportInput, within time.Duration) (api.ProfileReport, error) {
	return reportOf[api.ProfileReport](ctx, c, question{
		id: api.ProfileReportID(c.options.Cluster, occasion()), kind: api.ProfileReportType, in: in,
		what: "asking for the report of profiles", summary: "what becomes of nodes by their profiles",
	}, within)
}

// Windows asks a worker for the windows of its configuration and their next openings. It is given up, by the server too,
// after within. A window that there is not is a FailedError.
func Windows(ctx context.Context, c *Client, in api.WindowsInput, within time.Duration) (window.Horizon, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return reportOf[window.Horizon](ctx, c, question{
		id: api.WindowsID(c.options.Cluster, occasion()), kind: api.WindowsType, in: in,
		what: "asking for the windows", summary: "when windows are open",
	}, within)
}

// Doctor is a run of the doctor, which finds what is inconsistent and with Fix heals it. There is one at a time.
type Doctor struct {
	// Joined: it was at work already, so that its report may answer another question.
	Joined bool
	run    temporalclient.WorkflowRun
	server *server
}

// StartDoctor starts the doctor, or joins the one at work. An empty By is the Client's.
func (c *Client) StartDoctor(ctx context.Context, in api.DoctorInput) (Doctor, error) {
	if in.By == "" {
		in.By = c.options.By
	}
	id := api.DoctorID(c.options.Cluster)
	run, err := c.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID: id, WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            "doctor", StaticDetails: "Started by " + markdown.Text(c.options.By) + ".",
	}, api.DoctorType, in)
	if already, is := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); is {
		return Doctor{Joined: true, run: c.server.temporal.GetWorkflow(ctx, id, already.RunId), server: c.server}, nil
	}
	if err != nil {
		return Doctor{}, failedCall("starting the doctor", err)
	}
	return Doctor{run: run, server: c.server}, nil
}

// WorkflowID is that of the run.
func (d Doctor) WorkflowID() string { return d.run.GetID() }

// Report waits for the doctor's report. It goes on where ctx ends first. Where no worker sees to it, a NoWorkerError, one that was started
// is taken back, so that nothing is healed long after the caller got an error.
func (d Doctor) Report(ctx context.Context) (doctor.Report, error) {
	var report doctor.Report
	err := d.server.resultOf(ctx, d.run, "the doctor", &report)
	if isA[*NoWorkerError](err) && !d.Joined {
		d.server.takeBack(ctx, d.run)
	}
	return report, err
}
