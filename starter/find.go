package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"drydock/api"
	"drydock/k8s"
	"drydock/rules/period"
	"drydock/rules/spec"
)

// target is one run of a maintenance.
type target struct {
	Node, Requestor string
	ID, Run         string
	Started         time.Time
	Closed          time.Time
	Execution       enumspb.WorkflowExecutionStatus
}

func (t target) running() bool { return t.Execution == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING }

func targetOf(info *workflowpb.WorkflowExecutionInfo) (target, bool) {
	_, node, requestor, err := api.ParseMaintenanceID(info.GetExecution().GetWorkflowId())
	if err != nil {
		return target{}, false
	}
	t := target{
		Node: node, Requestor: requestor, ID: info.GetExecution().GetWorkflowId(), Run: info.GetExecution().GetRunId(),
		Started: info.GetStartTime().AsTime(), Execution: info.GetStatus(),
	}
	if closed := info.GetCloseTime(); closed != nil {
		t.Closed = closed.AsTime()
	}
	return t, true
}

// latest is the newest run of a maintenance, running or not.
func (c *connection) latest(ctx context.Context, node, requestor string) (t target, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := c.DescribeWorkflowExecution(ctx, api.MaintenanceID(c.cluster, node, requestor), "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return t, false, nil
	}
	if err != nil {
		return t, false, c.explain("looking for the maintenance", err)
	}
	t, found = targetOf(answer.GetWorkflowExecutionInfo())
	return t, found, nil
}

// list finds the maintenances of a node, or of all nodes where none is named, newest first and at most limit where
// that is not 0. Temporal's lists lag a little behind, so that one started a moment ago can be missing.
func (c *connection) list(ctx context.Context, node string, running bool, limit int) ([]target, error) {
	return c.listBy(ctx, c.listQuery(node, running), limit)
}

func (c *connection) listBy(ctx context.Context, query string, limit int) ([]target, error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: 500}
	var found []target
	for {
		page, err := c.listPage(ctx, request)
		if err != nil {
			return nil, c.explain("listing maintenances", err)
		}
		for _, info := range page.GetExecutions() {
			if t, ok := targetOf(info); ok {
				found = append(found, t)
			}
			if limit > 0 && len(found) == limit {
				return found, nil
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return found, nil
		}
	}
}

func (c *connection) listPage(ctx context.Context, request *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return c.ListWorkflow(ctx, request)
}

// listQuery relies on what every namespace has, not on Drydock's own search attributes.
func (c *connection) listQuery(node string, running bool) string {
	prefix := api.MaintenanceID(c.cluster, node, "")
	if node == "" {
		prefix = strings.TrimSuffix(prefix, "/")
	}
	terms := []string{
		fmt.Sprintf(`WorkflowType="%s"`, api.NodeMaintenanceType),
		fmt.Sprintf(`WorkflowId STARTS_WITH "%s"`, prefix),
	}
	if running {
		terms = append(terms, `ExecutionStatus="Running"`)
	}
	return strings.Join(terms, " AND ")
}

// found is a running maintenance that an argument and a flag address.
type found struct {
	target
	// requestor is on whose behalf a message is sent: the one that was asked for, or the maintenance's own.
	requestor string
	// note says so where this is not what was asked for.
	note string
}

// find returns the running maintenance of a node. With an empty requestor it is the user's own, or the only one
// there is; a requestor that shares somebody else's maintenance addresses that one.
func (a *app) find(ctx context.Context, c *connection, node, requestor string) (found, error) {
	if err := spec.NodeName(node); err != nil {
		return found{}, usageError("%w", err)
	}
	wanted := firstSet(requestor, a.env.requestor())
	if err := spec.RequestorName(wanted); err != nil {
		return found{}, usageError("requestor: %w", err)
	}
	own, ok, err := c.latest(ctx, node, wanted)
	if err != nil {
		return found{}, err
	}
	if ok && own.running() {
		return found{target: own, requestor: wanted}, nil
	}
	others, err := c.list(ctx, node, true, 0)
	if err != nil {
		return found{}, err
	}
	// The list may not know yet that the maintenance just looked at has ended.
	others = slices.DeleteFunc(others, func(t target) bool { return t.Requestor == wanted })
	for _, t := range others {
		if slices.Contains(c.sharers(ctx, t), wanted) {
			return found{target: t, requestor: wanted, note: fmt.Sprintf("%s shares the maintenance of %s", wanted, t.Requestor)}, nil
		}
	}
	if requestor == "" && len(others) == 1 {
		t := others[0]
		return found{target: t, requestor: t.Requestor, note: fmt.Sprintf("using the maintenance of %s for %s, the only one that runs", node, t.Requestor)}, nil
	}
	return found{}, a.notFound(ctx, c, node, wanted, requestor == "", others, own)
}

// sharers are the requestors of a running maintenance; none where no worker can tell.
func (c *connection) sharers(ctx context.Context, t target) []string {
	v, err := c.observer(t).observe(ctx)
	if err != nil || v.Status == nil {
		return nil
	}
	names := make([]string, len(v.Status.Requestors))
	for i, r := range v.Status.Requestors {
		names[i] = r.Name
	}
	return names
}

func (a *app) notFound(ctx context.Context, c *connection, node, wanted string, byDefault bool, others []target, own target) error {
	if len(others) > 0 {
		requestors := make([]string, len(others))
		for i, t := range others {
			requestors[i] = t.Requestor
		}
		slices.Sort(requestors)
		if byDefault {
			err := fmt.Errorf("%d maintenances of %s are running, for %s, and none for %s", len(others), node, strings.Join(requestors, ", "), wanted)
			return hint(err, "Say which one with --requestor.")
		}
		err := fmt.Errorf("no maintenance of %s for %s is running", node, wanted)
		return hint(err, "Running on %s for: %s.", node, strings.Join(requestors, ", "))
	}
	err := fmt.Errorf("no maintenance of %s is running", node)
	if own.ID != "" {
		err = fmt.Errorf("%w: that of %s ended %s ago", err, own.Requestor, period.Age(c.now().Sub(own.Closed)))
	}
	running, listErr := c.list(ctx, "", true, 0)
	if listErr != nil || len(running) == 0 {
		return hint(err, `See those that ended with "%s list --all".`, c.program)
	}
	names := nodeNames(running)
	if close := k8s.Similar(node, names); len(close) > 0 {
		return hint(err, "Did you mean %s?", orList(close))
	}
	return hint(err, "Running: %s.", someOf(names, 10))
}

// nodeNames are the nodes of some maintenances, each once and in order.
func nodeNames(targets []target) []string {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Node
	}
	slices.SortFunc(names, compareNames)
	return slices.Compact(names)
}
