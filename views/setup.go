package views

import (
	"cmp"
	"strings"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/setup"
)

// setupWords are the states of what Drydock needs, as people read them.
var setupWords = map[setup.State]struct {
	word  string
	style document.Style
}{
	setup.Present: {"ok", document.Good}, setup.Made: {"done", document.Good}, setup.Missing: {"MISSING", document.Bad},
	setup.Unknown: {"UNKNOWN", document.Bad}, setup.Optional: {"-", document.Plain},
}

// Setup is what there is of what Drydock needs, and what makes the rest; applied: what can be made was. The program's name is for the
// commands to type.
func Setup(report setup.Report, applied bool, program string) (d document.Document) {
	d.Fact("Temporal", report.Address+", namespace "+report.Namespace)
	if report.Server != "" {
		d.Fact("Kubernetes", strings.TrimSpace(report.Context+" "+report.Server)+", account "+cmp.Or(report.Account, "not known"))
	}
	needs, made := setupItems(report)
	d.Table(needs)
	if report.Open {
		d.Paragraph("WARNING: Temporal at %s asks for no credentials: anyone who reaches it can evict pods with the worker's rights. "+
			"Put an authorizer and TLS before it, or let nobody else reach it (docs/concepts/trust.md).", report.Address)
	}
	switch lacking := report.Lacking(); {
	case len(lacking) > 0:
		whatToDo(&d, report, applied, program)
	case applied && made == 0:
		d.Paragraph("Everything was there; nothing was changed.")
	default:
		d.Paragraph("Everything is there.")
	}
	return d
}

// setupItems has a line for each thing that is needed, and one for all permissions that are not; made counts what was made.
func setupItems(report setup.Report) (t document.Table, made int) {
	add := func(state setup.State, name, text string) {
		t.AddPainted(0, setupWords[state].style, setupWords[state].word, name, text)
	}
	var unneeded []string
	for _, i := range report.Items {
		if i.State == setup.Made {
			made++
		}
		if i.State == setup.Optional && i.Kind == setup.Permissions {
			unneeded = append(unneeded, i.Name)
			continue
		}
		add(i.State, strings.TrimSpace(string(i.Kind)+" "+i.Name), i.Text)
	}
	if len(unneeded) > 0 {
		add(setup.Optional, string(setup.Permissions), "not granted, and nothing that is configured needs them: "+strings.Join(unneeded, ", "))
	}
	return t, made
}

// whatToDo says of all that is missing what makes it: --apply, or whom it needs.
func whatToDo(d *document.Document, report setup.Report, applied bool, program string) {
	lacking, fixes := report.Lacking(), report.Fixes()
	t := document.Table{Title: number.Are(len(lacking), "thing") + " missing"}
	if !applied {
		for _, fix := range fixes {
			t.Add("--apply " + fix.Does(report.Names(fix)))
		}
	}
	said := map[string]bool{"": true}
	for _, i := range lacking {
		tried := ""
		if i.Tried != "" {
			tried = "could not be done: " + i.Tried
		}
		for _, line := range []string{tried, i.NextStep} {
			if !said[line] {
				said[line] = true
				t.Add(line)
			}
		}
	}
	if d.Table(t); len(t.Rows) == 0 {
		d.Paragraph("%s", t.Title)
	}
	if commands := report.Commands(); len(commands) > 0 && (applied || len(fixes) == 0) {
		d.Paragraph("By hand:")
		for _, command := range commands {
			d.Command("  " + command)
		}
	} else if len(fixes) > 0 && !applied {
		d.Paragraph(`"%s setup --apply" does it, and "%[1]s setup --print" prints the commands for those who may.`, program)
	}
}

// SetupCommands are the lines that a shell can run; what no command makes is a comment.
func SetupCommands(report setup.Report) (d document.Document) {
	for _, i := range report.Lacking() {
		if len(i.Commands) == 0 {
			d.Command("# " + strings.TrimSpace(string(i.Kind)+" "+i.Name) + ": " + i.Text)
		}
		if i.NextStep != "" {
			d.Command("# " + i.NextStep)
		}
	}
	for _, command := range report.Commands() {
		d.Command(command)
	}
	return d
}
