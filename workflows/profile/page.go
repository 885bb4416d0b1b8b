package profile

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/details"
)

// shownTransitions bounds what the details show.
const shownTransitions = 20

var queries = []controller.Query[*profiles]{{
	Name: api.QueryState, Doc: "the transitions under way, those that were not carried out, and what is wrong with the file", Question: question{},
}}

// question asks for what people are shown.
type question struct{}

func (question) Answer(p *profiles, now time.Time) (any, error) {
	state := api.ProfilesState{Problem: p.Problem, Sending: len(p.Sending), Troubles: p.troubles(now), Notes: p.Notes}
	for _, u := range p.running() {
		state.UnderWay = append(state.UnderWay, api.ProfileUnderWay{
			Profile: u.Profile, Node: u.Node, UID: u.UID, RunID: u.RunID, Busy: profile.Busy{To: u.To, Enter: u.Enter, Since: u.Began},
		})
	}
	for _, f := range p.Failed {
		state.Failed = append(state.Failed, api.ProfileUnderWay{
			Profile: f.Profile, Node: f.Node, Busy: profile.Busy{To: f.To, Enter: f.Enter, Until: f.Until, Failed: f.Why},
		})
	}
	if !p.Known {
		state.Waiting = "which transitions run is not known yet"
	}
	return state, nil
}

func (p *profiles) Page(now time.Time) controller.Page {
	running := p.running()
	var text strings.Builder
	fmt.Fprintf(&text, "%s under way, %s being sent", number.Of(len(running), "transition"), number.Of(len(p.Sending), "notification"))
	if !p.Known {
		text.WriteString("\n\nlooks for the transitions that run")
	}
	if p.Problem != "" {
		fmt.Fprintf(&text, "\n\nthe file is not in force, the last good one is: %s", markdown.Text(p.Problem))
	}
	text.WriteString(details.Troubles(p.troubles(now)))
	text.WriteString("\n")
	for _, u := range running[:min(len(running), shownTransitions)] {
		fmt.Fprintf(&text, "\n- %s, profile %s: to %s", markdown.Text(u.Node), markdown.Text(u.Profile), u.To)
	}
	for _, f := range p.Failed[:min(len(p.Failed), shownTransitions)] {
		fmt.Fprintf(&text, "\n- %s, profile %s: not to %s: %s", markdown.Text(f.Node), markdown.Text(f.Profile), f.To, markdown.Text(f.Why))
	}
	return controller.Page{Details: text.String() + p.ShowNotes()}
}
