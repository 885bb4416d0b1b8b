package views

import (
	"fmt"
	"slices"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/conf"
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
	t := document.Table{Title: "In maintenance by a profile", Header: []string{"node", "profile", "since", "what"}, OneLine: true}
	for _, n := range held.Nodes {
		for _, p := range n.Profiles {
			if p.State == state.Maintenance {
				t.Add(n.Node, p.Profile, r.age(p.Since), profileNews(p, r))
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
		if news := profileNews(p, r); news != "" {
			text += "; " + news
		}
		d.PaintedFact("Profile", document.Active, text)
	}
	d.Fact("Next", fmt.Sprintf("drydock profile explain %s | drydock history %s", n.Node, n.Node))
	return d
}

// profileNews says what is under way, what has failed, and what is waited for.
func profileNews(p api.NodeProfile, r Reader) string {
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
			text += ", since " + r.at(b.Since)
		}
		parts = append(parts, text)
	}
	if p.Failure != "" {
		parts = append(parts, "failed: "+r.words(p.Failure))
	}
	if len(p.Waiting) > 0 {
		parts = append(parts, "waits for "+strings.Join(p.Waiting, ", "))
	}
	if len(p.Failing) > 0 {
		parts = append(parts, "failing: "+strings.Join(p.Failing, ", "))
	}
	return strings.Join(parts, "; ")
}

// ProfileNodes counts the nodes by their profiles, or by one, and has a line for each profile of each node.
func ProfileNodes(all api.ProfileNodes, profile string, r Reader) (d document.Document) {
	counts := slices.DeleteFunc(slices.Clone(all.Counts), func(c api.ProfileCount) bool { return profile != "" && c.Profile != profile })
	d.Table(profileCounts(counts))
	t := document.Table{Header: []string{"node", "profile", "state", "since", "what"}, OneLine: true}
	for _, n := range all.Nodes {
		if n.Problem != "" {
			t.AddPainted(4, document.Bad, n.Node, "", string(n.State), "", r.words(n.Problem))
		}
		for _, p := range n.Profiles {
			since := ""
			if !p.Since.IsZero() {
				since = r.at(p.Since)
			}
			t.AddPainted(2, profileStyle(p), n.Node, p.Profile, string(p.State), since, profileNews(p, r))
		}
	}
	d.Table(t)
	return d
}

// ProfileExplanation has the lines in which a worker says why a node is in its state.
func ProfileExplanation(lines []string, r Reader) (d document.Document) {
	var list document.Table // keeps the lines of a profile together where indentation is not shown
	for _, line := range lines {
		switch text := r.words(line); {
		case !r.brief:
			d.Line("%s", text)
		case strings.HasPrefix(text, " "):
			list.Add("", strings.TrimSpace(text))
		default:
			list.Add(text)
		}
	}
	d.Table(list)
	return d
}

// ProfileLint is what is to be said of a file of profiles, a paragraph each.
func ProfileLint(path string, report profile.Report) (d document.Document) {
	if len(report.Problems)+len(report.Warnings) == 0 {
		d.Line("%s: nothing is wrong with it.", path)
		return d
	}
	d.Line("%s: %s, %s", path, number.Of(len(report.Problems), "problem"), number.Of(len(report.Warnings), "warning"))
	lint(&d, "Problem", report.Problems)
	lint(&d, "Warning", report.Warnings)
	if slices.ContainsFunc(report.Problems, func(p conf.Problem) bool { return p.Variable != "" }) {
		d.Paragraph("Variables are those of this command's environment: give it those of the worker, or pass --allow-unset.")
	}
	return d
}

func lint(d *document.Document, head string, all []conf.Problem) {
	for _, p := range all {
		d.Paragraph("%s%s", head, colon(p.Path))
		d.Line("  %s%s", p.Text, colon(p.Next))
	}
}
