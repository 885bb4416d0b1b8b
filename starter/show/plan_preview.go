package show

import (
	"fmt"
	"io"
	"strings"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/terminal"
)

// PlanPreview is what a plan would do if it was started now, and none of its nodes failed.
type PlanPreview struct {
	Name string `json:"name"`
	// Spec is the plan's input with all defaults.
	Spec plan.Plan `json:"spec"`
	// Total counts the nodes that match now.
	Total int `json:"total"`
	// Waves are the nodes that go together, in the order in which they go: the canary first.
	Waves []PlanWave `json:"waves"`
	// Preflights are the reports of the first nodes of the order; NotLookedAt counts the others.
	Preflights  []preflight.Report `json:"preflights"`
	NotLookedAt int                `json:"notLookedAt,omitempty"`
	Warnings    []string           `json:"warnings,omitempty"`
	// Estimate is about how long it takes; absent where no maintenance of the last 30 days says how long one takes.
	Estimate *PlanEstimate `json:"estimate,omitempty"`
}

// PlanWave is a part of a plan's nodes.
type PlanWave struct {
	Nodes []string `json:"nodes"`
	// Shared are budgets for which its nodes would wait for one another, as far as they were looked at.
	Shared []preflight.Shared `json:"shared,omitempty"`
}

// PlanEstimate is about how long a plan takes, without time for approval and for windows that are closed.
type PlanEstimate struct {
	Duration period.Duration `json:"duration"`
	// Each is the median of maintenances that completed, from the slot to the end, and Of how many there were.
	Each period.Duration `json:"each"`
	Of   int             `json:"of"`
	// Among says which these are: of the plan's requestor, on its nodes, or on any nodes, where there are none of the former.
	Among string `json:"among"`
}

// shownWaves are those that are shown to people.
const shownWaves = 20

// PlanDryRun shows what a plan would do; wide shows all waves and all nodes of each.
func PlanDryRun(w io.Writer, p PlanPreview, wide bool) {
	over := terminal.Plural(p.Total, "node")
	if !p.Spec.Together() {
		over += " in " + terminal.Plural(len(p.Waves), "wave")
	}
	terminal.Print(w, "Plan %s over %s: %s\n", p.Name, over, StrategyText(p.Spec.Strategy))
	for _, warning := range p.Warnings {
		terminal.Print(w, "Warning: %s\n", terminal.OneLine(warning))
	}
	if p.Spec.Together() {
		renderTiers(w, p, wide)
	} else {
		renderWaves(w, p, wide)
	}
	renderObstacles(w, p)
	renderEstimate(w, p)
	terminal.Print(w, "\nNothing was started.\n")
}

func renderWaves(w io.Writer, p PlanPreview, wide bool) {
	if len(p.Waves) == 0 {
		return
	}
	fmt.Fprintln(w)
	r := terminal.NewRows(w, "WAVE", "NODES")
	for i, wave := range p.Waves {
		if i == shownWaves && !wide {
			break
		}
		nodes := terminal.SomeOf(wave.Nodes, 10)
		if wide {
			nodes = strings.Join(wave.Nodes, ", ")
		}
		r.Add(waveName(p.Spec.Strategy, p.Waves, i), nodes)
	}
	r.Done()
	if more := len(p.Waves) - shownWaves; more > 0 && !wide {
		terminal.Print(w, "and %s (-o wide shows all)\n", terminal.More(more, "wave"))
	}
}

// waveName is the number of a wave, which says where it is of the canary.
func waveName(s plan.Strategy, waves []PlanWave, i int) string {
	name := fmt.Sprint(i + 1)
	if s.Canary == nil {
		return name
	}
	before := 0
	for _, wave := range waves[:i] {
		before += len(wave.Nodes)
	}
	if before < s.Canary.Nodes {
		name += " canary"
	}
	return name
}

// renderObstacles shows what would stop or delay the drains.
func renderObstacles(w io.Writer, p PlanPreview) {
	fine := 0
	for _, r := range p.Preflights {
		if r.ProblemCount() == 0 {
			fine++
		}
	}
	if looked := len(p.Preflights); looked > 0 {
		text := fmt.Sprintf("\nPreflight of %s: nothing would stop %d", terminal.Plural(looked, "node"), fine)
		if p.NotLookedAt > 0 {
			text += fmt.Sprintf("; %d not looked at (--preflights)", p.NotLookedAt)
		}
		terminal.Print(w, "%s\n", text)
	} else if p.NotLookedAt > 0 {
		terminal.Print(w, "\nPreflight: no node was looked at\n")
	}
	r := terminal.NewRows(w)
	for _, report := range p.Preflights {
		if report.ProblemCount() > 0 {
			r.AddPainted(0, document.Bad, "  "+report.Node, report.Summary(3))
		}
	}
	r.Done()
	for i, wave := range p.Waves {
		for _, s := range wave.Shared {
			terminal.Print(w, "Wave %d: %s share budget %s, which allows %d of their %s\n", i+1, terminal.SomeOf(s.Nodes, 5), s.Budget, s.Allowed, terminal.Plural(s.Pods, "eviction"))
		}
	}
}

func renderEstimate(w io.Writer, p PlanPreview) {
	if p.Estimate == nil {
		terminal.Print(w, "\nDuration: unknown, no maintenance completed in the last 30 days\n")
		return
	}
	e := *p.Estimate
	terminal.Print(w, "\nDuration: about %s (a node takes %s, the median of %s %s in the last 30 days)\n",
		period.Age(e.Duration.Std()), period.Age(e.Each.Std()), terminal.Plural(e.Of, "maintenance"), e.Among)
}
