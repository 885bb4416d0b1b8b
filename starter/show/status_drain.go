package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/starter/terminal"
)

// renderDrain shows how far the drain has come, and what it may do and will do next.
func renderDrain(head terminal.Rows, s *api.Status, now time.Time) {
	if looksAtPods(s) {
		head.Add("Drain:", lookingAtPods)
	}
	if d := s.Drain; looked(s) {
		head.Add("Drain:", drainCounts(*d)+staysText(*d)+asOf(d.At, now))
		if d.Tiers > 1 {
			head.Add("Tier:", fmt.Sprintf("%d of %d%s", d.Tier, d.Tiers, targetsText(d.Targets)))
		}
	}
	if s.Force != "" {
		head.Add("Force:", s.Force+": "+ForceText(s.Force))
	}
	if len(s.SkippedPods) > 0 {
		head.Add("Skipped pods:", strings.Join(s.SkippedPods, ", "))
	}
	if len(s.Arrived) > 0 {
		head.Add("Arrived pods:", arrivedText(s)+" (after the drain, despite the cordon)")
	}
	if next := NextRungText(s, now); next != "" {
		head.Add("Next rung:", next)
	}
	if at := s.NextAttemptAt; at != nil {
		head.Add("Next attempt:", fmt.Sprintf("%s (in %s)", terminal.Clock(*at, now), period.Age(at.Sub(now))))
	}
}

// staysText counts the pods that stay by why they do.
func staysText(d api.DrainProgress) string {
	var parts []string
	known := 0
	for _, kind := range slices.Sorted(maps.Keys(d.Staying)) {
		parts = append(parts, terminal.Plural(d.Staying[kind], kindText(kind)))
		known += d.Staying[kind]
	}
	if rest := d.Skipped - known; rest > 0 && known > 0 {
		parts = append(parts, fmt.Sprintf("%d more", rest))
	} else if rest > 0 {
		parts = append(parts, terminal.Plural(rest, "pod"))
	}
	switch d.Skipped {
	case 0:
		return ""
	case 1:
		return "; " + parts[0] + " stays"
	}
	return "; " + strings.Join(parts, ", ") + " stay"
}

// kindText is a pod by why it stays.
func kindText(reason string) string {
	switch reason {
	case "DaemonSet":
		return "DaemonSet pod"
	case "StaticPod":
		return "static pod"
	case "Skipped":
		return "skipped pod"
	case "OwnPod":
		return "pod of Drydock's own"
	}
	return "pod not selected"
}

// asOf says how old what is known is, where that is known.
func asOf(at, now time.Time) string {
	if at.IsZero() {
		return ""
	}
	return "; as of " + period.Age(now.Sub(at)) + " ago"
}

func arrivedText(s *api.Status) string {
	var names []string
	for _, pod := range s.Arrived {
		names = append(names, pod.Pod)
	}
	if s.MoreArrived > 0 {
		names = append(names, fmt.Sprintf("and %d more", s.MoreArrived))
	}
	return strings.Join(names, ", ")
}

// targetsText says which pods are to leave now.
func targetsText(targets []drainplan.Entry) string {
	if len(targets) == 0 {
		return ""
	}
	texts := make([]string, len(targets))
	for i, t := range targets {
		texts[i] = string(t.PodType)
		if t.PodSelector != "" {
			texts[i] += " " + t.PodSelector
		}
		if t.PodPriority < math.MaxInt32 {
			texts[i] += fmt.Sprintf(" up to priority %d", t.PodPriority)
		}
	}
	return " (targets " + strings.Join(texts, "; ") + ")"
}

func renderBlockers(w io.Writer, d *api.DrainProgress, now time.Time) {
	if d == nil || len(d.Blockers) == 0 {
		return
	}
	terminal.Print(w, "\nBlocked by:\n")
	r := terminal.NewRows(w, "  POD", "OWNER", "REASON", "SINCE", "MESSAGE")
	for _, b := range d.Blockers {
		r.Add("  "+b.Pod, cmp.Or(b.Owner, "-"), b.Reason, period.Age(now.Sub(b.Since)), terminal.Words(b.Message, now))
		for _, budget := range b.Budgets {
			// The message of a drain says the numbers too, unless it comes from the API server alone.
			if !strings.Contains(b.Message, fmt.Sprintf("budget %s allows %s:", budget.Name, terminal.Plural(int(budget.Allowed), "disruption"))) {
				r.Add("", "", "", "", budgetText(budget))
			}
		}
	}
	r.Done()
	if d.MoreBlockers > 0 {
		terminal.Print(w, "  and %d more%s\n", d.MoreBlockers, reasonsText(d.Reasons))
	}
}

// renderStays shows the pods that the plan is about and that stay on the node all the same.
func renderStays(w io.Writer, d *api.DrainProgress) {
	if d == nil || len(d.Stays) == 0 {
		return
	}
	terminal.Print(w, "\nStay on the node:\n")
	r := terminal.NewRows(w, "  POD", "OWNER", "REASON", "MESSAGE")
	for _, b := range d.Stays {
		r.Add("  "+b.Pod, cmp.Or(b.Owner, "-"), b.Reason, b.Message)
	}
	r.Done()
}

func budgetText(b api.BudgetState) string {
	text := fmt.Sprintf("%s allows %d, %d of %d needed healthy", b.Name, b.Allowed, b.Healthy, b.Desired)
	if b.Impossible {
		text += ", can never allow one"
	}
	return text
}

// reasonsText counts all blockers by reason, the most frequent one first.
func reasonsText(reasons map[string]int) string {
	if len(reasons) == 0 {
		return ""
	}
	names := slices.Collect(maps.Keys(reasons))
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%d %s", reasons[name], name)
	}
	return "; of all: " + strings.Join(names, ", ")
}

func renderEscalation(w io.Writer, taken []api.RungTaken, now time.Time) {
	if len(taken) == 0 {
		return
	}
	terminal.Print(w, "\nRungs taken:\n")
	r := terminal.NewRows(w, "  AT", "RUNG", "BY", "WHY")
	for _, t := range taken {
		r.Add("  "+terminal.Clock(t.At, now), t.Do, cmp.Or(t.By, "the plan"), t.Why)
	}
	r.Done()
}
