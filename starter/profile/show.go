package profile

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/terminal"
)

func stateStyle(p api.NodeProfile) document.Style {
	switch {
	case p.Failure != "" || len(p.Failing) > 0:
		return document.Bad
	case p.Unknown:
		return document.Faint
	case p.State == state.Operational:
		return document.Good
	case p.State == state.Maintenance:
		return document.Active
	}
	return document.Plain
}

// counts shows how many nodes are in each state, a line for each profile.
func counts(w io.Writer, all []api.ProfileCount, profile string) {
	said := map[string][]string{}
	var order []string
	for _, c := range all {
		if profile != "" && c.Profile != profile {
			continue
		}
		if said[c.Profile] == nil {
			order = append(order, c.Profile)
		}
		text := fmt.Sprintf("%d %s", c.Nodes, c.State)
		if c.Failing > 0 {
			text += fmt.Sprintf(" (checks of %d fail)", c.Failing)
		}
		said[c.Profile] = append(said[c.Profile], text)
	}
	for _, name := range order {
		terminal.Print(w, "%s: %s\n", terminal.OneLine(name), strings.Join(said[name], ", "))
	}
	if len(order) > 0 {
		terminal.Print(w, "\n")
	}
}

// list shows a line for each profile of each node.
func list(w io.Writer, nodes []api.ProfileNode, now time.Time) {
	r := terminal.OneLineEach(w, "NODE", "PROFILE", "STATE", "SINCE", "WHAT")
	for _, n := range nodes {
		if n.Problem != "" {
			r.AddPainted(4, document.Bad, n.Node, "", string(n.State), "", terminal.Words(n.Problem, now))
		}
		for _, p := range n.Profiles {
			r.AddPainted(2, stateStyle(p), n.Node, p.Profile, string(p.State), terminal.Clock(p.Since, now), what(p, now))
		}
	}
	r.Done()
}

// what says what is under way, what has failed, and what is waited for.
func what(p api.NodeProfile, now time.Time) string {
	var parts []string
	if p.Unknown {
		parts = append(parts, "not in the configuration: its state is kept")
	}
	if b := p.Busy; b != nil {
		text := fmt.Sprintf("on its way to %s", b.To)
		if b.Enter {
			text = fmt.Sprintf("its triggers on entering %s run", b.To)
		}
		if !b.Since.IsZero() && !b.Since.Equal(p.Since) {
			text += ", since " + terminal.Clock(b.Since, now)
		}
		parts = append(parts, text)
	}
	if p.Failure != "" {
		parts = append(parts, "failed: "+terminal.Words(p.Failure, now))
	}
	if len(p.Waiting) > 0 {
		parts = append(parts, "waits for "+strings.Join(p.Waiting, ", "))
	}
	if len(p.Failing) > 0 {
		parts = append(parts, "failing: "+strings.Join(p.Failing, ", "))
	}
	return strings.Join(parts, "; ")
}
