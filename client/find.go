package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// Latest is the newest maintenance of a node for a requestor, running or ended; found is false if there was none.
func (c *Client) Latest(ctx context.Context, node, requestor string) (m Maintenance, found bool, err error) {
	answer, err := c.server.describe(ctx, api.MaintenanceID(c.options.Cluster, node, requestor), "")
	if isA[*serviceerror.NotFound](err) {
		return m, false, nil
	}
	if err != nil {
		return m, false, failedCall("looking for the maintenance", err)
	}
	m, found = maintenanceOf(answer.GetWorkflowExecutionInfo())
	return m, found, nil
}

// ListOptions choose maintenances.
type ListOptions struct {
	// Node is the one whose maintenances are wanted; all nodes' where it is empty.
	Node string
	// Running leaves out those that have ended.
	Running bool
	// Limit bounds how many there are; 0 is no bound.
	Limit int
}

// List finds maintenances, newest first. Temporal's lists lag a little behind, so that one started a moment ago can be
// missing; those that ended are known for as long as the namespace keeps them.
func (c *Client) List(ctx context.Context, o ListOptions) ([]Maintenance, error) {
	return c.server.listBy(ctx, listQuery(c.options.Cluster, o.Node, o.Running), o.Limit)
}

func (s *server) listBy(ctx context.Context, query string, limit int) ([]Maintenance, error) {
	found, err := listAll(ctx, s, query, limit, maintenanceOf)
	return found, failedCall("listing maintenances", err)
}

// listQuery relies on what every namespace has, not on Drydock's own search attributes.
func listQuery(cluster, node string, running bool) string {
	prefix := api.MaintenanceID(cluster, node, "")
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

// Found is a running maintenance that a node and a requestor address.
type Found struct {
	Maintenance
	// For is on whose behalf a message is to be sent: who was asked for, or the maintenance's own requestor.
	For string
	// Shared: For shares a maintenance which is somebody else's.
	Shared bool
	// Only: it is somebody else's, taken because it is the only one that runs and nobody was named.
	Only bool
}

// NotFoundError says that no running maintenance of a node is the one that was asked for.
type NotFoundError struct {
	Node, Requestor string
	// Named: the requestor was asked for, and is not only the Client's own.
	Named bool
	// Others run on the node.
	Others []Maintenance
	// Last is the requestor's latest maintenance of the node, which has ended; nil if there is none.
	Last *Maintenance
}

func (e *NotFoundError) Error() string {
	if len(e.Others) == 0 {
		return fmt.Sprintf("no maintenance of %s is running", e.Node)
	}
	if e.Named {
		return fmt.Sprintf("no maintenance of %s for %s is running", e.Node, e.Requestor)
	}
	return fmt.Sprintf("%d maintenances of %s are running, for %s, and none for %s", len(e.Others), e.Node, strings.Join(e.Requestors(), ", "), e.Requestor)
}

// Requestors are those whose maintenances of the node run, in order.
func (e *NotFoundError) Requestors() []string {
	requestors := make([]string, len(e.Others))
	for i, m := range e.Others {
		requestors[i] = m.Requestor
	}
	slices.Sort(requestors)
	return requestors
}

// Find returns the running maintenance of a node. With an empty requestor it is that of Options.Requestor, or the only
// one there is; a requestor that shares somebody else's maintenance addresses that one. Where there is none, or it is
// not clear which, it is a NotFoundError.
func (c *Client) Find(ctx context.Context, node, requestor string) (Found, error) {
	if err := spec.NodeName(node); err != nil {
		return Found{}, marked{err, ErrInvalid}
	}
	wanted := cmp.Or(requestor, c.options.Requestor)
	if err := spec.RequestorName(wanted); err != nil {
		return Found{}, marked{fmt.Errorf("requestor: %w", err), ErrInvalid}
	}
	own, ok, err := c.Latest(ctx, node, wanted)
	if err != nil {
		return Found{}, err
	}
	if ok && own.Running() {
		return Found{Maintenance: own, For: wanted}, nil
	}
	others, err := c.List(ctx, ListOptions{Node: node, Running: true})
	if err != nil {
		return Found{}, err
	}
	// The list may not know yet that the maintenance just looked at has ended.
	others = slices.DeleteFunc(others, func(m Maintenance) bool { return m.Requestor == wanted })
	for _, m := range others {
		if slices.Contains(c.sharers(ctx, m), wanted) {
			return Found{Maintenance: m, For: wanted, Shared: true}, nil
		}
	}
	if requestor == "" && len(others) == 1 {
		return Found{Maintenance: others[0], For: others[0].Requestor, Only: true}, nil
	}
	missing := &NotFoundError{Node: node, Requestor: wanted, Named: requestor != "", Others: others}
	if own.WorkflowID != "" {
		missing.Last = &own
	}
	return Found{}, missing
}

// Starter is the identity of whoever started a maintenance, as Temporal has recorded it: Options.By where it was the command
// line; a worker's with what it began the maintenance for. It is empty if Temporal has forgotten the maintenance's first run.
func (c *Client) Starter(ctx context.Context, m Maintenance) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	page, err := c.server.temporal.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
		Namespace: c.server.namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: m.WorkflowID, RunId: m.FirstRunID}, MaximumPageSize: 1,
	})
	switch {
	case isA[*serviceerror.NotFound](err):
		return "", nil
	case err != nil:
		return "", failedCall("looking who started the maintenance of "+m.Node, err)
	}
	events := page.GetHistory().GetEvents()
	if len(events) == 0 {
		return "", nil
	}
	return api.IdentityOfStarter(m.WorkflowID, events[0].GetWorkflowExecutionStartedEventAttributes()), nil
}

// sharers are the requestors of a running maintenance; none where no worker answers.
func (c *Client) sharers(ctx context.Context, m Maintenance) []string {
	v, err := c.observer(m).observe(ctx)
	if err != nil || v.Status == nil {
		return nil
	}
	names := make([]string, len(v.Status.Requestors))
	for i, r := range v.Status.Requestors {
		names[i] = r.Name
	}
	return names
}
