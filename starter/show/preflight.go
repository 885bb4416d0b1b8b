package show

import (
	"fmt"
	"io"
	"strings"

	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/terminal"
)

// Preflights shows what drains of nodes would meet.
func Preflights(w io.Writer, reports []preflight.Report) {
	for i, r := range reports {
		if i > 0 {
			fmt.Fprintln(w)
		}
		renderPreflight(w, r)
	}
}

func renderPreflight(w io.Writer, r preflight.Report) {
	switch n := r.ProblemCount(); n {
	case 0:
		terminal.Print(w, "%s: nothing would stop a drain\n", r.Node)
	default:
		terminal.Print(w, "%s: %s would stop a drain\n", r.Node, terminal.Plural(n, "problem"))
	}
	if would := r.Escalates(); would != "" {
		terminal.Print(w, "When the node does not empty: %s\n", would)
	}
	renderFindings(w, "Problems", r.Problems, r.MoreProblems)
	renderFindings(w, "Warnings", r.Warnings, r.MoreWarnings)
	terminal.Print(w, "Pods: %s\n", countsText(r.Counts))
	renderPods(w, r)
	renderBudgets(w, r)
	if r.Room != nil {
		terminal.Print(w, "Room: %s to place on %s\n", terminal.Plural(r.Room.Pods, "pod"), terminal.Plural(r.Room.Nodes, "other node"))
	}
}

func renderFindings(w io.Writer, title string, findings []preflight.Finding, more int) {
	if len(findings) == 0 {
		return
	}
	terminal.Print(w, "%s:\n", title)
	for _, f := range findings {
		terminal.Print(w, "  %s\n", terminal.OneLine(f.String()))
	}
	if more > 0 {
		terminal.Print(w, "  and %d more\n", more)
	}
}

func countsText(counts map[preflight.Action]int) string {
	var texts []string
	for _, action := range []preflight.Action{preflight.Evict, preflight.Delete, preflight.Wait, preflight.Refuse, preflight.Skip} {
		if n := counts[action]; n > 0 {
			texts = append(texts, fmt.Sprintf("%s %d", action, n))
		}
	}
	if len(texts) == 0 {
		return "none"
	}
	return strings.Join(texts, ", ")
}

func renderPods(w io.Writer, r preflight.Report) {
	if len(r.Pods) == 0 {
		return
	}
	table := terminal.NewRows(w, "TIER", "POD", "ACTION", "REASON", "BUDGET", "MESSAGE")
	for _, p := range r.Pods {
		tier := ""
		if p.Tier > 0 {
			tier = fmt.Sprint(p.Tier)
		}
		table.Add(tier, p.Pod, string(p.Action), p.Reason, strings.Join(p.Budgets, ", "), p.Message)
	}
	table.Done()
	if r.MorePods > 0 {
		terminal.Print(w, "and %s\n", terminal.More(r.MorePods, "pod"))
	}
}

func renderBudgets(w io.Writer, r preflight.Report) {
	if len(r.Budgets) == 0 {
		return
	}
	table := terminal.NewRows(w, "BUDGET", "ALLOWED", "HEALTHY", "DESIRED", "PODS", "ON NODE", "NOTE")
	for _, b := range r.Budgets {
		note := ""
		if b.Impossible {
			note = "impossible"
		}
		table.Add(b.Budget, fmt.Sprint(b.Allowed), fmt.Sprint(b.Healthy), fmt.Sprint(b.Desired), fmt.Sprint(b.Pods), fmt.Sprint(b.OnNode), note)
	}
	table.Done()
	if r.MoreBudgets > 0 {
		terminal.Print(w, "and %s\n", terminal.More(r.MoreBudgets, "budget"))
	}
}
