package health

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/controller"
)

// pageSize and maxPageSize bound a page of the status, in nodes; shownNodes what the details show.
const (
	pageSize    = 100
	maxPageSize = 1000
	shownNodes  = 20
)

type status struct{ api.HealthStatusRequest }

func (q status) Answer(c *check, now time.Time) (any, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = pageSize
	}
	return c.page(now, max(q.Offset, 0), min(limit, maxPageSize)), nil
}

func (c *check) page(now time.Time, offset, limit int) api.HealthStatus {
	return api.HealthStatus{
		Name: c.name, WorkflowID: c.Info.WorkflowID, RunID: c.Info.Run, CreatedAt: c.CreatedAt, Spec: c.Spec,
		Status: health.Look(c.input(now), offset, limit), WaitingFor: c.waitsFor(now), Troubles: slices.Concat(c.troubles(now), c.nodeTroubles(now)),
		Events: c.Events, Messages: c.Messages,
	}
}

type explain struct{ api.ExplainRequest }

func (q explain) Answer(c *check, now time.Time) (any, error) {
	if err := spec.NodeName(q.Node); err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	explanation := health.Explain(c.input(now), q.Node)
	for _, t := range c.troubles(now) {
		explanation.Blocks = append(explanation.Blocks, t.String())
	}
	return explanation, nil
}

func (c *check) input(now time.Time) health.Input {
	return health.Input{Spec: c.Spec, State: c.Health, Now: now}
}

// waitsFor says in words what the check has to know before it decides anything.
func (c *check) waitsFor(now time.Time) string {
	switch {
	case !c.Known:
		return "finding out which remediations run"
	case c.waitsForReports(now):
		return "remediations that run to say how far they are"
	case !c.Health.Seen.Known:
		return "the watch of the nodes to report how they are"
	default:
		return ""
	}
}

// attributes are the search attributes of a workflow of the check, none where the namespace has none.
func (c *check) attributes(kind, node string) map[string]string {
	if c.Prepared == nil || !c.Prepared.SearchAttributes {
		return nil
	}
	attributes := map[string]string{
		api.AttributeRequestor.GetName(): api.RemediationRequestor(c.name), api.AttributeCluster.GetName(): c.Info.Cluster,
	}
	if node != "" {
		attributes[api.AttributeNode.GetName()] = node
	}
	if c.Prepared.Kinds {
		attributes[api.AttributeKind.GetName()] = kind
	}
	return attributes
}

func (c *check) Page(now time.Time) controller.Page {
	shown := api.HealthCheckOf(c.page(now, 0, shownNodes))
	return controller.Page{
		Details: c.Details(views.HealthCheck(shown, views.Brief())), Attributes: c.attributes(api.KindHealthCheck, ""), Object: c.given.Object,
		Shows: []any{shown.Phase, shown.Counts, shown.WaitingFor != "", shown.Blocked != "", shown.Message != "", c.Invalid != "", c.Removed, health.Shape(shown.UnhealthyNodes)},
		Memo:  map[string]any{api.MemoHealthCheck: api.HealthCheckMemo{Selector: c.Spec.SelectorText(), CreatedAt: c.CreatedAt}},
	}
}
