package client

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/preflight"
)

// Preflight looks at what a drain of a node would meet, without changing anything. The input is that of a maintenance,
// and may have "together", a list of nodes that are to be drained at the same time. It is given up, by the server too,
// after within. A preflight that fails is a FailedError; where ctx ends, or no worker sees to it, it is taken back.
func (c *Client) Preflight(ctx context.Context, node string, in Input, within time.Duration) (preflight.Report, error) {
	var report preflight.Report
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	run, err := c.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID: api.PreflightID(c.options.Cluster, node, occasion()), WorkflowExecutionTimeout: within,
		StaticSummary: "preflight of " + markdown.Text(node), StaticDetails: "Started by " + markdown.Text(c.options.By) + ".",
	}, api.PreflightType, in)
	if err != nil {
		return report, failedCall("starting the preflight of "+node, err)
	}
	err = c.server.resultOf(ctx, run, "the preflight of "+node, &report)
	var noWorker *NoWorkerError
	if err != nil && (ctx.Err() != nil || errors.As(err, &noWorker)) {
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

// occasion identifies one preflight of a node.
func occasion() string {
	text := make([]byte, 4)
	_, _ = rand.Read(text) // never fails
	return hex.EncodeToString(text)
}

// Permissions asks what the worker's account lacks for something that is about to be started, without changing anything. It is given
// up, by the server too, after within. What a worker refuses is a FailedError; where ctx ends, or no worker sees to it, it is taken
// back.
func Permissions(ctx context.Context, c *Client, in api.PermissionsInput, within time.Duration) (api.PermissionsReport, error) {
	const what = "asking for the worker's permissions"
	var report api.PermissionsReport
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	run, err := c.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID: api.PermissionsID(c.options.Cluster, occasion()), WorkflowExecutionTimeout: within,
		StaticSummary: "what the worker may do", StaticDetails: "Started by " + markdown.Text(c.options.By) + ".",
	}, api.PermissionsType, in)
	if err != nil {
		return report, failedCall(what, err)
	}
	err = c.server.resultOf(ctx, run, what, &report)
	var noWorker *NoWorkerError
	if err != nil && (ctx.Err() != nil || errors.As(err, &noWorker)) {
		c.server.takeBack(ctx, run)
	}
	return report, err
}

// ProfileReport asks what becomes of nodes by their profiles, without changing anything: of all, of those that the input chooses,
// or of one that is to be explained. It is given up, by the server too, after within. What a worker refuses, such as a node
// that there is not, is a FailedError; where ctx ends, or no worker sees to it, it is taken back.
func (c *Client) ProfileReport(ctx context.Context, in api.ProfileReportInput, within time.Duration) (api.ProfileReport, error) {
	const what = "asking for the report of profiles"
	var report api.ProfileReport
	if ctx.Err() != nil {
		return report, context.Cause(ctx)
	}
	run, err := c.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID: api.ProfileReportID(c.options.Cluster, occasion()), WorkflowExecutionTimeout: within,
		StaticSummary: "what becomes of nodes by their profiles", StaticDetails: "Started by " + markdown.Text(c.options.By) + ".",
	}, api.ProfileReportType, in)
	if err != nil {
		return report, failedCall(what, err)
	}
	err = c.server.resultOf(ctx, run, what, &report)
	var noWorker *NoWorkerError
	if err != nil && (ctx.Err() != nil || errors.As(err, &noWorker)) {
		c.server.takeBack(ctx, run)
	}
	return report, err
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
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &already):
		return Doctor{Joined: true, run: c.server.temporal.GetWorkflow(ctx, id, already.RunId), server: c.server}, nil
	case err != nil:
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
	var noWorker *NoWorkerError
	if errors.As(err, &noWorker) && !d.Joined {
		d.server.takeBack(ctx, d.run)
	}
	return report, err
}
