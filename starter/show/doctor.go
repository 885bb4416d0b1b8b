package show

import (
	"fmt"
	"io"
	"time"

	"drydock/rules/doctor"
	"drydock/rules/period"
	"drydock/starter/terminal"
)

// Doctor shows the doctor's report.
func Doctor(w io.Writer, r doctor.Report, all bool, now time.Time) {
	renderHealed(w, r)
	looked := fmt.Sprintf("%s, %d marked; %s; %s in use, %d waited for", terminal.Plural(r.Looked.Nodes, "node"), r.Looked.Marked,
		terminal.Plural(r.Looked.Maintenances, "running maintenance"), terminal.Plural(r.Looked.Holders, "slot"), r.Looked.Pending)
	fmt.Fprintf(w, "Looked at: %s.\n", looked)
	switch n := r.Count(); {
	case n == 0 && len(r.Healed) > 0:
		fmt.Fprintln(w, "Nothing is inconsistent any more.")
	case n == 0:
		fmt.Fprintln(w, "Nothing is inconsistent.")
	default:
		fmt.Fprintf(w, "%s:\n", terminal.Plural(n, "finding"))
		for _, f := range r.Findings {
			renderDoctorFinding(w, f, now)
		}
		if r.More > 0 {
			fmt.Fprintf(w, "and %d more\n", r.More)
		}
	}
	if all {
		for _, f := range r.Notes {
			fmt.Fprintf(w, "Note: %s\n", terminal.OneLine(about(f)+f.Text))
		}
		if r.MoreNotes > 0 {
			fmt.Fprintf(w, "and %d more notes\n", r.MoreNotes)
		}
	}
}

func renderHealed(w io.Writer, r doctor.Report) {
	if len(r.Healed) == 0 {
		return
	}
	fmt.Fprintln(w, "Healed:")
	for _, h := range r.Healed {
		fmt.Fprintf(w, "  %s  %s\n    done: %s\n", h.Kind, terminal.OneLine(about(h.Finding)+h.Text), terminal.OneLine(h.Tried))
	}
	if r.MoreHealed > 0 {
		fmt.Fprintf(w, "  and %d more\n", r.MoreHealed)
	}
}

// renderDoctorFinding takes several lines, since what a person has to do does not fit into a column.
func renderDoctorFinding(w io.Writer, f doctor.Finding, now time.Time) {
	since := ""
	if f.Since != nil {
		since = " (since " + period.Age(now.Sub(*f.Since)) + ")"
	}
	fmt.Fprintf(w, "  %s  %s%s\n", f.Kind, terminal.OneLine(about(f)+f.Text), since)
	if f.RunID != "" {
		fmt.Fprintf(w, "    workflow: %s, run %s\n", f.WorkflowID, f.RunID)
	}
	switch {
	case f.Tried != "":
		fmt.Fprintf(w, "    tried: %s\n", terminal.OneLine(f.Tried))
	case f.Fix != "":
		fmt.Fprintf(w, "    --fix: %s\n", f.Fix.Does())
	}
	if f.NextStep != "" {
		fmt.Fprintf(w, "    next: %s\n", terminal.OneLine(f.NextStep))
	}
}

func about(f doctor.Finding) string {
	if f.Node == "" {
		return ""
	}
	return f.Node + ": "
}
