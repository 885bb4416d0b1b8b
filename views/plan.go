package views

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/who"
)

// Plan is all that is known of a plan. A brief view leaves out what the workflow's history has.
func Plan(p api.Plan, r Reader) document.Document {
	d := document.Document{Title: "Plan " + p.Name}
	if !r.brief {
		d.Fact("Plan", p.Name)
	}
	if s := p.Spec; s != nil {
		d.Fact("Requestor", s.Requestor)
		if p.Starter != nil {
			d.Fact("Started by", who.Started(p.Starter.Identity, p.Starter.Principal))
		}
		d.Fact("Reason", r.said(s.Reason))
		d.Fact("Ticket", r.said(s.Ticket))
		d.Fact("Owner", r.said(s.Owner))
		d.Fact("Strategy", strategyText(s.Strategy))
	}
	if p.Stages != nil {
		stageFacts(&d, *p.Stages, r)
	}
	d.PaintedFact("Phase", PlanStyle(p.Phase), standing(string(p.Phase), p.Since, p.Execution, r))
	if p.Counts != nil {
		d.Fact("Nodes", countsText(p.PlanSummary))
	}
	d.Fact("Pace", Pace(p.Pace, r))
	d.Fact("Pods", p.Moves.String())
	d.Fact("Waiting for", waitText(p.PlanSummary, r, r.in))
	d.Fact("Message", r.said(r.words(p.Message)))
	if !r.brief {
		d.Fact("Next", strings.Join(append(NextOfPlan(p.PlanSummary), nextOfHeld(p)...), " | "))
		d.Fact("Workflow", p.WorkflowID)
		d.Fact("Run", p.RunID)
	}
	warn(&d, r, p.Warnings...)
	d.Table(nodesOfPlan(p, r))
	d.Table(Slowest(p.Slowest, r))
	d.Table(Messages(p.Messages, r))
	if !r.brief {
		d.Table(planEvents(p.Events, r))
	}
	return d
}

// PlanProgress says in one line where a plan is and what it waits for. The text changes only when something has.
func PlanProgress(p api.PlanSummary, r Reader) string {
	text := string(p.Phase)
	if p.Counts != nil {
		text += ": " + countsText(p)
	}
	if news := newsOf(p, r, r.at); news != "" {
		text += "; " + news
	}
	return text
}

// PlanNews is why a plan paused or ended, or what it waits for.
func PlanNews(p api.PlanSummary, r Reader) string { return newsOf(p, r, r.in) }

func newsOf(p api.PlanSummary, r Reader, until func(time.Time) string) string {
	switch {
	case p.Message != "":
		return r.words(p.Message)
	case p.WaitingFor != "":
		return "waits for " + waitText(p, r, until)
	default:
		return ""
	}
}

// waitText is what keeps further nodes from being begun, and until when.
func waitText(p api.PlanSummary, r Reader, until func(time.Time) string) string {
	if p.WaitingFor == plan.PausedWaits && p.Message != "" {
		return "" // the message says so, and by whom
	}
	text := r.said(r.words(p.WaitingFor))
	if text != "" && p.Until != nil {
		text += ", until " + until(*p.Until)
	}
	return text
}

// Pace is how many nodes were done in each of the last hours, and when the plan will probably have ended.
func Pace(p *plan.Pace, r Reader) string {
	if p == nil || p.Nodes == 0 {
		return ""
	}
	var parts []string
	if !p.Expected.IsZero() {
		parts = append(parts, fmt.Sprintf("expected to end at %s, between %s and %s", r.in(p.Expected), r.at(p.Earliest), r.at(p.Latest)))
	}
	switch n := len(p.Hours); n {
	case 0:
		parts = append(parts, fmt.Sprintf("%s since %s", number.Of(p.Nodes, "node"), r.ago(p.Since)))
	case 1:
		parts = append(parts, number.Of(p.Hours[0], "node")+" in the last hour")
	default:
		parts = append(parts, fmt.Sprintf("%s nodes in each of the last %d hours, %d at most", document.Sparks(p.Hours), n, slices.Max(p.Hours)))
	}
	return strings.Join(parts, "; ")
}

// countsText says how many nodes of a plan are done, and what the others are. Those that are held have failed, as lists and summaries count them.
func countsText(p api.PlanSummary) string {
	c, failed := *p.Counts, "failed"
	switch {
	case c.Held > 0 && p.EndedAt != nil:
		failed += fmt.Sprintf(" (%d held when it ended)", c.Held) // a plan that has ended is not told of its nodes
	case c.Held > 0:
		failed += fmt.Sprintf(" (%d still held)", c.Held)
	}
	text := fmt.Sprintf("%d of %d done", c.Done, c.Total)
	for _, part := range []struct {
		n     int
		state string
	}{{c.Running, "running"}, {c.Failures(), failed}, {c.Waiting, "waiting"}, {c.Skipped, "skipped"}, {c.Gone, "gone"}} {
		if part.n > 0 {
			text += fmt.Sprintf(", %d %s", part.n, part.state)
		}
	}
	return text
}

// strategyText is the order and the pace of a plan in words.
func strategyText(s plan.Strategy) string {
	if s.Type == plan.AllAtOnce {
		return "all at once, stage by stage and tier by tier"
	}
	parts := []string{s.MaxParallel.String() + " at a time by " + s.Order}
	if c := s.Canary; c != nil {
		text := "canary of " + number.Of(c.Nodes, "node")
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

// stageFacts are how far a plan is whose nodes go through stages together.
func stageFacts(d *document.Document, s api.PlanStages, r Reader) {
	d.Fact("Stage", string(s.Stage))
	if s.Stage == api.StageDrain {
		tier := fmt.Sprintf("all %d are drained", len(s.Tiers))
		if s.Tier < len(s.Tiers) {
			tier = fmt.Sprintf("%d of %d, %s", s.Tier+1, len(s.Tiers), tierText(s.Tiers[s.Tier]))
		}
		d.Fact("Tier", r.said(tier))
	}
	d.Fact("Drained", fmt.Sprintf("%t (%s)", s.Drained.Status, drainedText(s.Nodes)))
}

// Stage says in one line where a plan is whose nodes go through stages together.
func Stage(s api.PlanStages) string {
	return fmt.Sprintf("stage %s%s: %s", s.Stage, tierOf(s.Stage, s.Tier, len(s.Tiers)), drainedText(s.Nodes))
}

// tierOf is the tier in which a stage is, for a text; empty if the stage has none.
func tierOf(stage api.Stage, tier, of int) string {
	if stage != api.StageDrain {
		return ""
	}
	return fmt.Sprintf(", tier %d of %d", min(tier+1, of), of)
}

func drainedText(n api.DrainCounts) string {
	return fmt.Sprintf("%d held, %d cordoned, %d drained; %s pending, %d leaving", n.Held, n.Cordoned, n.Drained, number.Of(n.Pending, "pod"), n.Evacuating)
}

// tierText is a tier in words.
func tierText(e drainplan.Entry) string {
	text := fmt.Sprintf("%s pods%s", e.PodType, e.UpTo())
	if e.PodSelector != "" {
		text += " that match " + e.PodSelector
	}
	return text
}

func nodesOfPlan(p api.Plan, r Reader) document.Table {
	t := document.Table{Title: r.heading("With something to say"), Header: []string{"node", "state", "since", "tries", "zone", "note"}}
	if p.Stages != nil {
		t.Header = []string{"node", "state", "since", "phase", "pending", "leaving", "message"}
	}
	waits := r.said(r.words(p.WaitingFor))
	shown, more := first(r, p.Nodes)
	for _, n := range shown {
		cells := []string{n.Node, n.State, r.since(n.Since)}
		note := r.said(r.words(n.Note))
		if strings.HasSuffix("; "+waits, "; "+note) {
			note = "" // all that wait say the same, which stands above, and is not cut there
		}
		switch {
		case n.Drain != nil:
			cells = append(cells, string(n.Drain.Phase), strconv.Itoa(n.Drain.Pending), strconv.Itoa(n.Drain.Evacuating))
		case p.Stages != nil:
			cells = append(cells, "", "", "")
		default:
			tries := ""
			if n.Tries > 0 {
				tries = strconv.Itoa(n.Tries)
			}
			cells = append(cells, tries, n.Zone)
		}
		if p.Stages == nil && n.State == plan.Waiting.Word() && !n.NotBefore.IsZero() {
			note = "back at " + r.at(n.NotBefore) + colon(note)
		}
		t.AddPainted(1, StateStyle(n.State), append(cells, note)...)
	}
	t.More = moreNodes(more+p.MoreNodes, r)
	return t
}

// moreNodes counts the nodes that a table leaves out, with the flag of the commands that shows them.
func moreNodes(n int, r Reader) string {
	text := document.AndMore(n)
	if text != "" && !r.brief {
		text += " (--all shows all nodes)"
	}
	return text
}

// SlowNode is a node of a plan by what its maintenance says of itself.
func SlowNode(m api.Maintenance) api.SlowNode {
	s := api.SlowNode{Node: m.Node, Phase: m.Phase, Progress: Progress(m)}
	if m.IsAnswered() {
		s.Since, s.WaitingFor = m.Since, m.Status.WaitingFor
	}
	if d := m.Drain; d != nil {
		s.Blockers, s.MoreBlockers = d.Blockers, d.MoreBlockers
	}
	return s
}

// slowBlockers are those of a node that are shown under it.
const slowBlockers = 3

// Slowest are the nodes of a plan that have been out of service for the longest, with what is in their way.
func Slowest(all []api.SlowNode, r Reader) document.Table {
	t := document.Table{Title: "Slowest"}
	for _, s := range all {
		since, text := "", s.Progress
		if s.Since != nil {
			since = r.age(*s.Since)
		}
		if len(s.Blockers) > 0 {
			text, _, _ = strings.Cut(text, "; ") // the pods stand below
		}
		t.AddPainted(2, PhaseStyle(s.Phase), s.Node, since, r.words(text))
		shown := min(slowBlockers, len(s.Blockers))
		for _, b := range s.Blockers[:shown] {
			t.Add("", r.age(b.Since), b.Pod+colon(r.words(cmp.Or(b.Message, b.Reason))))
		}
		if len(s.Blockers) > shown {
			t.Add("", "", document.AndMore(len(s.Blockers)-shown+s.MoreBlockers))
		}
	}
	return t
}

func planEvents(all []api.PlanEvent, r Reader) document.Table {
	t := document.Table{Title: "Events", Header: []string{"at", "state", "message"}}
	for _, e := range all {
		t.Add(r.at(e.At), string(e.State), r.words(e.Message))
	}
	return t
}
