package show

import (
	"io"
	"time"

	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/terminal"
)

// Doctor shows the doctor's report.
func Doctor(w io.Writer, r doctor.Report, all bool, now time.Time) {
	renderHealed(w, r)
	what := terminal.Plural(r.Looked.Nodes, "node")
	if len(r.Nodes) > 0 {
		what = terminal.SomeOf(r.Nodes, 5)
	}
	terminal.Print(w, "Checked %s (%d marked), %s, %s in use, %d waiting.\n", what, r.Looked.Marked,
		terminal.Plural(r.Looked.Maintenances, "running maintenance"), terminal.Plural(r.Looked.Holders, "slot"), r.Looked.Pending)
	switch n := r.Count(); {
	case n == 0 && len(r.Healed) > 0:
		terminal.Print(w, "Nothing is inconsistent any more.\n")
	case n == 0:
		terminal.Print(w, "Nothing is inconsistent.\n")
	default:
		terminal.Print(w, "%s:\n", terminal.Plural(n, "finding"))
		for _, f := range r.Findings {
			renderDoctorFinding(w, f, now)
		}
		if r.More > 0 {
			terminal.Print(w, "and %d more\n", r.More)
		}
	}
	if all {
		for _, f := range r.Notes {
			terminal.Print(w, "Note: %s\n", terminal.OneLine(about(f)+f.Text))
		}
		if r.MoreNotes > 0 {
			terminal.Print(w, "and %s\n", terminal.More(r.MoreNotes, "note"))
		}
	}
}

func renderHealed(w io.Writer, r doctor.Report) {
	if len(r.Healed) == 0 {
		return
	}
	terminal.Print(w, "Healed:\n")
	for _, h := range r.Healed {
		terminal.Print(w, "  %s  %s\n    done: %s\n", h.Kind, terminal.OneLine(about(h.Finding)+h.Text), terminal.OneLine(h.Tried))
	}
	if r.MoreHealed > 0 {
		terminal.Print(w, "  and %d more\n", r.MoreHealed)
	}
}

// renderDoctorFinding takes several lines, since what a person has to do does not fit into a column.
func renderDoctorFinding(w io.Writer, f doctor.Finding, now time.Time) {
	since := ""
	if f.Since != nil {
		since = " (since " + period.Age(now.Sub(*f.Since)) + ")"
	}
	terminal.Print(w, "  %s  %s%s\n", f.Kind, terminal.OneLine(about(f)+f.Text), since)
	if f.RunID != "" {
		terminal.Print(w, "    workflow: %s, run %s\n", f.WorkflowID, f.RunID)
	}
	switch {
	case f.Tried != "":
		terminal.Print(w, "    tried: %s\n", terminal.OneLine(f.Tried))
	case f.Fix != "":
		terminal.Print(w, "    --fix: %s\n", f.Fix.Does())
	}
	if f.NextStep != "" {
		terminal.Print(w, "    next: %s\n", terminal.OneLine(f.NextStep))
	}
}

func about(f doctor.Finding) string {
	if f.Node == "" {
		return ""
	}
	return f.Node + ": "
}
