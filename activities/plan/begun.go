package plan

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/rules/validation"
)

// FindInput asks which maintenances there are that the calling plan has begun, or an earlier plan of its name.
type FindInput struct {
	// RunID is the first run of the plan's chain, Since when that was started. Again: it may have begun some itself.
	RunID string    `json:"runId"`
	Since time.Time `json:"since"`
	Again bool      `json:"again,omitempty"`
	// Requestor is that of the plan's maintenances, Maintenance the input of one, with any node.
	Requestor   string          `json:"requestor"`
	Maintenance json.RawMessage `json:"maintenance,omitempty"`
	// Nodes are those whose maintenances are examined, also where the plan has not begun them.
	Nodes api.List[string] `json:"nodes,omitempty"`
}

// About implements caller.Input.
func (in FindInput) About() caller.Subject { return caller.Subject{RunID: in.RunID} }

// Begun is a maintenance that runs, or that the plan has begun and that has ended.
type Begun struct {
	Node string `json:"node"`
	// RunID is the first run of its chain.
	RunID string `json:"runId"`
	// Requestor is that of the maintenance, where it is another than the plan's.
	Requestor string `json:"requestor,omitempty"`
	// Held: it waits for somebody's decision, and Why.
	Held bool   `json:"held,omitempty"`
	Why  string `json:"why,omitempty"`
	// Earlier: an earlier plan of this name has begun it. Refused says why this plan does not take it for its own: empty if it does.
	Earlier bool   `json:"earlier,omitempty"`
	Refused string `json:"refused,omitempty"`
	// Foreign: no plan of this name has begun it.
	Foreign bool `json:"foreign,omitempty"`
	// Ended: it has ended.
	Ended bool `json:"ended,omitempty"`
}

const (
	// describesAtOnce bounds the questions to Temporal under way.
	describesAtOnce = 16
	// answerWithin bounds the question how far a maintenance is.
	answerWithin = 5 * time.Second
	// viewWithin bounds the wait for the list of nodes.
	viewWithin = 30 * time.Second
)

// FindBegun finds the maintenances that the calling plan has begun, and those that run and an earlier plan of its name has begun. What
// visibility does not know yet, the marks of nodes tell, once it holds one.
func (a *Activities) FindBegun(ctx context.Context, in FindInput) (api.List[Begun], error) {
	ctx, stop := heartbeat.UntilWorkerStops(ctx)
	defer stop()
	ids, err := a.candidates(ctx, in)
	if err != nil {
		return nil, err
	}
	p := &finding{Activities: a, in: in, plan: activity.GetInfo(ctx).WorkflowExecution.ID, ours: map[string]bool{}}
	found := make([]*Begun, len(ids))
	group, looking := errgroup.WithContext(ctx)
	group.SetLimit(describesAtOnce)
	for i, id := range ids {
		group.Go(func() (err error) {
			found[i], err = p.look(looking, id)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all api.List[Begun]
	for _, one := range found {
		if one != nil {
			all = append(all, *one)
		}
	}
	return all, nil
}

// candidates are the workflow IDs of maintenances to look at, each once.
func (a *Activities) candidates(ctx context.Context, in FindInput) (ids []string, err error) {
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	info := activity.GetInfo(ctx)
	for _, node := range in.Nodes {
		add(api.MaintenanceID(api.ClusterOf(info.TaskQueue), node, in.Requestor))
	}
	if len(in.Nodes) > 0 {
		return ids, nil
	}
	begun := fmt.Sprintf("WorkflowType = '%s' AND ParentWorkflowId = '%s'", api.NodeMaintenanceType, info.WorkflowExecution.ID)
	queries := []string{begun + " AND ExecutionStatus = 'Running'"}
	if in.Again {
		queries = append(queries, fmt.Sprintf("%s AND StartTime >= '%s'", begun, in.Since.UTC().Format(time.RFC3339Nano)))
	}
	for _, query := range queries {
		request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: a.Namespace, Query: query}
		for more := true; more; more = len(request.NextPageToken) > 0 {
			page, err := a.Temporal.ListWorkflow(ctx, request)
			if err != nil {
				return nil, fmt.Errorf("listing the maintenances of %s: %w", info.WorkflowExecution.ID, err)
			}
			for _, e := range page.Executions {
				add(e.GetExecution().GetWorkflowId())
			}
			request.NextPageToken = page.NextPageToken
		}
	}
	return ids, a.marked(ctx, in.Requestor, add)
}

// marked adds the maintenances of a requestor that hold nodes.
func (a *Activities) marked(ctx context.Context, requestor string, add func(id string)) error {
	synced, cancel := context.WithTimeout(ctx, viewWithin)
	defer cancel()
	view, err := a.Nodes.View(synced)
	if err != nil {
		return failure.Translate(ctx, a.Nodes.Client(), err)
	}
	defer view.Close()
	cluster := api.ClusterOf(activity.GetInfo(ctx).TaskQueue)
	for _, node := range view.List() {
		mark, err := a.Nodes.MarkOf(node)
		if err != nil {
			continue // the doctor reports it
		}
		for _, holder := range mark.Holders {
			if holder.Requestor == requestor && holder.WorkflowID == api.MaintenanceID(cluster, node.Name, requestor) {
				add(holder.WorkflowID)
			}
		}
	}
	return nil
}

// finding looks at maintenances for one plan.
type finding struct {
	*Activities
	in   FindInput
	plan string

	mu sync.Mutex
	// ours says by run of a plan of this name whether it belongs to the present plan's chain.
	ours map[string]bool
}

// look looks at the latest maintenance under a workflow ID; nil is that there is nothing to say of it.
func (p *finding) look(ctx context.Context, id string) (*Begun, error) {
	info, err := p.describe(ctx, id)
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking at workflow %s: %w", id, err)
	}
	_, node, requestor, err := api.ParseMaintenanceID(id)
	if err != nil {
		return nil, nil //nolint:nilerr // what has another ID is no maintenance, and does nothing
	}
	found := &Begun{Node: node, RunID: firstOf(info)}
	if requestor != p.in.Requestor {
		found.Requestor = requestor
	}
	parent := info.GetParentExecution()
	runs := info.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	if parent.GetWorkflowId() != p.plan {
		found.Foreign = true
		if !runs || len(p.in.Nodes) == 0 {
			return nil, nil
		}
		return found, nil
	}
	ours, err := p.isOurs(ctx, parent.GetRunId())
	if err != nil {
		return nil, err
	}
	found.Earlier, found.Ended = !ours, !runs
	switch {
	case runs:
		p.ask(ctx, info.GetExecution(), found)
	case found.Earlier:
		return nil, nil
	}
	return found, nil
}

// isOurs reports whether a run of a plan of this name belongs to the present plan's chain.
func (p *finding) isOurs(ctx context.Context, run string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ours, known := p.ours[run]; known {
		return ours, nil
	}
	d, err := p.Temporal.DescribeWorkflowExecution(ctx, p.plan, run)
	var notFound *serviceerror.NotFound
	if err != nil && !errors.As(err, &notFound) {
		return false, fmt.Errorf("looking at run %s of %s: %w", run, p.plan, err)
	}
	p.ours[run] = firstOf(d.GetWorkflowExecutionInfo()) == p.in.RunID
	return p.ours[run], nil
}

func firstOf(info *workflowpb.WorkflowExecutionInfo) string {
	if first := info.GetFirstRunId(); first != "" {
		return first
	}
	return info.GetExecution().GetRunId()
}

// ask asks a maintenance that runs whether it waits for somebody's decision, and compares one of an earlier plan with what this plan
// would begin. One that does not answer is not held: later it says so.
func (p *finding) ask(ctx context.Context, execution *commonpb.WorkflowExecution, found *Begun) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	var status api.Status
	answer, err := p.Temporal.QueryWorkflow(ctx, execution.GetWorkflowId(), "", api.QueryStatus)
	if err == nil {
		err = answer.Get(&status)
	}
	if err != nil {
		activity.GetLogger(ctx).Warn("asking a maintenance how far it is", "workflow", execution.GetWorkflowId(), "error", err)
		if found.Earlier {
			found.Refused = "it does not tell its settings"
		}
		return
	}
	undecided := status.Validation != nil && status.Validation.State == validation.Failed
	if found.Held = status.Phase == api.RequestorFailed || status.Phase == api.Validating && undecided; found.Held {
		found.Why = bounds.Cut(status.Failure, bounds.Text)
	}
	if !found.Earlier {
		return
	}
	given, err := p.inputOf(ctx, execution)
	if err != nil {
		activity.GetLogger(ctx).Warn("reading the input of a maintenance", "workflow", execution.GetWorkflowId(), "error", err)
		found.Refused = "its input cannot be read"
		return
	}
	found.Refused = p.compare(found.Node, given, status.Spec)
}

// inputOf is the input that a maintenance was begun with. Each of its runs has it.
func (p *finding) inputOf(ctx context.Context, execution *commonpb.WorkflowExecution) (given map[string]any, err error) {
	page, err := p.Temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: p.Namespace, Execution: execution, MaximumPageSize: 1,
	})
	if err != nil {
		return nil, err
	}
	events := page.GetHistory().GetEvents()
	if len(events) == 0 {
		return nil, errors.New("its history is empty")
	}
	err = converter.GetDefaultDataConverter().FromPayloads(events[0].GetWorkflowExecutionStartedEventAttributes().GetInput(), &given)
	if err == nil && given == nil {
		err = errors.New("it has no input")
	}
	return given, err
}

// compare says in which settings a maintenance differs from the one that the plan would begin; empty is in none. What neither this plan
// gives, nor the earlier one gave, is the worker's default.
func (p *finding) compare(node string, given map[string]any, running spec.Maintenance) string {
	input := map[string]any{}
	err := json.Unmarshal(p.in.Maintenance, &input)
	input["node"] = node
	var data []byte
	if err == nil {
		data, err = json.Marshal(input)
	}
	var asked spec.Maintenance
	if err == nil {
		asked, err = spec.Decode(data, nil)
	}
	if err != nil {
		return bounds.Cut("it cannot be compared: "+err.Error(), bounds.Text)
	}
	var fields []string
	for _, set := range []map[string]any{input, given} {
		delete(set, "notBefore") // it has had its effect, or was moved since
		for _, d := range spec.Differences(set, asked, running) {
			if !slices.Contains(fields, d.Field) {
				fields = append(fields, d.Field)
			}
		}
	}
	switch len(fields) {
	case 0:
		return ""
	case 1:
		return fields[0] + " differs"
	}
	return bounds.Cut(strings.Join(fields, ", ")+" differ", bounds.Text)
}
