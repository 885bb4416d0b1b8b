package views

import (
	"fmt"
	"strconv"
	"strings"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/preflight"
)

// Preflights are what drains of nodes would meet.
func Preflights(reports []preflight.Report, r Reader) (d document.Document) {
	for _, report := range reports {
		d.Parts = append(d.Parts, Preflight(report, r).Parts...)
	}
	return d
}

// Preflight is what a drain of a node would meet. A brief view has the pods and budgets only as far as they are problems.
func Preflight(report preflight.Report, r Reader) document.Document {
	d := document.Document{Title: "Preflight of " + report.Node}
	if n := report.ProblemCount(); n > 0 {
		d.Paragraph("%s: %s would stop a drain", report.Node, number.Of(n, "problem"))
	} else {
		d.Paragraph("%s: nothing would stop a drain", report.Node)
	}
	if would := report.Escalates(); would != "" {
		d.Line("When the node does not empty: %s", would)
	}
	d.Line("Pods: %s", actionsText(report.Counts))
	if report.Room != nil {
		d.Line("Room: %s to place on %s", number.Of(report.Room.Pods, "pod"), number.Of(report.Room.Nodes, "other node"))
	}
	d.Table(preflightFindings("Problems", document.Bad, report.Problems, report.MoreProblems, r))
	d.Table(preflightFindings("Warnings", document.Active, report.Warnings, report.MoreWarnings, r))
	if !r.brief {
		d.Table(preflightPods(report))
		d.Table(preflightBudgets(report))
	}
	return d
}

func preflightFindings(title string, style document.Style, all []preflight.Finding, more int, r Reader) document.Table {
	t := document.Table{Title: title}
	shown, left := first(r, all)
	for _, f := range shown {
		t.AddPainted(0, style, string(f.Code), f.String())
	}
	t.More = document.AndMore(left + more)
	return t
}

func actionsText(counts map[preflight.Action]int) string {
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

func preflightPods(report preflight.Report) document.Table {
	t := document.Table{Header: []string{"tier", "pod", "action", "reason", "budget", "message"}, More: document.AndMore(report.MorePods)}
	for _, p := range report.Pods {
		tier := ""
		if p.Tier > 0 {
			tier = strconv.Itoa(p.Tier)
		}
		style := document.Plain
		if p.Action == preflight.Refuse {
			style = document.Bad
		}
		t.AddPainted(2, style, tier, p.Pod, string(p.Action), p.Reason, strings.Join(p.Budgets, ", "), p.Message)
	}
	return t
}

func preflightBudgets(report preflight.Report) document.Table {
	t := document.Table{
		Header: []string{"budget", "allowed", "healthy", "desired", "pods", "on node", "note"}, More: document.AndMore(report.MoreBudgets),
	}
	for _, b := range report.Budgets {
		note := ""
		if b.Impossible {
			note = "impossible"
		}
		t.Add(b.Budget, fmt.Sprint(b.Allowed), fmt.Sprint(b.Healthy), fmt.Sprint(b.Desired), fmt.Sprint(b.Pods), strconv.Itoa(b.OnNode), note)
	}
	return t
}
