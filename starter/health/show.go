package health

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/show"
	"drydock.dev/drydock/starter/terminal"
)

// phaseStyle colours what is good, what somebody has to look at, and what is under way.
func phaseStyle(phase health.Phase) document.Style {
	switch phase {
	case health.PhaseEnabled:
		return document.Good
	case health.PhaseDisabled:
		return document.Bad
	case health.PhaseRemediating:
		return document.Active
	case health.PhasePaused:
		return document.Faint
	default:
		return document.Plain
	}
}

// list shows a line for each check; wide shows more of each.
func list(w io.Writer, checks Checks, wide bool, now time.Time) {
	header := []string{"CHECK", "PHASE", "HEALTHY", "SOON", "UNHEALTHY", "REMEDIATING", "FROM"}
	if wide {
		header = append(header, "CREATED", "WORKFLOW")
	}
	r := terminal.OneLineEach(w, append(header, "REASON")...)
	for _, c := range checks {
		phase := string(c.Phase)
		switch {
		case c.EndedAt != nil:
			phase = "ended"
		case phase == "":
			phase = "?"
		}
		cells := []string{c.Name, phase, "", "", "", "", c.Source}
		if n := c.Counts; n != nil {
			cells[2], cells[3] = fmt.Sprintf("%d/%d", n.Healthy, n.Observed), fmt.Sprint(n.Soon)
			cells[4], cells[5] = fmt.Sprint(n.Unhealthy), fmt.Sprint(n.Remediating)
		}
		if wide {
			cells = append(cells, terminal.Clock(c.CreatedAt, now), c.WorkflowID)
		}
		reason := cmp.Or(c.Message, c.Blocked, c.Reason)
		if c.WaitingFor != "" && c.Message == "" {
			reason = "waits for " + c.WaitingFor
		}
		r.AddPainted(1, phaseStyle(c.Phase), append(cells, terminal.Words(reason, now))...)
	}
	r.Done()
}

// status shows all that is known of a check.
func status(w io.Writer, c Check, now time.Time) {
	head := terminal.NewRows(w)
	head.Add("Health check:", c.Name)
	head.Add("Started:", fmt.Sprintf("%s, %s ago, %s", terminal.Clock(c.CreatedAt, now), period.Age(now.Sub(c.CreatedAt)), startedBy(c.Summary)))
	where(head, c, now)
	if c.Spec != nil {
		what(head, *c.Spec)
	}
	head.Add("Workflow:", c.WorkflowID)
	head.Add("Run:", c.RunID)
	head.Done()
	groups(w, c.Groups)
	nodes(w, c, now)
	show.Messages(w, c.Messages, now)
	events(w, c.Events, now)
}

func where(head terminal.Rows, c Check, now time.Time) {
	switch {
	case c.EndedAt != nil:
		head.Add("Phase:", "ended")
	case c.Phase == "":
		head.Add("Phase:", "unknown")
	default:
		head.AddPainted(1, phaseStyle(c.Phase), "Phase:", string(c.Phase)+terminal.Colon(terminal.Words(c.Reason, now)))
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
		head.Add("Nodes:", text+fmt.Sprintf("; remediations begin while %d are healthy", n.MinHealthy))
	}
	if c.Blocked != "" {
		head.Add("Blocked:", terminal.Words(c.Blocked, now))
	}
	for _, p := range c.Pauses {
		head.Add("Paused:", pauseText(p, now))
	}
	if c.Upgrading != "" {
		head.Add("Upgrading:", terminal.Words(c.Upgrading, now))
	}
	if c.Overlap != "" {
		head.Add("Overlap:", terminal.Words(c.Overlap, now))
	}
	if s := c.Storm; s != nil {
		head.Add("Storm:", stormText(*s, now))
	}
	if c.WaitingFor != "" {
		head.Add("Waiting for:", terminal.Words(c.WaitingFor, now))
	}
	if c.Message != "" {
		head.Add("Message:", terminal.Words(c.Message, now))
	}
}

// pauseText says who has paused a check and why.
func pauseText(p health.PauseStatus, now time.Time) string {
	by := "by its configuration"
	if p.By != "" {
		by = "by " + p.By
	}
	if !p.At.IsZero() {
		by += fmt.Sprintf(" (%s, %s ago)", terminal.Clock(p.At, now), period.Age(now.Sub(p.At)))
	}
	return by + terminal.Colon(terminal.OneLine(p.Why))
}

func stormText(s health.StormStatus, now time.Time) string {
	text := fmt.Sprintf("since %s (%s)", terminal.Clock(s.Since, now), period.Age(now.Sub(s.Since)))
	if s.Over != nil {
		return text + fmt.Sprintf(", cools down until %s (%s)", terminal.Clock(*s.Over, now), period.Age(s.Over.Sub(now)))
	}
	return text + ", until enough nodes are healthy"
}

func groups(w io.Writer, all []health.GroupStatus) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w)
	r := terminal.NewRows(w, "GROUP", "HEALTHY", "MIN HEALTHY", "")
	for _, g := range all {
		blocked := ""
		if g.Blocked {
			blocked = "blocked"
		}
		r.Add(g.Group, fmt.Sprintf("%d/%d", g.Healthy, g.Nodes), fmt.Sprint(g.MinHealthy), blocked)
	}
	r.Done()
}

func nodes(w io.Writer, c Check, now time.Time) {
	if len(c.UnhealthyNodes) == 0 {
		return
	}
	fmt.Fprintln(w)
	r := terminal.NewRows(w, "NODE", "ILL", "FOR", "STEP", "REMEDIATION", "NOTE")
	for _, n := range c.UnhealthyNodes {
		age, step := "", ""
		if n.Since != nil {
			age = period.Age(now.Sub(*n.Since))
		}
		if n.Step > 0 {
			step = fmt.Sprintf("%d/%d", n.Step, n.Steps)
		}
		r.Add(n.Name, terminal.Words(n.Ill, now), age, step, remediationText(n), noteText(n, now))
	}
	r.Done()
	if c.MoreNodes > 0 {
		terminal.Print(w, "and %d more (--all shows all nodes)\n", c.MoreNodes)
	}
}

// remediationText is what is at work on a node: the latest of its remediations.
func remediationText(n health.UnhealthyNode) string {
	if len(n.Remediations) == 0 {
		return ""
	}
	last := n.Remediations[len(n.Remediations)-1]
	switch {
	case last.Resource != nil && last.Resource.Namespace != "":
		return fmt.Sprintf("%s %s/%s", last.Resource.Kind, last.Resource.Namespace, last.Resource.Name)
	case last.Resource != nil:
		return last.Resource.Kind + " " + last.Resource.Name
	default:
		return last.WorkflowID
	}
}

func noteText(n health.UnhealthyNode, now time.Time) string {
	var parts []string
	if n.ConditionsHealthyTimestamp != nil {
		parts = append(parts, "recovered "+terminal.Clock(*n.ConditionsHealthyTimestamp, now))
	}
	if n.Blocked != "" {
		parts = append(parts, "blocked: "+terminal.Words(n.Blocked, now))
	}
	if n.Next != "" {
		parts = append(parts, "next: "+nextText(n.Next, n.NextAt, now))
	}
	return strings.Join(parts, "; ")
}

// nextText is what comes next, and when.
func nextText(text string, at *time.Time, now time.Time) string {
	text = terminal.Words(text, now)
	if at != nil {
		text = fmt.Sprintf("at %s (in %s) %s", terminal.Clock(*at, now), period.Age(at.Sub(now)), text)
	}
	return text
}

// startedBy says who started a check.
func startedBy(s Summary) string {
	if s.Configured {
		return "by a worker, as its configuration has it"
	}
	return "by hand"
}

// what says what the check looks for and what it does.
func what(head terminal.Rows, s health.Spec) {
	head.Add("Selector:", metav1.FormatLabelSelector(&s.Selector))
	conditions := make([]string, len(s.UnhealthyConditions))
	for i, c := range s.UnhealthyConditions {
		what, how := c.Words()
		conditions[i] = fmt.Sprintf("%s %s for %s", what, how, period.Text(c.Duration.Std()))
	}
	head.Add("Ill:", strings.Join(conditions, ", or "))
	switch {
	case s.RemediationTemplate != nil:
		head.Add("Remediation:", templateText(*s.RemediationTemplate))
	case s.Maintenance != nil:
		head.Add("Remediation:", repairText(*s.Maintenance))
	}
	for i, step := range s.EscalatingRemediations {
		text := ""
		if step.RemediationTemplate != nil {
			text = templateText(*step.RemediationTemplate)
		} else if step.Maintenance != nil {
			text = repairText(*step.Maintenance)
		}
		head.Add(fmt.Sprintf("Step %d:", i+1), fmt.Sprintf("%s, for %s", text, period.Text(step.Timeout.Std())))
	}
}

func templateText(t health.TemplateRef) string {
	if t.Namespace == "" {
		return t.Kind + " " + t.Name
	}
	return fmt.Sprintf("%s %s/%s", t.Kind, t.Namespace, t.Name)
}

func repairText(r health.Repair) string {
	if r.OutOfService {
		return "a maintenance, then out of service"
	}
	return "a maintenance"
}

func events(w io.Writer, all []api.HealthEvent, now time.Time) {
	if len(all) == 0 {
		return
	}
	terminal.Print(w, "\nEvents:\n")
	r := terminal.NewRows(w, "  AT", "REASON", "NODE", "MESSAGE")
	for _, e := range all {
		style := document.Plain
		if e.Warning {
			style = document.Bad
		}
		r.AddPainted(1, style, "  "+terminal.Clock(e.At, now), e.Reason, e.Node, terminal.Words(e.Text, now))
	}
	r.Done()
}
