package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalclient "go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/markdown"
)

// HealthCheck is a health check by its name.
type HealthCheck struct {
	Name string

	server  *server
	options Options
}

// HealthCheckOf is the health check of that name, whether there is one or not.
func HealthCheckOf(c *Client, name string) *HealthCheck {
	return &HealthCheck{Name: name, server: c.server, options: c.options}
}

// As is the check for messages in somebody else's name; an empty one changes nothing.
func (h *HealthCheck) As(by string) *HealthCheck {
	if by == "" {
		return h
	}
	own := *h
	own.options.By = by
	return &own
}

// WorkflowID is the workflow's.
func (h *HealthCheck) WorkflowID() string { return api.HealthCheckID(h.options.Cluster, h.Name) }

// NoHealthCheckError says that there is no health check of that name that runs.
type NoHealthCheckError struct {
	Name string
	// Ended: there was one.
	Ended bool
}

func (e *NoHealthCheckError) Error() string {
	if e.Ended {
		return fmt.Sprintf("health check %s has ended", e.Name)
	}
	return fmt.Sprintf("there is no health check %s", e.Name)
}

// HealthCheckRunsError says that a health check of that name runs already.
type HealthCheckRunsError struct{ Name string }

func (e *HealthCheckRunsError) Error() string {
	return fmt.Sprintf("health check %s runs already", e.Name)
}

// Start starts the check; with a reason it begins paused by Options.By. An input that would be refused is ErrInvalid, and the
// error names the fields; a check of that name that runs is a HealthCheckRunsError.
func (h *HealthCheck) Start(ctx context.Context, input json.RawMessage, paused string) error {
	if _, err := health.Decode(input); err != nil {
		return invalidError{err}
	}
	if running, err := h.running(ctx); err != nil || running {
		var none *NoHealthCheckError
		if err == nil {
			err = &HealthCheckRunsError{h.Name}
		}
		if !errors.As(err, &none) {
			return err
		}
	}
	options := temporalclient.StartWorkflowOptions{
		ID: h.WorkflowID(), TaskQueue: h.server.taskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         HealthCheckSummary(h.Name), StaticDetails: "Started by " + markdown.Text(h.options.By) + ".",
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var err error
	if paused == "" {
		_, err = h.server.start(ctx, options, api.HealthCheckType, input)
	} else {
		// The pause is there before the check decides anything.
		_, err = h.server.temporal.SignalWithStartWorkflow(ctx, h.WorkflowID(), api.MsgPause, api.HealthMessage{Message: api.Message{ID: uuid.NewString(), By: h.options.By, Comment: paused}}, options, api.HealthCheckType, input)
	}
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &running) {
		return &HealthCheckRunsError{h.Name}
	}
	return failedCall("starting health check "+h.Name, err)
}

// HealthCheckSummary is what Temporal's lists show of a health check.
func HealthCheckSummary(name string) string { return "health check " + name }

// Status asks the check for its status. Errors: NoHealthCheckError, NoWorkerError, ErrInvalid where a worker refused its input.
func (h *HealthCheck) Status(ctx context.Context, asked api.HealthStatusRequest) (api.HealthStatus, error) {
	var status api.HealthStatus
	err := h.server.query(ctx, h.WorkflowID(), "", api.QueryStatus, &status, asked)
	return status, h.failed("asking health check "+h.Name, err)
}

// AllNodes asks for the status with all nodes that are not healthy.
func (h *HealthCheck) AllNodes(ctx context.Context) (api.HealthStatus, error) {
	asked := api.HealthStatusRequest{Limit: 1000}
	var all []health.UnhealthyNode
	for {
		status, err := h.Status(ctx, asked)
		if err != nil {
			return status, err
		}
		all = append(all, status.UnhealthyNodes...)
		if status.NextOffset <= asked.Offset {
			status.UnhealthyNodes, status.NextOffset = all, 0
			return status, nil
		}
		asked.Offset = status.NextOffset
	}
}

// Explain asks the check for all that is to be said of a node. Errors are those of Status.
func (h *HealthCheck) Explain(ctx context.Context, node string) (api.HealthExplanation, error) {
	var explanation api.HealthExplanation
	err := h.server.query(ctx, h.WorkflowID(), "", api.QueryExplain, &explanation, api.ExplainRequest{Node: node})
	return explanation, h.failed("asking health check "+h.Name, err)
}

// Send sends the check a message of package api, such as api.MsgPause with the payload api.HealthMessage, and returns what the check
// answers. ID, By and Comment are filled in where the payload lacks them. Errors: NoHealthCheckError, ErrEnded, ErrInvalid, ErrUnanswered,
// RefusedError, UnsettledError.
func (h *HealthCheck) Send(ctx context.Context, name string, payload any, comment string) (Sent, error) {
	if p, ok := payload.(api.ConfigureHealth); ok {
		if _, err := health.Decode(p.Spec); err != nil {
			return Sent{}, invalidError{err}
		}
	}
	return h.server.tell(ctx, recipient{
		kind: api.HealthCheckType, who: "health check " + h.Name, by: h.options.By, id: h.WorkflowID(),
		question: api.QueryStatus, asked: api.HealthStatusRequest{Limit: 1}, none: &NoHealthCheckError{Name: h.Name},
	}, name, payload, comment)
}

// running is false where the check has ended; where there was none it is a NoHealthCheckError.
func (h *HealthCheck) running(ctx context.Context) (bool, error) {
	described, err := h.server.describe(ctx, h.WorkflowID(), "")
	if err != nil {
		return false, h.failed("looking for health check "+h.Name, err)
	}
	return described.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

func (h *HealthCheck) failed(doing string, err error) error {
	var missing *serviceerror.NotFound
	var noWorker *NoWorkerError
	switch {
	case errors.As(err, &missing):
		return &NoHealthCheckError{Name: h.Name}
	case errors.As(err, &noWorker):
		return err
	}
	return failedCall(doing, err)
}

// HealthCheckRun is one run of a health check as Temporal's lists know it.
type HealthCheckRun struct {
	Name      string
	RunID     string
	Started   time.Time
	Ended     time.Time
	Execution enumspb.WorkflowExecutionStatus
	// Configured: a worker started it, as its configuration says.
	Configured bool
}

// Running reports whether it runs.
func (r HealthCheckRun) Running() bool {
	return r.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// HealthCheckView is what is known of a health check.
type HealthCheckView struct {
	HealthCheckRun
	// Status is nil where nobody answers, and Unanswered why; Failure is why a check that has ended did.
	Status     *api.HealthStatus
	Unanswered error
	Failure    string
	// Refused: a worker did not take its input.
	Refused bool
}

// Observe looks at the check. That no worker answers is no error: the view says so. Where there was no such check it is a
// NoHealthCheckError.
func (h *HealthCheck) Observe(ctx context.Context, asked api.HealthStatusRequest) (HealthCheckView, error) {
	described, err := h.server.describe(ctx, h.WorkflowID(), "")
	if err != nil {
		return HealthCheckView{}, h.failed("looking at health check "+h.Name, err)
	}
	run, _ := healthCheckOf(described.GetWorkflowExecutionInfo())
	return h.Look(ctx, run, asked)
}

// Look looks at a run of the check that was listed, as Observe does.
func (h *HealthCheck) Look(ctx context.Context, run HealthCheckRun, asked api.HealthStatusRequest) (HealthCheckView, error) {
	v := HealthCheckView{HealthCheckRun: run}
	if !run.Running() {
		return h.ended(ctx, v)
	}
	status, err := h.Status(ctx, asked)
	if err != nil {
		v.Unanswered = err
		return v, nil //nolint:nilerr // nobody being there to answer is a fact: the check itself goes on
	}
	v.Status = &status
	return v, nil
}

// Taken waits until a worker has read the input of a check that was started, or nobody is there to do so, or ctx ends, whose
// cause it then returns.
func (h *HealthCheck) Taken(ctx context.Context) (HealthCheckView, error) {
	var pause time.Duration
	for {
		v, err := h.Observe(ctx, api.HealthStatusRequest{Limit: 1})
		_, polled := h.server.polled(ctx)
		switch {
		case ctx.Err() != nil:
			return v, context.Cause(ctx)
		case err == nil && v.Running() && v.Status != nil && v.Status.Name != "":
			// What a worker refuses at once has been answered too, by the task that ended it.
			return h.Observe(ctx, api.HealthStatusRequest{Limit: 1})
		case err == nil && (!v.Running() || v.Unanswered != nil && !polled):
			return v, nil
		}
		if pause = nextPause(pause); !sleep(ctx, pause) {
			return v, context.Cause(ctx)
		}
	}
}

// ended adds why a check has ended, which takes no worker.
func (h *HealthCheck) ended(ctx context.Context, v HealthCheckView) (HealthCheckView, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	var failed *temporal.WorkflowExecutionError
	err := h.server.temporal.GetWorkflow(ctx, h.WorkflowID(), v.RunID).GetWithOptions(ctx, nil, temporalclient.WorkflowRunGetOptions{DisableFollowingRuns: true})
	switch {
	case err == nil:
		v.Failure = "it was removed"
	case errors.As(err, &failed):
		_, v.Failure = endOf(failed, "the workflow was terminated by hand; remediations that it began go on", "the workflow was cancelled", func(string) string { return "" })
		v.Refused = refusedInput(failed)
	default:
		return v, failedCall("looking at health check "+h.Name, err)
	}
	return v, nil
}

// ListHealthChecks finds the health checks that run, or also those that have ended as long as the namespace keeps them; of one
// name the latest alone, in the order of the names.
func ListHealthChecks(ctx context.Context, c *Client, running bool) ([]HealthCheckRun, error) {
	found, err := listRuns(ctx, c.server, api.HealthCheckType, api.HealthCheckID(c.options.Cluster, ""), running, healthCheckOf)
	if err != nil {
		return nil, failedCall("listing health checks", err)
	}
	slices.SortStableFunc(found, func(a, b HealthCheckRun) int { return strings.Compare(a.Name, b.Name) })
	return slices.CompactFunc(found, func(a, b HealthCheckRun) bool { return a.Name == b.Name }), nil
}

func healthCheckOf(info *workflowpb.WorkflowExecutionInfo) (HealthCheckRun, bool) {
	_, name, err := api.ParseHealthCheckID(info.GetExecution().GetWorkflowId())
	run := HealthCheckRun{Name: name, RunID: info.GetExecution().GetRunId(), Started: info.GetStartTime().AsTime(), Execution: info.GetStatus()}
	if info.GetCloseTime() != nil {
		run.Ended = info.GetCloseTime().AsTime()
	}
	// That it is there says it: where payloads are encrypted its value cannot be read here.
	_, run.Configured = info.GetMemo().GetFields()[api.MemoConfigured]
	return run, err == nil
}
