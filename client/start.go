package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	temporalclient "go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/spec"
)

// Input is the input of a maintenance as JSON has it: the fields of the reference, such as node, requestor and
// drain.force. What is absent gets the worker's default, which a zero value does not.
type Input map[string]any

// Decode reads the input as the workflow will, without the worker's defaults, which can only fill in what is absent. An
// input that would be refused is ErrInvalid, and the error names the fields.
func (in Input) Decode() (spec.Maintenance, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return spec.Maintenance{}, marked{err, ErrInvalid}
	}
	decoded, err := spec.Decode(data, nil)
	if err != nil {
		return decoded, marked{err, ErrInvalid}
	}
	return decoded, nil
}

// Start starts a maintenance, or adopts the one that runs already for the same node and requestor if it has the same
// settings; if it has others, it is a DifferentError, and if it is about to end a ReleasingError. It returns once Temporal
// has it, before anything is done to the node and before its input was read: Accepted is the goal of whoever waits for that.
func (c *Client) Start(ctx context.Context, in Input) (v View, adopted bool, err error) {
	asked, err := in.Decode()
	if err != nil {
		return View{}, false, err
	}
	if err := cmp.Or(asked.Reserved(), api.CheckReportToOf(asked.ReportTo)); err != nil {
		return View{}, false, marked{err, ErrInvalid}
	}
	for try := 1; ; try++ {
		v, adopted, err = c.startOnce(ctx, in, asked)
		if !errors.Is(err, errJustEnded) || try == startAttempts {
			return v, adopted, err
		}
	}
}

// startAttempts bounds how often a maintenance is started anew because the one before it ended just then.
const startAttempts = 3

var errJustEnded = errors.New("the one before it has just ended: start again")

func (c *Client) startOnce(ctx context.Context, in Input, asked spec.Maintenance) (v View, adopted bool, err error) {
	run, err := c.server.start(ctx, temporalclient.StartWorkflowOptions{
		ID:                                       api.MaintenanceID(c.options.Cluster, asked.Node, asked.Requestor),
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            staticSummary(asked),
		StaticDetails:                            staticDetails(asked, c.options.By),
	}, api.NodeMaintenanceType, in)
	if running, is := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); is {
		v, err := c.adopt(ctx, in, asked, running.RunId)
		return v, true, err
	}
	if err != nil {
		return View{}, false, failedCall("starting the maintenance of "+asked.Node, err)
	}
	return View{Maintenance: Maintenance{
		Node: asked.Node, Requestor: asked.Requestor, WorkflowID: run.GetID(), RunID: run.GetRunID(), FirstRunID: run.GetRunID(),
		Started: c.options.Now(), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING,
	}}, false, nil
}

func (c *Client) adopt(ctx context.Context, in Input, asked spec.Maintenance, run string) (View, error) {
	id := api.MaintenanceID(c.options.Cluster, asked.Node, asked.Requestor)
	look := c.observer(Maintenance{Node: asked.Node, Requestor: asked.Requestor, WorkflowID: id, RunID: run})
	v, err := look.observe(ctx)
	for try := 0; err == nil && v.Running() && v.Unanswered == nil && !prepared(v.Status) && try < 10; try++ {
		sleep(ctx, 300*time.Millisecond)
		v, err = look.observe(ctx)
	}
	if err != nil {
		return v, failedCall("looking at the running maintenance of "+asked.Node, err)
	}
	if v.Unanswered != nil {
		return v, &NotComparedError{Node: asked.Node, Requestor: asked.Requestor, Unanswered: v.Unanswered}
	}
	if !v.Running() || v.Status == nil {
		return v, fmt.Errorf("the maintenance of %s was not started: %w", asked.Node, errJustEnded)
	}
	if releasing(v.Status) {
		return v, &ReleasingError{View: v}
	}
	if different := spec.Differences(in, asked, v.Status.Spec); len(different) > 0 {
		return v, &DifferentError{View: v, Differences: different}
	}
	return v, nil
}

// NotComparedError says that a maintenance of the same node and requestor runs, and that nobody can say its settings.
type NotComparedError struct {
	Node, Requestor string
	Unanswered      error
}

func (e *NotComparedError) Error() string {
	return fmt.Sprintf("a maintenance of %s for %s is running already, and cannot be compared with this one", e.Node, e.Requestor)
}

// Unwrap returns why nobody can say them.
func (e *NotComparedError) Unwrap() error { return e.Unanswered }

// Difference is a field in which a running maintenance differs from what is asked for.
type Difference = spec.Difference

// DifferentError says that a maintenance of the same node and requestor runs with other settings.
type DifferentError struct {
	View        View
	Differences []Difference
}

func (e *DifferentError) Error() string {
	fields := make([]string, len(e.Differences))
	for i, d := range e.Differences {
		fields[i] = d.Field
	}
	return fmt.Sprintf("a maintenance of %s for %s is running already (%s), with other settings: %s differ",
		e.View.Node, e.View.Requestor, e.View.Phase(), strings.Join(fields, ", "))
}

// Temporal refuses a summary of more than 400 bytes.
const maxSummary = 400

// staticSummary is what Temporal's lists show of a maintenance.
func staticSummary(m spec.Maintenance) string {
	text := markdown.Text(fmt.Sprintf("%s for %s%s", m.Node, m.Requestor, colon(m.Reason)))
	if len(text) <= maxSummary {
		return text
	}
	const ellipsis = "…"
	end := maxSummary - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

func staticDetails(m spec.Maintenance, by string) string {
	lines := []string{"Started by " + markdown.Text(by) + "."}
	if m.Reason != "" {
		lines = append(lines, "Reason: "+markdown.Text(m.Reason))
	}
	if m.Ticket != "" {
		lines = append(lines, "Ticket: "+markdown.Text(m.Ticket))
	}
	return strings.Join(lines, "\n\n")
}
