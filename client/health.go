package client

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/markdown"
)

// HealthCheck is a health check by its name.
type HealthCheck struct{ Named }

// HealthCheckOf is the health check of that name, whether there is one or not.
func HealthCheckOf(c *Client, name string) *HealthCheck {
	return &HealthCheck{Named{
		Name: name, server: c.server, options: c.options,
		kind: api.HealthCheckType, what: "health check " + name, id: api.HealthCheckID(c.options.Cluster, name),
		asked: api.HealthStatusRequest{Limit: 1},
	}}
}

// As is the check for messages in somebody else's name; an empty one changes nothing.
func (h *HealthCheck) As(by string) *HealthCheck { return &HealthCheck{h.as(by)} }

// Start starts the check; with a reason it begins paused by Options.By. An input that would be refused is ErrInvalid, and the
// error names the fields; a check of that name that runs is a RunsError.
func (h *HealthCheck) Start(ctx context.Context, input json.RawMessage, paused string) error {
	if _, err := health.Decode(input); err != nil {
		return marked{err, ErrInvalid}
	}
	info, err := h.describe(ctx)
	switch {
	case err != nil && !isA[*NoneError](err):
		return err
	case runOf(h.Name, info).Running():
		return &RunsError{h.what}
	}
	options := temporalclient.StartWorkflowOptions{
		ID: h.WorkflowID(), TaskQueue: h.server.taskQueue, WorkflowExecutionErrorWhenAlreadyStarted: true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		StaticSummary:         h.what, StaticDetails: "Started by " + markdown.Text(h.options.By) + ".",
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if paused == "" {
		_, err = h.server.start(ctx, options, api.HealthCheckType, input)
	} else {
		// The pause is there before the check decides anything.
		pause := api.HealthMessage{Message: api.Message{ID: uuid.NewString(), By: h.options.By, Comment: paused}}
		_, err = h.server.temporal.SignalWithStartWorkflow(ctx, h.WorkflowID(), api.MsgPause, pause, options, api.HealthCheckType, input)
	}
	return h.failed("starting "+h.what, err)
}

// Status asks the check for its status. Errors: NoneError, NoWorkerError, ErrInvalid where a worker refused its input.
func (h *HealthCheck) Status(ctx context.Context, asked api.HealthStatusRequest) (api.HealthStatus, error) {
	var status api.HealthStatus
	err := h.query(ctx, api.QueryStatus, &status, asked)
	return status, err
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
	err := h.query(ctx, api.QueryExplain, &explanation, api.ExplainRequest{Node: node})
	return explanation, err
}

// Send is that of Plan. A spec that would be refused by itself is ErrInvalid.
func (h *HealthCheck) Send(ctx context.Context, name string, payload any, comment string) (Sent, error) {
	if p, ok := payload.(api.ConfigureHealth); ok {
		if _, err := health.Decode(p.Spec); err != nil {
			return Sent{}, marked{err, ErrInvalid}
		}
	}
	return h.Named.Send(ctx, name, payload, comment)
}

// HealthCheckRun is one run of a health check as Temporal's lists know it.
type HealthCheckRun struct {
	Run
	// Configured: a worker started it, as its configuration says.
	Configured bool
}

// HealthCheckView is what is known of a health check.
type HealthCheckView struct {
	HealthCheckRun
	// Status is nil if nobody answers, and Unanswered why; Failure is why a check that has ended did.
	Status     *api.HealthStatus
	Unanswered error
	Failure    string
	// Refused: a worker did not take its input.
	Refused bool
}

// Known is all that is known of the check: its own answer, or as much of that as is known without a worker.
func (v HealthCheckView) Known() api.HealthCheck {
	c := api.HealthCheck{HealthCheckSummary: api.HealthCheckSummary{Execution: v.execution()}}
	if v.Status != nil {
		c = api.HealthCheckOf(*v.Status)
	}
	c.Name, c.Message, c.Unanswered = v.Name, cmp.Or(c.Message, v.Failure), textOf(v.Unanswered)
	c.Configured, c.Source = v.Configured, api.SourceByHand
	if v.Configured {
		c.Source = api.SourceConfigured
	}
	if !v.Running() {
		c.EndedAt = &v.Ended
	}
	return c
}

// Summary is the check as lists have it.
func (v HealthCheckView) Summary() api.HealthCheckSummary { return v.Known().HealthCheckSummary }

// Observe looks at the check. That no worker answers is no error: the view says so. Where there was no such check it is a
// NoneError.
func (h *HealthCheck) Observe(ctx context.Context, asked api.HealthStatusRequest) (HealthCheckView, error) {
	info, err := h.describe(ctx)
	if err != nil {
		return HealthCheckView{}, err
	}
	run, _ := healthCheckOf(info)
	return h.Look(ctx, run, asked)
}

// Look looks at a run of the check that was listed, as Observe does.
func (h *HealthCheck) Look(ctx context.Context, run HealthCheckRun, asked api.HealthStatusRequest) (HealthCheckView, error) {
	v := HealthCheckView{HealthCheckRun: run}
	if !run.Running() {
		end, err := endingOf(ctx, h.server, h.id, v.RunID,
			endWords{terminated: "the workflow was terminated by hand; remediations that it began go on", cancelled: "the workflow was cancelled"},
			func(json.RawMessage) string { return "" })
		v.Failure, v.Refused = cmp.Or(end.Failure, "it was removed"), end.Refused
		return v, failedCall("looking at "+h.what, err)
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
	run := HealthCheckRun{Run: runOf(name, info)}
	// That it is there says it: where payloads are encrypted its value cannot be read here.
	_, run.Configured = info.GetMemo().GetFields()[api.MemoConfigured]
	return run, err == nil
}
