package views

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/number"
)

// drainFacts are how far the drain has come, and what it may do and will do next.
func drainFacts(d *document.Document, s *api.Status, r Reader) {
	if looksAtPods(s) {
		d.Fact("Drain", lookingAtPods)
	}
	if p := s.Drain; looked(s) {
		d.Fact("Drain", drainCounts(*p)+staysText(*p)+asOf(p.At, r))
		if p.Tiers > 1 {
			d.Fact("Tier", r.said(fmt.Sprintf("%d of %d%s", p.Tier, p.Tiers, targetsText(p.Targets))))
		}
	}
	if s.Force != "" {
		d.Fact("Force", s.Force+": "+forceText(s.Force))
	}
	skipped, more := first(r, s.SkippedPods)
	d.Fact("Skipped pods", andMore(skipped, more))
	if len(s.Arrived) > 0 {
		d.Fact("Arrived pods", arrivedText(s, r)+" (after the drain, despite the cordon)")
	}
	d.Fact("Next rung", nextRungText(s, r))
	if at := s.NextAttemptAt; at != nil {
		d.Fact("Next attempt", r.in(*at))
	}
}

// staysText counts the pods that stay by why they do.
func staysText(d api.DrainProgress) string {
	var parts []string
	known := 0
	for _, kind := range slices.Sorted(maps.Keys(d.Staying)) {
		parts = append(parts, number.Of(d.Staying[kind], kindText(kind)))
		known += d.Staying[kind]
	}
	if rest := d.Skipped - known; rest > 0 && known > 0 {
		parts = append(parts, fmt.Sprintf("%d more", rest))
	} else if rest > 0 {
		parts = append(parts, number.Of(rest, "pod"))
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
func asOf(at time.Time, r Reader) string {
	switch {
	case at.IsZero():
		return ""
	case r.brief:
		return "; as of " + r.at(at)
	}
	return "; as of " + r.age(at) + " ago"
}

func arrivedText(s *api.Status, r Reader) string {
	arrived, more := first(r, s.Arrived)
	names := make([]string, len(arrived))
	for i, pod := range arrived {
		names[i] = pod.Pod
	}
	return andMore(names, more+s.MoreArrived)
}

// andMore joins names, and counts those that were left out.
func andMore(names []string, more int) string {
	if more > 0 {
		names = append(slices.Clone(names), document.AndMore(more))
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

func blockers(d *api.DrainProgress, r Reader) document.Table {
	t := document.Table{Title: "Blocked by", Header: []string{"pod", "owner", "reason", "since", "message"}}
	if d == nil {
		return t
	}
	shown, more := first(r, d.Blockers)
	for _, b := range shown {
		t.Add(b.Pod, cmp.Or(b.Owner, "-"), b.Reason, r.age(b.Since), r.said(r.words(b.Message)))
		for _, budget := range b.Budgets {
			// The message of a drain says the numbers too, unless it comes from the API server alone.
			if !r.brief && !strings.Contains(b.Message, fmt.Sprintf("budget %s allows %s:", budget.Name, number.Of(int(budget.Allowed), "disruption"))) {
				t.Add("", "", "", "", budgetText(budget))
			}
		}
	}
	if more += d.MoreBlockers; more > 0 {
		t.More = document.AndMore(more) + reasonsText(d.Reasons)
	}
	return t
}

// stays are the pods that the plan is about and that stay on the node all the same.
func stays(d *api.DrainProgress, r Reader) document.Table {
	t := document.Table{Title: "Stay on the node", Header: []string{"pod", "owner", "reason", "message"}}
	if d == nil {
		return t
	}
	shown, more := first(r, d.Stays)
	for _, b := range shown {
		t.Add(b.Pod, cmp.Or(b.Owner, "-"), b.Reason, r.said(b.Message))
	}
	t.More = document.AndMore(more)
	return t
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

func rungsTaken(taken []api.RungTaken, r Reader) document.Table {
	table := document.Table{Title: "Rungs taken", Header: []string{"at", "rung", "by", "why"}}
	shown, more := first(r, taken)
	for _, t := range shown {
		table.Add(r.at(t.At), t.Do, cmp.Or(t.By, "the plan"), r.said(t.Why))
	}
	table.More = document.AndMore(more)
	return table
}
