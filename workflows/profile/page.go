package profile

import (
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/views"
	"drydock.dev/drydock/workflows/controller"
)

const shownTransitions = 20

var queries = []controller.Query[*profiles]{{
	Name: api.QueryState, Doc: "the transitions under way, those that were not carried out, and what is wrong with the file", Question: question{},
}}

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
	d := document.Document{Title: "Profiles"}
	d.Fact("Under way", number.Of(len(running), "transition"))
	d.Fact("Being sent", number.Of(len(p.Sending), "notification"))
	if !p.Known {
		d.Fact("Waiting for", "the transitions that run to be found")
	}
	if p.Problem != "" {
		d.Line("The file is not in force, the last good one is: %s", p.Problem)
	}
	views.Troubles(&d, p.troubles(now), views.Brief())
	t := document.Table{Title: "Transitions", Header: []string{"node", "profile", "to", "not carried out"}}
	for _, u := range running[:min(len(running), shownTransitions)] {
		t.Add(u.Node, u.Profile, string(u.To), "")
	}
	for _, f := range p.Failed[:min(len(p.Failed), shownTransitions)] {
		t.Add(f.Node, f.Profile, string(f.To), f.Why)
	}
	d.Table(t)
	return controller.Page{Details: p.Details(d)}
}
