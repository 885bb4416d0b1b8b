package views

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/profile/state"
)

// profileCounts has a line for each profile.
func profileCounts(all []api.ProfileCount) document.Table {
	t := document.Table{Title: "Profiles", Header: []string{"profile", "nodes"}}
	for _, c := range all {
		text := fmt.Sprintf("%d %s", c.Nodes, c.State)
		if c.Failing > 0 {
			text += fmt.Sprintf(" (checks of %d fail)", c.Failing)
		}
		if n := len(t.Rows); n > 0 && t.Rows[n-1].Cells[0] == c.Profile {
			t.Rows[n-1].Cells[1] += ", " + text
			continue
		}
		t.Add(c.Profile, text)
	}
	return t
}

// HeldByProfiles has a line for each profile that holds a node in maintenance.
func HeldByProfiles(held api.HeldByProfiles, r Reader) document.Document {
	return listed(heldByProfiles(held, r))
}

func heldByProfiles(held api.HeldByProfiles, r Reader) document.Table {
	t := document.Table{Title: "In maintenance by a profile", Header: []string{"node", "profile", "since", "waiting for"}, OneLine: true}
	for _, n := range held.Nodes {
		for _, p := range n.Profiles {
			if p.State == state.Maintenance {
				t.Add(n.Node, p.Profile, r.age(p.Since), r.words(profileWaits(p)))
			}
		}
	}
	if held.More {
		t.More = "and more: drydock profile list --state " + string(state.Maintenance)
	}
	return t
}

// ProfileHolds says which profiles hold a node in maintenance, where no maintenance is in charge of it.
func ProfileHolds(n api.ProfileNode, r Reader) (d document.Document) {
	d.Fact("Node", n.Node)
	for _, p := range n.Profiles {
		text := fmt.Sprintf("%s, %s since %s", p.Profile, p.State, r.ago(p.Since))
		if waits := profileWaits(p); waits != "" {
			text += "; " + r.words(waits)
		}
		d.PaintedFact("Profile", document.Active, text)
	}
	d.Fact("Next", fmt.Sprintf("drydock profile explain %s | drydock history %s", n.Node, n.Node))
	return d
}

// profileWaits says what a profile waits for, or what is under way or fails.
func profileWaits(p api.NodeProfile) string {
	var parts []string
	switch {
	case p.Failure != "":
		parts = append(parts, "failed: "+p.Failure)
	case p.Busy != nil:
		parts = append(parts, "on its way to "+string(p.Busy.To))
	}
	if len(p.Waiting) > 0 {
		parts = append(parts, strings.Join(p.Waiting, ", "))
	}
	if len(p.Failing) > 0 {
		parts = append(parts, "failing: "+strings.Join(p.Failing, ", "))
	}
	return strings.Join(parts, "; ")
}
