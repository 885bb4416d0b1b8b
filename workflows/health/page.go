package health

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/health"
	"drydock/rules/markdown"
	"drydock/rules/spec"
	"drydock/workflows/inbox"
	"drydock/workflows/loop"
)

// pageSize and maxPageSize bound a page of the status, in nodes; shownNodes what the details show.
const (
	pageSize    = 100
	maxPageSize = 1000
	shownNodes  = 20
)

// answer takes queries.
func (c *check) answer(root workflow.Context) error {
	status := func(raw converter.RawValue) (api.HealthStatus, error) {
		asked, err := inbox.Decode[api.HealthStatusRequest](inbox.Payload(raw))
		if err != nil {
			return api.HealthStatus{}, err
		}
		return c.page(asked), nil
	}
	explain := func(raw converter.RawValue) (api.HealthExplanation, error) {
		asked, err := inbox.Decode[api.ExplainRequest](inbox.Payload(raw))
		if err == nil {
			err = spec.NodeName(asked.Node)
		}
		if err != nil {
			return api.HealthExplanation{}, fmt.Errorf("node: %w", err)
		}
		explanation := health.Explain(c.input(), asked.Node)
		for _, t := range c.troubles() {
			explanation.Blocks = append(explanation.Blocks, t.String())
		}
		return explanation, nil
	}
	return errors.Join(
		workflow.SetQueryHandlerWithOptions(root, api.QueryStatus, status,
			workflow.QueryHandlerOptions{Description: "phase, counts, what blocks, and a page of the nodes that are not healthy"}),
		workflow.SetQueryHandlerWithOptions(root, api.QueryExplain, explain,
			workflow.QueryHandlerOptions{Description: "what the check makes of a node: which condition since when, what blocks, what comes next"}),
	)
}

func (c *core) input() health.Input {
	return health.Input{Spec: c.state.Spec, State: c.state.Health, Now: c.Now()}
}

func (c *check) page(asked api.HealthStatusRequest) api.HealthStatus {
	if asked.Limit <= 0 {
		asked.Limit = pageSize
	}
	return api.HealthStatus{
		Name: c.name, WorkflowID: c.workflowID, RunID: c.runID, CreatedAt: c.state.CreatedAt, Spec: c.state.Spec,
		Status: health.Look(c.input(), max(asked.Offset, 0), min(asked.Limit, maxPageSize)), Waiting: c.waitsFor(), Troubles: c.troubles(),
		Events: c.state.Events, Messages: c.state.Messages,
	}
}

// waitsFor says in words what the check has to know before it decides anything.
func (c *check) waitsFor() string {
	switch waits := c.stock.waitsFor(); {
	case waits != "":
		return waits
	case !c.state.Health.Seen.Known && c.state.Owed:
		return "the health watch to say how the nodes are"
	default:
		return ""
	}
}

// describe shows the check in the Temporal UI.
func (c *check) describe() {
	status := health.Look(c.input(), 0, shownNodes)
	var text strings.Builder
	fmt.Fprintf(&text, "**%s**: %s\n\n%d of %d nodes are healthy, %d have to be", status.Phase, markdown.Text(status.Reason),
		status.HealthyNodes, status.ObservedNodes, status.MinHealthy)
	if waits := c.waitsFor(); waits != "" {
		fmt.Fprintf(&text, "\n\nwaiting for %s", markdown.Text(waits))
	}
	text.WriteString(loop.ShowTroubles(c.troubles()))
	if status.Blocked != "" {
		fmt.Fprintf(&text, "\n\nNothing begins: %s", markdown.Text(status.Blocked))
	}
	if len(status.UnhealthyNodes) > 0 {
		text.WriteString("\n")
	}
	for _, n := range status.UnhealthyNodes {
		fmt.Fprintf(&text, "\n- %s: %s", markdown.Text(n.Name), markdown.Text(n.Ill))
		if n.Step > 0 {
			fmt.Fprintf(&text, ", step %d of %d", n.Step, n.Steps)
		}
		if n.Blocked != "" {
			fmt.Fprintf(&text, ", %s", markdown.Text(n.Blocked))
		}
		if n.Next != "" {
			fmt.Fprintf(&text, "; next: %s", markdown.Text(n.Next))
			if n.NextAt != nil {
				fmt.Fprintf(&text, " at %s", n.NextAt.UTC().Format(time.RFC3339))
			}
		}
	}
	if more := status.Unhealthy - len(status.UnhealthyNodes); more > 0 {
		fmt.Fprintf(&text, "\n- and %d more", more)
	}
	text.WriteString(loop.Latest(c.state.Notes))
	workflow.SetCurrentDetails(c.Ctx, text.String())
}
