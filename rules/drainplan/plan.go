// Package drainplan decides in which order the pods of a node leave: tier by tier, as in KEP-4212, drainPlan.
package drainplan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// standardPriorities are those of the entries that KEP-4212, drainPlan, has in every plan: the highest one of a
// user's priority class, system-cluster-critical, system-node-critical, and the highest there is.
var standardPriorities = [...]int32{1_000_000_000, 2_000_000_000, 2_000_001_000, math.MaxInt32}

// Plan is a list of tiers. A tier leaves when all tiers before it have left. The zero Plan has no tiers, so every
// pod stays.
type Plan struct {
	tiers []tier
}

// tier is an entry whose selector is in canonical form, so that == compares what two entries select.
type tier struct {
	Entry
	selector labels.Selector
}

// New puts the entries in the order of the drain, whatever order they are given in: by pod type as in Types, then by
// ascending priority, then concrete selectors first. To the types in include it adds the standard entries that are
// not given. It refuses a pod type that does not exist, a selector that cannot be read and an entry given twice; the
// error names all of them as elements of tiers.
func New(entries []Entry, include []PodType) (Plan, error) {
	var (
		plan Plan
		errs []error
	)
	given := map[Entry]int{}
	for i, e := range entries {
		t, err := compile(e, fmt.Sprintf("tiers[%d]", i))
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if first, ok := given[t.Entry]; ok {
			errs = append(errs, fmt.Errorf("tiers[%d]: the same entry as tiers[%d]", i, first))
			continue
		}
		given[t.Entry] = i
		plan.tiers = append(plan.tiers, t)
	}
	for i, podType := range include {
		if err := validateType(podType); err != nil {
			errs = append(errs, fmt.Errorf("include[%d]: %w", i, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return Plan{}, err
	}
	for _, podType := range Types() {
		if slices.Contains(include, podType) {
			plan.inject(podType, given)
		}
	}
	slices.SortFunc(plan.tiers, compare)
	return plan, nil
}

// Simple is the plan of a drain without one: all Default pods leave at once.
func Simple() Plan {
	return Plan{tiers: []tier{everything(Default, math.MaxInt32)}}
}

// inject adds the standard entries of the pod type that are not given.
func (p *Plan) inject(podType PodType, given map[Entry]int) {
	for _, priority := range standardPriorities {
		t := everything(podType, priority)
		if _, ok := given[t.Entry]; !ok {
			p.tiers = append(p.tiers, t)
		}
	}
}

// everything selects all pods of the type with at most this priority.
func everything(podType PodType, priority int32) tier {
	return tier{Entry{PodType: podType, PodPriority: priority}, labels.Everything()}
}

// compile reads the entry. The path is where the entry was given, for the errors.
func compile(e Entry, path string) (tier, error) {
	var errs []error
	if err := validateType(e.PodType); err != nil {
		errs = append(errs, fmt.Errorf("%s.podType: %w", path, err))
	}
	selector, err := labels.Parse(e.PodSelector)
	if err != nil {
		errs = append(errs, fmt.Errorf("%s.podSelector: %w", path, err))
	}
	if err := errors.Join(errs...); err != nil {
		return tier{}, err
	}
	e.PodSelector = selector.String()
	return tier{e, selector}, nil
}

func validateType(t PodType) error {
	if !slices.Contains(Types(), t) {
		return fmt.Errorf("unknown pod type %.40q, want one of %q", t, Types())
	}
	return nil
}

// compare is a total order, as no two tiers of a plan have equal entries.
func compare(a, b tier) int { return compareEntries(a.Entry, b.Entry) }

// compareEntries orders entries as they are drained, whichever plans they are of.
func compareEntries(a, b Entry) int {
	return cmp.Or(
		cmp.Compare(rank(a.PodType), rank(b.PodType)),
		cmp.Compare(a.PodPriority, b.PodPriority),
		compareSelectors(a.PodSelector, b.PodSelector),
	)
}

// rank is the place of the pod type in the drain.
func rank(t PodType) int { return slices.Index(Types(), t) }

// compareSelectors puts concrete selectors first: after the general one no pod would be left to them.
func compareSelectors(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	return cmp.Compare(a, b)
}

// selects reports whether the pod is one of those the tier's entry describes.
func (t tier) selects(pod Pod) bool {
	return pod.Type == t.PodType && pod.Priority <= t.PodPriority && t.selector.Matches(labels.Set(pod.Labels))
}

// Len is the number of tiers.
func (p Plan) Len() int { return len(p.tiers) }

// Entry is the entry of a tier, from 0 to Len()-1, its selector in canonical form.
func (p Plan) Entry(tier int) Entry { return p.tiers[tier].Entry }

// HasAfter reports whether tiers of the plan come after an entry, which may be another plan's; nil comes before all.
func (p Plan) HasAfter(e *Entry) bool {
	return len(p.tiers) > 0 && (e == nil || compareEntries(p.tiers[len(p.tiers)-1].Entry, *e) > 0)
}

// Entries are the entries of all tiers in their order. New makes the same plan of them.
func (p Plan) Entries() []Entry {
	entries := make([]Entry, 0, len(p.tiers))
	for _, t := range p.tiers {
		entries = append(entries, t.Entry)
	}
	return entries
}

// TierOf is the first tier that selects the pod. It is false if none does: the pod stays.
func (p Plan) TierOf(pod Pod) (int, bool) {
	i := slices.IndexFunc(p.tiers, func(t tier) bool { return t.selects(pod) })
	return max(i, 0), i >= 0
}

// Next is the tier that a drain is in which had reached a tier: the first that has pods left, but never one before
// the reached tier. So a pod that appears late in an earlier tier holds the drain where it is, and does not move it
// back. It is Len() when no tier has pods left, and stays Len() from then on: a pod that appears later still is only
// seen in remaining. The count of the pods left in tier i is remaining[i], or 0 where remaining is too short.
func (p Plan) Next(reached int, remaining []int) int {
	first := slices.IndexFunc(remaining, func(left int) bool { return left > 0 })
	if first < 0 {
		first = p.Len()
	}
	return min(max(reached, first), p.Len())
}

// Targets are the pods that are to leave while the tier is drained: those of this tier and of all tiers before it,
// in the form of the drainTargets of KEP-4212. For each selector that the plan has for a pod type they name the
// highest priority that has been reached, which an entry without selector raises for all selectors of its type.
// There are none before tier 0, and from Len() on they are those of the last tier.
func (p Plan) Targets(tier int) []Entry {
	executed := p.tiers[:min(max(tier+1, 0), len(p.tiers))]
	var targets []Entry
	for _, podType := range Types() {
		for _, selector := range p.selectors(podType) {
			if priority, ok := reachedPriority(executed, podType, selector); ok {
				targets = append(targets, Entry{PodType: podType, PodPriority: priority, PodSelector: selector})
			}
		}
	}
	return targets
}

// selectors are the selectors of the pod type's entries, each once: the general one, then the others in plan order.
func (p Plan) selectors(podType PodType) []string {
	general, concrete := []string(nil), []string(nil)
	for _, t := range p.tiers {
		switch {
		case t.PodType != podType:
		case t.PodSelector == "":
			general = []string{""}
		case !slices.Contains(concrete, t.PodSelector):
			concrete = append(concrete, t.PodSelector)
		}
	}
	return append(general, concrete...)
}

// reachedPriority is the highest priority up to which pods of the type and selector are selected by the tiers. It is
// false if they select none.
func reachedPriority(tiers []tier, podType PodType, selector string) (int32, bool) {
	// Within a pod type the priorities ascend, so the last one is the highest.
	for _, t := range slices.Backward(tiers) {
		if t.PodType == podType && (t.PodSelector == "" || t.PodSelector == selector) {
			return t.PodPriority, true
		}
	}
	return 0, false
}
