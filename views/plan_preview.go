package views

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/preflight"
)

const (
	// shownWaves, shownWaveNodes and shownTierPods bound what a preview shows that is not wide: waves, the nodes of one, and the pods of a
	// tier and node.
	shownWaves     = 20
	shownWaveNodes = 10
	shownTierPods  = 5
)

// PlanPreview is what a plan would do; wide has all waves, and all nodes and pods of each.
func PlanPreview(p api.PlanPreview, wide bool, r Reader) (d document.Document) {
	over := number.Of(p.Total, "node")
	if !p.Spec.Together() {
		over += " in " + number.Of(len(p.Waves), "wave")
	}
	d.Line("Plan %s over %s: %s", p.Name, over, strategyText(p.Spec.Strategy))
	warn(&d, r, p.Warnings...)
	if p.Spec.Together() {
		d.Table(tiersOfPlan(p, wide))
	} else {
		d.Table(waves(p, wide))
	}
	obstacles(&d, p)
	if e := p.Estimate; e == nil {
		d.Paragraph("Duration: unknown, %s", p.NoEstimate)
	} else {
		d.Paragraph("Duration: about %s (a node takes %s, the median of %s %s in the last 30 days)",
			period.Age(e.Duration.Std()), period.Age(e.Each.Std()), number.Of(e.Of, "maintenance"), e.Among)
	}
	d.Paragraph("Nothing was started.")
	return d
}

func waves(p api.PlanPreview, wide bool) document.Table {
	t := document.Table{Header: []string{"wave", "nodes"}}
	before := 0
	for i, wave := range p.Waves {
		if i == shownWaves && !wide {
			t.More = document.AndMore(len(p.Waves)-i) + " (-o wide shows all)"
			break
		}
		name := strconv.Itoa(i + 1)
		if c := p.Spec.Strategy.Canary; c != nil && before < c.Nodes {
			name += " canary"
		}
		before += len(wave.Nodes)
		t.Add(name, some(wave.Nodes, shownWaveNodes, wide))
	}
	return t
}

// tiersOfPlan are which pods of each node leave in which tier.
func tiersOfPlan(p api.PlanPreview, wide bool) document.Table {
	t := document.Table{Header: []string{"tier", "node", "leave", "pods"}}
	tiers, _ := p.Spec.Tiers() // it was decoded
	empty := 0
	for tier, e := range tiers.Entries() {
		said := false
		for _, report := range p.Preflights {
			pods := podsOf(report, tier+1)
			if len(pods) == 0 {
				continue
			}
			if !said {
				t.Add(fmt.Sprintf("%d of %d", tier+1, tiers.Len()), tierText(e), "", "")
				said = true
			}
			t.Add("", report.Node, strconv.Itoa(len(pods)), some(pods, shownTierPods, wide))
		}
		if !said {
			empty++
		}
	}
	if empty > 0 && len(p.Preflights) > 0 {
		t.More = fmt.Sprintf("no pod%s would leave now in the other %s", knownPods(p), number.Of(empty, "tier"))
	}
	return t
}

// knownPods says that not all pods of the plan's nodes are known, where that is so.
func knownPods(p api.PlanPreview) string {
	switch {
	case slices.ContainsFunc(p.Preflights, func(r preflight.Report) bool { return r.MorePods > 0 }):
		return " that the preflights list"
	case p.NotLookedAt > 0:
		return " of the nodes looked at"
	default:
		return ""
	}
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

// obstacles are what would stop or delay the drains.
func obstacles(d *document.Document, p api.PlanPreview) {
	var t document.Table
	for _, report := range p.Preflights {
		if report.ProblemCount() > 0 {
			t.AddPainted(0, document.Bad, report.Node, report.Summary(3))
		}
	}
	if looked := len(p.Preflights); looked > 0 {
		t.Title = fmt.Sprintf("Preflight of %s: nothing would stop a drain", number.Of(looked, "node"))
		if len(t.Rows) > 0 {
			t.Title = fmt.Sprintf("Preflight: %d of %s would be stopped", len(t.Rows), number.Of(looked, "node"))
		}
		if p.NotLookedAt > 0 {
			t.Title += fmt.Sprintf("; %d not looked at (--preflights)", p.NotLookedAt)
		}
	} else if p.NotLookedAt > 0 {
		t.Title = "Preflight: no node was looked at"
	}
	if d.Table(t); len(t.Rows) == 0 && t.Title != "" {
		d.Paragraph("%s", t.Title)
	}
	for i, wave := range p.Waves {
		for _, s := range wave.Shared {
			d.Line("Wave %d: %s share budget %s, which allows %d of their %s", i+1, some(s.Nodes, 5, false), s.Budget, s.Allowed, number.Of(s.Pods, "eviction"))
		}
	}
}

// some are the first names, with how many more there are, or all of them.
func some(names []string, most int, all bool) string {
	if all || len(names) <= most {
		return strings.Join(names, ", ")
	}
	return andMore(names[:most], len(names)-most)
}
