package profiles

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/markdown"
	"drydock/rules/number"
	"drydock/workflows/loop"
)

// shownTransitions bounds what the details show.
const shownTransitions = 20

// answer takes queries.
func (p *profiles) answer() error {
	return workflow.SetQueryHandlerWithOptions(p.Ctx, api.QueryState, func() (api.ProfilesState, error) { return p.page(), nil },
		workflow.QueryHandlerOptions{Description: "the transitions under way, those that were not carried out, and what is wrong with the file"})
}

func (p *profiles) page() api.ProfilesState {
	page := api.ProfilesState{Problem: p.state.Problem, Sending: len(p.state.Sending), Troubles: p.Troubles(), Notes: p.state.Notes}
	page.UnderWay, page.Failed = p.ledger.shown()
	if !p.state.Known {
		page.Waiting = "which transitions run is not known yet"
	}
	return page
}

// describe shows the profiles in the Temporal UI.
func (p *profiles) describe() {
	var text strings.Builder
	fmt.Fprintf(&text, "%s under way, %s being sent", number.Of(len(p.ledger.running()), "transition"), number.Of(len(p.state.Sending), "notification"))
	if !p.state.Known {
		text.WriteString("\n\nlooks for the transitions that run")
	}
	if p.state.Problem != "" {
		fmt.Fprintf(&text, "\n\nthe file is not in force, the last good one is: %s", markdown.Text(p.state.Problem))
	}
	text.WriteString(loop.ShowTroubles(p.Troubles()))
	text.WriteString("\n")
	running := p.ledger.running()
	for _, u := range running[:min(len(running), shownTransitions)] {
		fmt.Fprintf(&text, "\n- %s, profile %s: to %s", markdown.Text(u.Node), markdown.Text(u.Profile), u.To)
	}
	for _, f := range p.state.Failed[:min(len(p.state.Failed), shownTransitions)] {
		fmt.Fprintf(&text, "\n- %s, profile %s: not to %s: %s", markdown.Text(f.Node), markdown.Text(f.Profile), f.To, markdown.Text(f.Why))
	}
	text.WriteString(loop.Latest(p.state.Notes))
	workflow.SetCurrentDetails(p.Ctx, text.String())
}
