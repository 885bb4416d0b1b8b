package show

import (
	"fmt"
	"io"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// renderStages shows how far a plan is whose nodes go through stages together.
func renderStages(head terminal.Rows, s api.PlanStages) {
	head.Add("Stage:", string(s.Stage))
	if s.Stage == api.StageDrain {
		head.Add("Tier:", tierText(s))
	}
	n := s.Nodes
	head.Add("Drained:", fmt.Sprintf("%t (%d held, %d cordoned, %d drained; %s pending, %d leaving)",
		s.Drained.Status, n.Held, n.Cordoned, n.Drained, terminal.Plural(n.Pending, "pod"), n.Evacuating))
}

// stageLine is where a plan is whose nodes go through stages together.
func stageLine(s api.PlanStages) string {
	text := "stage " + string(s.Stage)
	if s.Stage == api.StageDrain {
		text += fmt.Sprintf(", tier %d of %d", min(s.Tier+1, len(s.Tiers)), len(s.Tiers))
	}
	n := s.Nodes
	return fmt.Sprintf("%s: %d held, %d cordoned, %d drained; %s pending, %d leaving",
		text, n.Held, n.Cordoned, n.Drained, terminal.Plural(n.Pending, "pod"), n.Evacuating)
}

func tierText(s api.PlanStages) string {
	if s.Tier >= len(s.Tiers) {
		return fmt.Sprintf("all %d are drained", len(s.Tiers))
	}
	return fmt.Sprintf("%d of %d, %s", s.Tier+1, len(s.Tiers), EntryText(s.Tiers[s.Tier]))
}

// EntryText is a tier in words.
func EntryText(e drainplan.Entry) string {
	text := fmt.Sprintf("%s pods%s", e.PodType, e.UpTo())
	if e.PodSelector != "" {
		text += " that match " + e.PodSelector
	}
	return text
}

func renderStagedNodes(w io.Writer, p Plan, now time.Time) {
	r := terminal.NewRows(w, "NODE", "STATE", "FOR", "PHASE", "PENDING", "LEAVING", "MESSAGE")
	for _, n := range p.Nodes {
		age, phase, pending, leaving := "", "", "", ""
		if !n.Since.IsZero() {
			age = period.Age(now.Sub(n.Since))
		}
		if d := n.Drain; d != nil {
			phase, pending, leaving = string(d.Phase), fmt.Sprint(d.Pending), fmt.Sprint(d.Evacuating)
		}
		r.AddPainted(1, views.StateStyle(n.State), n.Node, n.State, age, phase, pending, leaving, terminal.Words(n.Note, now))
	}
	r.Done()
	renderMoreNodes(w, p)
}

// shownTierPods are the pods of a tier and node that are shown to people.
const shownTierPods = 5

// renderTiers shows which pods of each node leave in which tier.
func renderTiers(w io.Writer, p PlanPreview, wide bool) {
	if len(p.Preflights) == 0 {
		return
	}
	fmt.Fprintln(w)
	r := terminal.NewRows(w, "TIER", "NODE", "LEAVE", "PODS")
	tiers, _ := p.Spec.Tiers() // it was decoded
	for tier, e := range tiers.Entries() {
		said := false
		for _, report := range p.Preflights {
			pods := podsOf(report, tier+1)
			if len(pods) == 0 {
				continue
			}
			if !said {
				r.Add(fmt.Sprint(tier+1), EntryText(e), "", "")
				said = true
			}
			names := terminal.SomeOf(pods, shownTierPods)
			if wide {
				names = strings.Join(pods, ", ")
			}
			r.Add("", report.Node, fmt.Sprint(len(pods)), names)
		}
	}
	r.Done()
}

// podsOf are the pods of a node that leave in a tier, as far as its report lists them.
func podsOf(report preflight.Report, tier int) []string {
	var pods []string
	for _, pod := range report.Pods {
		if pod.Tier == tier && pod.Action != preflight.Skip {
			pods = append(pods, pod.Pod)
		}
	}
	return pods
}
