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
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/period"
)

// HealthChecks has a line for each check; wide has more of each.
func HealthChecks(all api.HealthChecks, wide bool, r Reader) document.Document {
	t := document.Table{Header: []string{"check", "phase", "healthy", "soon", "unhealthy", "remediating", "from"}, OneLine: true}
	if wide {
		t.Header = append(t.Header, "created", "workflow")
	}
	t.Header = append(t.Header, "reason")
	for _, c := range all {
		phase := cmp.Or(string(c.Phase), "?")
		if c.EndedAt != nil {
			phase = "ended"
		}
		cells := []string{c.Name, phase, "", "", "", "", c.Source}
		if n := c.Counts; n != nil {
			cells[2], cells[3] = fmt.Sprintf("%d/%d", n.Healthy, n.Observed), strconv.Itoa(n.Soon)
			cells[4], cells[5] = strconv.Itoa(n.Unhealthy), strconv.Itoa(n.Remediating)
		}
		if wide {
			cells = append(cells, r.at(c.CreatedAt), c.WorkflowID)
		}
		reason := cmp.Or(c.Message, c.Blocked, c.Reason)
		if c.WaitingFor != "" && c.Message == "" {
			reason = "waits for " + c.WaitingFor
		}
		t.AddPainted(1, HealthStyle(c.Phase), append(cells, r.words(reason))...)
	}
	return listed(t)
}

// HealthCheck is all that is known of a health check. A brief view leaves out what the workflow's history has.
func HealthCheck(c api.HealthCheck, r Reader) document.Document {
	d := document.Document{Title: "Health check " + c.Name}
	if !r.brief {
		d.Fact("Health check", c.Name)
		by := "by hand"
		if c.Configured {
			by = "by a worker, as its configuration has it"
		}
		d.Fact("Started", r.ago(c.CreatedAt)+", "+by)
	}
	healthFacts(&d, c, r)
	if !r.brief {
		if c.Spec != nil {
			specFacts(&d, *c.Spec)
		}
		d.Fact("Workflow", c.WorkflowID)
		d.Fact("Run", c.RunID)
	}
	Troubles(&d, c.Troubles, r)
	d.Table(healthGroups(c.Groups, r))
	d.Table(unhealthyNodes(c, r))
	d.Table(Messages(c.Messages, r))
	if !r.brief {
		d.Table(healthEvents(c.Events, r))
	}
	return d
}

func healthFacts(d *document.Document, c api.HealthCheck, r Reader) {
	switch {
	case c.EndedAt != nil:
		d.Fact("Phase", "ended")
	case c.Phase == "":
		d.Fact("Phase", "unknown")
	default:
		d.PaintedFact("Phase", HealthStyle(c.Phase), string(c.Phase)+colon(r.words(c.Reason)))
	}
	if n := c.Counts; n != nil {
		text := fmt.Sprintf("%d of %d healthy", n.Healthy, n.Observed)
		for _, part := range []struct {
			n    int
			text string
		}{{n.Soon, "soon unhealthy"}, {n.Unhealthy, "unhealthy"}, {n.Remediating, "under remediation"}} {
			if part.n > 0 {
				text += fmt.Sprintf(", %d %s", part.n, part.text)
			}
		}
		d.Fact("Nodes", text+fmt.Sprintf("; remediations begin while %d are healthy", n.MinHealthy))
	}
	d.Fact("Blocked", r.words(c.Blocked))
	pauses, _ := first(r, c.Pauses)
	for _, p := range pauses {
		by := "by " + cmp.Or(p.By, "its configuration")
		if !p.At.IsZero() {
			by += " (" + r.ago(p.At) + ")"
		}
		d.Fact("Paused", by+colon(r.said(p.Why)))
	}
	d.Fact("Upgrading", r.words(c.Upgrading))
	d.Fact("Overlap", r.words(c.Overlap))
	if s := c.Storm; s != nil {
		text := ", until enough nodes are healthy"
		if s.Over != nil {
			text = ", cools down until " + r.in(*s.Over)
		}
		d.Fact("Storm", "since "+r.ago(s.Since)+text)
	}
	d.Fact("Waiting for", r.words(c.WaitingFor))
	if len(c.Troubles) == 0 { // else it is the first of them
		d.Fact("Message", r.words(c.Message))
	}
}

// specFacts are what a check looks for and what it does.
func specFacts(d *document.Document, s health.Spec) {
	d.Fact("Selector", s.SelectorText())
	conditions := make([]string, len(s.UnhealthyConditions))
	for i, c := range s.UnhealthyConditions {
		what, how := c.Words()
		conditions[i] = fmt.Sprintf("%s %s for %s", what, how, period.Text(c.Duration.Std()))
	}
	d.Fact("Ill", strings.Join(conditions, ", or "))
	d.Fact("Remediation", remedyText(s.RemediationTemplate, s.Maintenance))
	for i, step := range s.EscalatingRemediations {
		d.Fact(fmt.Sprintf("Step %d", i+1), fmt.Sprintf("%s, for %s", remedyText(step.RemediationTemplate, step.Maintenance), period.Text(step.Timeout.Std())))
	}
}

// remedyText is what remediates a node; empty for neither.
func remedyText(t *health.TemplateRef, m *health.Repair) string {
	switch {
	case t != nil:
		return objectText(t.Kind, t.Namespace, t.Name)
	case m == nil:
		return ""
	case m.OutOfService:
		return "a maintenance, then out of service"
	default:
		return "a maintenance"
	}
}

func objectText(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + " " + name
}

func healthGroups(all []health.GroupStatus, r Reader) document.Table {
	t := document.Table{Title: r.heading("Groups"), Header: []string{"group", "healthy", "min healthy", ""}}
	shown, more := first(r, all)
	for _, g := range shown {
		blocked := ""
		if g.Blocked {
			blocked = "blocked"
		}
		t.Add(g.Group, fmt.Sprintf("%d/%d", g.Healthy, g.Nodes), strconv.Itoa(g.MinHealthy), blocked)
	}
	t.More = document.AndMore(more)
	return t
}

func unhealthyNodes(c api.HealthCheck, r Reader) document.Table {
	t := document.Table{Title: r.heading("Unhealthy"), Header: []string{"node", "ill", "since", "step", "remediation", "note"}}
	shown, more := first(r, c.UnhealthyNodes)
	for _, n := range shown {
		since, step := "", ""
		if n.Since != nil {
			since = r.age(*n.Since)
		}
		if n.Step > 0 {
			step = fmt.Sprintf("%d/%d", n.Step, n.Steps)
		}
		t.Add(n.Name, r.words(n.Ill), since, step, remediationText(n), unhealthyNote(n, r))
	}
	t.More = moreNodes(more+c.MoreNodes, r)
	return t
}

// remediationText is what is at work on a node: the latest of its remediations.
func remediationText(n health.UnhealthyNode) string {
	if len(n.Remediations) == 0 {
		return ""
	}
	last := n.Remediations[len(n.Remediations)-1]
	if o := last.Resource; o != nil {
		return objectText(o.Kind, o.Namespace, o.Name)
	}
	return last.WorkflowID
}

func unhealthyNote(n health.UnhealthyNode, r Reader) string {
	var parts []string
	if n.ConditionsHealthyTimestamp != nil {
		parts = append(parts, "recovered "+r.at(*n.ConditionsHealthyTimestamp))
	}
	if n.Blocked != "" {
		parts = append(parts, "blocked: "+r.words(n.Blocked))
	}
	if n.Next != "" {
		parts = append(parts, "next: "+nextText(n.Next, n.NextAt, r))
	}
	return strings.Join(parts, "; ")
}

// nextText is what comes next, and when.
func nextText(text string, at *time.Time, r Reader) string {
	if text = r.words(text); at != nil {
		text = "at " + r.in(*at) + " " + text
	}
	return text
}

func healthEvents(all []api.HealthEvent, r Reader) document.Table {
	t := document.Table{Title: "Events", Header: []string{"at", "reason", "node", "message"}}
	for _, e := range all {
		style := document.Plain
		if e.Warning {
			style = document.Bad
		}
		t.AddPainted(1, style, r.at(e.At), e.Reason, e.Node, r.words(e.Text))
	}
	return t
}

// CheckExplanation is what a health check says of a node.
func CheckExplanation(e api.CheckExplanation, r Reader) (d document.Document) {
	d.Fact("Node", e.Node)
	d.PaintedFact("Check", HealthStyle(e.Phase), e.Check+" ("+string(e.Phase)+")")
	d.Fact("State", e.State+colon(r.words(e.Summary)))
	for _, c := range e.Conditions {
		ill := "at " + r.in(c.IllAt)
		if c.Over {
			ill = "since " + r.at(c.IllAt)
		}
		d.Fact("Condition", fmt.Sprintf("%s is %s since %s; ill after %s, %s", c.Type, c.Status, r.ago(c.Since), c.Duration, ill))
	}
	if !slices.Contains(e.Blocks, e.Blocked) {
		d.Fact("Blocked", r.words(e.Blocked))
	}
	for _, block := range e.Blocks {
		d.Fact("Blocked", r.words(block))
	}
	if e.Next != "" {
		d.Fact("Next", nextText(e.Next, e.At, r))
	}
	t := document.Table{Header: []string{"step", "what", "timeout", "state"}}
	for _, s := range e.Steps {
		t.Add(strconv.Itoa(s.Step), s.What, s.Timeout, r.words(s.State))
	}
	d.Table(t)
	return d
}
