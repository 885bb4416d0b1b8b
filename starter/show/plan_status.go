package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/who"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// PlanStatus shows all that is known of a plan.
func PlanStatus(w io.Writer, p Plan, now time.Time) {
	head := terminal.NewRows(w)
	head.Add("Plan:", p.Name)
	renderPlanWhy(head, p)
	renderPlanWhere(head, p, now)
	head.Add("Workflow:", p.WorkflowID)
	head.Add("Run:", p.RunID)
	head.Done()
	for _, warning := range p.Warnings {
		terminal.Print(w, "Warning: %s\n", terminal.OneLine(warning))
	}
	renderPlanNodes(w, p, now)
	renderSlowest(w, p.Slowest, now)
	Messages(w, p.Messages, now)
	renderPlanEvents(w, p.Events, now)
}

// Messages shows below something else what arrived, and what became of it; nothing where there was none.
func Messages(w io.Writer, all []api.Received, now time.Time) {
	if len(all) > 0 {
		terminal.Print(w, "\n")
		terminal.Show(w, document.Document{Parts: []document.Part{views.Messages(all, views.At(now))}})
	}
}

func renderPlanWhy(head terminal.Rows, p Plan) {
	s := p.Spec
	if s == nil {
		return
	}
	head.Add("Requestor:", s.Requestor)
	if p.Starter != nil {
		head.Add("Started by:", terminal.OneLine(who.Started(p.Starter.Identity, p.Starter.Principal)))
	}
	for _, field := range []struct{ name, value string }{{"Reason:", s.Reason}, {"Ticket:", s.Ticket}, {"Owner:", s.Owner}} {
		if field.value != "" {
			head.Add(field.name, field.value)
		}
	}
	head.Add("Strategy:", StrategyText(s.Strategy))
	if p.Stages != nil {
		renderStages(head, *p.Stages)
	}
}

func renderPlanWhere(head terminal.Rows, p Plan, now time.Time) {
	switch {
	case p.EndedAt != nil:
		head.AddPainted(1, views.PlanStyle(p.Phase), "Phase:", fmt.Sprintf("%s (ended %s, %s ago, after %s)", p.Phase,
			terminal.Clock(*p.EndedAt, now), period.Age(now.Sub(*p.EndedAt)), period.Age(p.EndedAt.Sub(p.CreatedAt))))
	case p.Phase == "" || p.Since == nil:
		head.Add("Phase:", fmt.Sprintf("unknown (started %s, %s ago)", terminal.Clock(p.CreatedAt, now), period.Age(now.Sub(p.CreatedAt))))
	default:
		head.AddPainted(1, views.PlanStyle(p.Phase), "Phase:", fmt.Sprintf("%s (since %s, %s ago)", p.Phase, terminal.Clock(*p.Since, now), period.Age(now.Sub(*p.Since))))
	}
	if p.Counts != nil {
		head.Add("Nodes:", CountsText(*p.Counts))
	}
	if p.WaitingFor != "" {
		head.Add("Waiting for:", waitText(p.PlanSummary, now))
	}
	if p.Message != "" {
		head.Add("Message:", terminal.Words(p.Message, now))
	}
}

// waitText is what keeps further nodes from being begun, and until when.
func waitText(p PlanSummary, now time.Time) string {
	text := terminal.Words(p.WaitingFor, now)
	if p.Until != nil {
		text += fmt.Sprintf(", until %s (%s)", terminal.Clock(*p.Until, now), period.Age(p.Until.Sub(now)))
	}
	return text
}

// CountsText says how many nodes are done, and what the others are.
func CountsText(c plan.Counts) string {
	text := fmt.Sprintf("%d of %d done", c.Done, c.Total)
	for _, part := range []struct {
		n     int
		state string
	}{{c.Running, "running"}, {c.Held, "held"}, {c.Failed, "failed"}, {c.Waiting, "waiting"}, {c.Skipped, "skipped"}, {c.Gone, "gone"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.state)
		}
	}
	return text
}

// StrategyText is the order and the pace of a plan in words.
func StrategyText(s plan.Strategy) string {
	if s.Type == plan.AllAtOnce {
		return "all at once, stage by stage and tier by tier"
	}
	parts := []string{s.MaxParallel.String() + " at a time by " + s.Order}
	if c := s.Canary; c != nil {
		text := "canary of " + terminal.Plural(c.Nodes, "node")
		if c.Soak > 0 {
			text += ", soak " + period.Age(c.Soak.Std())
		}
		if c.Approval {
			text += ", then approval"
		}
		parts = append(parts, text)
	}
	if s.PauseBetween > 0 {
		parts = append(parts, period.Age(s.PauseBetween.Std())+" between nodes")
	}
	if s.BeginWithin > 0 {
		parts = append(parts, "begins nodes for "+period.Age(s.BeginWithin.Std()))
	}
	parts = append(parts, "pauses after more than "+s.MaxFailures.String()+" failed")
	if s.OnBlocked != plan.WaitBlocked {
		text := fmt.Sprintf("blocked after %s: %s", period.Age(s.BlockedAfter.Std()), s.OnBlocked)
		if s.OnBlocked == plan.SkipBlocked {
			text += fmt.Sprintf(", back after %s, %s", period.Age(s.ComeBackAfter.Std()), number.Form(s.Tries, "try", "tries"))
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func renderPlanNodes(w io.Writer, p Plan, now time.Time) {
	if len(p.Nodes) == 0 {
		return
	}
	fmt.Fprintln(w)
	if p.Stages != nil {
		renderStagedNodes(w, p, now)
		return
	}
	r := terminal.NewRows(w, "NODE", "STATE", "FOR", "TRIES", "ZONE", "NOTE")
	for _, n := range p.Nodes {
		age, tries := "", ""
		if !n.Since.IsZero() {
			age = period.Age(now.Sub(n.Since))
		}
		if n.Tries > 0 {
			tries = fmt.Sprint(n.Tries)
		}
		r.AddPainted(1, views.StateStyle(n.State), n.Node, n.State, age, tries, n.Zone, noteText(n, now))
	}
	r.Done()
	renderMoreNodes(w, p)
}

func renderMoreNodes(w io.Writer, p Plan) {
	if p.MoreNodes > 0 {
		terminal.Print(w, "and %d more (--all shows all nodes)\n", p.MoreNodes)
	}
}

func noteText(n api.PlanNode, now time.Time) string {
	text := terminal.Words(n.Note, now)
	if n.State == plan.Waiting.Word() && !n.NotBefore.IsZero() {
		back := "back at " + terminal.Clock(n.NotBefore, now)
		if text == "" {
			return back
		}
		return back + terminal.Colon(text)
	}
	return text
}

func renderSlowest(w io.Writer, slowest []SlowNode, now time.Time) {
	if len(slowest) == 0 {
		return
	}
	terminal.Print(w, "\nSlowest:\n")
	r := terminal.NewRows(w)
	for _, s := range slowest {
		addSlow(r, s, now)
	}
	r.Done()
}

// shownBlockers are those of a node that are shown under it.
const shownBlockers = 3

func addSlow(r terminal.Rows, s SlowNode, now time.Time) {
	age := ""
	if s.Since != nil {
		age = period.Age(now.Sub(*s.Since))
	}
	r.AddPainted(2, views.PhaseStyle(s.Phase), "  "+s.Node, age, slowText(s, now))
	for i, b := range s.Blockers {
		if i == shownBlockers {
			r.Add("", "", fmt.Sprintf("and %d more", len(s.Blockers)-i+s.MoreBlockers))
			break
		}
		why := b.Message
		if why == "" {
			why = b.Reason
		}
		r.Add("", period.Age(now.Sub(b.Since)), b.Pod+terminal.Colon(terminal.Words(why, now)))
	}
}

// slowText is where a node is, without the pods that stand under it.
func slowText(s SlowNode, now time.Time) string {
	text := s.progress
	if len(s.Blockers) > 0 {
		text, _, _ = strings.Cut(text, "; ")
	}
	return terminal.Words(text, now)
}

func renderPlanEvents(w io.Writer, events []api.PlanEvent, now time.Time) {
	if len(events) == 0 {
		return
	}
	terminal.Print(w, "\nEvents:\n")
	r := terminal.NewRows(w, "  AT", "STATE", "MESSAGE")
	for _, e := range events {
		r.Add("  "+terminal.Clock(e.At, now), string(e.State), terminal.Words(e.Message, now))
	}
	r.Done()
}

// Notable leaves out nodes that are over, and those that only wait for their turn.
func Notable(nodes []api.PlanNode) []api.PlanNode {
	notable := []api.PlanNode{}
	for _, n := range nodes {
		switch n.State {
		case plan.Done.Word(), plan.Gone.Word():
		case plan.Waiting.Word():
			if !n.NotBefore.IsZero() {
				notable = append(notable, n)
			}
		default:
			notable = append(notable, n)
		}
	}
	return notable
}
