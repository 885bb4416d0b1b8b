package views

import (
	"strconv"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
)

// Lockstep is how the lockstep of plans stands. Summary counts its nodes in words.
func Lockstep(s api.LockstepState, summary string, r Reader) document.Document {
	d := document.Document{Title: "Plans in lockstep"}
	d.Line("%s", summary)
	if s.Rebuilding != "" {
		d.Line("%s", r.said(r.words(s.Rebuilding)))
	}
	Troubles(&d, s.Troubles, r)
	t := document.Table{Title: "Plans", Header: []string{"plan", "stage", "nodes", "left"}}
	plans, more := first(r, s.Plans)
	for _, p := range plans {
		left := ""
		if p.Left > 0 {
			left = strconv.Itoa(p.Left)
		}
		t.Add(p.Name, string(p.Stage)+tierOf(p.Stage, p.Tier, p.Tiers), strconv.Itoa(p.Nodes), left)
	}
	t.More = document.AndMore(more)
	d.Table(t)
	return d
}
