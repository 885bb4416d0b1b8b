package healthwatch

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/markdown"
	"drydock/rules/number"
	"drydock/workflows/loop"
)

// shownChecks bounds what the details show.
const shownChecks = 20

// answer takes queries.
func (w *healthwatch) answer() error {
	return workflow.SetQueryHandlerWithOptions(w.Ctx, api.QueryState, func() (api.HealthWatchState, error) { return w.page(), nil },
		workflow.QueryHandlerOptions{Description: "the checks that are watched for, who may not run, and which control-plane node may be remediated"})
}

func (w *healthwatch) page() api.HealthWatchState {
	page := api.HealthWatchState{Rebuilding: w.pending(), Checks: []api.WatchedHealthCheck{}, Permit: w.state.Permit, Troubles: w.Troubles(), Notes: w.state.Notes}
	for _, k := range w.state.Checks {
		page.Checks = append(page.Checks, api.WatchedHealthCheck{
			Name: k.Intent.Name, RunID: k.Intent.RunID, CreatedAt: k.Intent.CreatedAt, Revision: k.Intent.Revision, Selector: k.Intent.Selector,
			Remediating: len(k.Intent.Remediating), Told: k.Known.All, Refused: k.Refused,
		})
	}
	return page
}

// describe shows the watch in the Temporal UI.
func (w *healthwatch) describe() {
	var text strings.Builder
	fmt.Fprintf(&text, "watches nodes for %s", number.Of(len(w.state.Checks), "health check"))
	if waits := w.pending(); waits != "" {
		fmt.Fprintf(&text, "\n\n%s", markdown.Text(waits))
	}
	text.WriteString(loop.ShowTroubles(w.Troubles()))
	if p := w.state.Permit; p.Node != "" {
		fmt.Fprintf(&text, "\n\ncontrol-plane node %s may be remediated by check %s", markdown.Text(p.Node), markdown.Text(p.Check))
	}
	if len(w.state.Checks) > 0 {
		text.WriteString("\n")
	}
	for _, k := range w.state.Checks[:min(len(w.state.Checks), shownChecks)] {
		fmt.Fprintf(&text, "\n- %s: %s", markdown.Text(k.Intent.Name), markdown.Text(k.Intent.Selector))
		if n := len(k.Intent.Remediating); n > 0 {
			fmt.Fprintf(&text, ", remediates %d", n)
		}
		if k.Refused != "" {
			fmt.Fprintf(&text, ", refused: %s", markdown.Text(k.Refused))
		}
	}
	if more := len(w.state.Checks) - shownChecks; more > 0 {
		fmt.Fprintf(&text, "\n- and %d more", more)
	}
	text.WriteString(loop.Latest(w.state.Notes))
	workflow.SetCurrentDetails(w.Ctx, text.String())
}
