package views

import (
	"fmt"

	"drydock.dev/drydock/rules/doctor"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
)

// Doctor is what a doctor has found and healed; all has also what is no inconsistency.
func Doctor(report doctor.Report, all bool, r Reader) document.Document {
	d := document.Document{Title: "Doctor"}
	d.Table(healed(report, r))
	what := number.Of(report.Looked.Nodes, "node")
	if len(report.Nodes) > 0 {
		what = some(report.Nodes, 5, false)
	}
	d.Paragraph("Checked %s (%d marked), %s, %s in use, %d waiting.", what, report.Looked.Marked,
		number.Of(report.Looked.Maintenances, "running maintenance"), number.Of(report.Looked.Holders, "slot"), report.Looked.Pending)
	switch n := report.Count(); {
	case n == 0 && len(report.Healed) > 0:
		d.Line("Nothing is inconsistent any more.")
	case n == 0:
		d.Line("Nothing is inconsistent.")
	default:
		d.Table(findings(report, r))
	}
	if all {
		t := document.Table{Title: "Notes", More: document.AndMore(report.MoreNotes)}
		for _, f := range report.Notes {
			t.Add(about(f) + f.Text)
		}
		d.Table(t)
	}
	return d
}

func healed(report doctor.Report, r Reader) document.Table {
	t := document.Table{Title: "Healed"}
	shown, more := first(r, report.Healed)
	for _, h := range shown {
		t.AddPainted(0, document.Good, string(h.Kind), about(h.Finding)+r.words(h.Text))
		t.Add("", "done: "+r.said(r.words(h.Tried)))
	}
	t.More = document.AndMore(more + report.MoreHealed)
	return t
}

// findings has several rows for each, since what a person has to do does not fit into a column.
func findings(report doctor.Report, r Reader) document.Table {
	t := document.Table{Title: number.Of(report.Count(), "finding")}
	shown, more := first(r, report.Findings)
	for _, f := range shown {
		since := ""
		if f.Since != nil {
			since = " (since " + r.age(*f.Since) + ")"
		}
		t.AddPainted(0, document.Bad, string(f.Kind), about(f)+r.words(f.Text)+since)
		if f.RunID != "" {
			t.Add("", fmt.Sprintf("workflow: %s, run %s", f.WorkflowID, f.RunID))
		}
		switch {
		case f.Tried != "":
			t.Add("", "tried: "+r.said(r.words(f.Tried)))
		case f.Fix != "":
			t.Add("", "--fix: "+f.Fix.Does())
		}
		if f.NextStep != "" {
			t.Add("", "next: "+f.NextStep)
		}
	}
	t.More = document.AndMore(more + report.More)
	return t
}

// about names the node of a finding, where it has one.
func about(f doctor.Finding) string {
	if f.Node == "" {
		return ""
	}
	return f.Node + ": "
}
