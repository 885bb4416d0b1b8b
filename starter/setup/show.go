package setup

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/setup"
	"drydock.dev/drydock/starter/terminal"
)

// words are the states as people read them.
var words = map[setup.State]string{
	setup.Present: "ok", setup.Made: "done", setup.Missing: "MISSING", setup.Unknown: "UNKNOWN", setup.Optional: "-",
}

// show draws a report for people.
func show(w io.Writer, r setup.Report, applied bool, program string) {
	terminal.Print(w, "Temporal %s, namespace %s\n", r.Address, r.Namespace)
	if r.Server != "" {
		terminal.Print(w, "Kubernetes %s, account %s\n", strings.TrimSpace(r.Context+" "+r.Server), cmp.Or(r.Account, "not known"))
	}
	rows := terminal.NewRows(w)
	var unneeded []string
	for _, i := range r.Items {
		if i.State == setup.Optional && i.Kind == setup.Permissions {
			unneeded = append(unneeded, i.Name)
			continue
		}
		rows.Add("  "+words[i.State], strings.TrimSpace(string(i.Kind)+" "+i.Name), i.Text)
	}
	if len(unneeded) > 0 {
		rows.Add("  "+words[setup.Optional], string(setup.Permissions), "not granted, and nothing that is configured needs them: "+strings.Join(unneeded, ", "))
	}
	rows.Done()
	if r.Open {
		terminal.Print(w, "WARNING: Temporal at %s asks for no credentials: anyone who reaches it can evict pods with the worker's rights.\n"+
			"  Put an authorizer and TLS before it, or let nobody else reach it (docs/concepts/trust.md).\n", r.Address)
	}
	lacking := r.Lacking()
	switch {
	case len(lacking) == 0 && applied && made(r) == 0:
		terminal.Print(w, "Everything was there; nothing was changed.\n")
	case len(lacking) == 0:
		terminal.Print(w, "Everything is there.\n")
	default:
		terminal.Print(w, "\n%s missing:\n", are(len(lacking)))
		whatToDo(w, r, applied, program)
	}
}

func made(r setup.Report) int {
	n := 0
	for _, i := range r.Items {
		if i.State == setup.Made {
			n++
		}
	}
	return n
}

func are(n int) string { return number.Are(n, "thing") }

// whatToDo says of all that is missing what makes it: --apply, or whom it needs.
func whatToDo(w io.Writer, r setup.Report, applied bool, program string) {
	if !applied {
		for _, fix := range r.Fixes() {
			terminal.Print(w, "  --apply %s\n", fix.Does(r.Names(fix)))
		}
	}
	said := map[string]bool{}
	say := func(line string) {
		if line != "" && !said[line] {
			said[line] = true
			terminal.Print(w, "  %s\n", line)
		}
	}
	for _, i := range r.Lacking() {
		if i.Tried != "" {
			say("could not be done: " + i.Tried)
		}
		say(i.NextStep)
	}
	if commands := r.Commands(); len(commands) > 0 && (applied || len(r.Fixes()) == 0) {
		terminal.Print(w, "By hand:\n")
		for _, command := range commands {
			fmt.Fprintf(w, "  %s\n", command)
		}
		return
	}
	if len(r.Fixes()) > 0 && !applied {
		terminal.Print(w, `"%s setup --apply" does it, and "%s setup --print" prints the commands for those who may.`+"\n", program, program)
	}
}

// printCommands writes what a shell can run; what no command makes is a comment, of one line whatever a server calls its things.
func printCommands(w io.Writer, r setup.Report) {
	comment := func(text string) { fmt.Fprintln(w, "# "+terminal.OneLine(text)) }
	for _, i := range r.Lacking() {
		if len(i.Commands) == 0 {
			comment(strings.TrimSpace(string(i.Kind)+" "+i.Name) + ": " + i.Text)
		}
		if i.NextStep != "" {
			comment(i.NextStep)
		}
	}
	for _, command := range r.Commands() {
		fmt.Fprintln(w, command)
	}
}
