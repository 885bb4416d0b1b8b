package drainplan

import (
	"cmp"
	"errors"
	"fmt"
	"k8s.io/apimachinery/pkg/labels"
	"math"
	"slices"
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
func compare(a, b tier) int {
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

// Entries are the entries of all tiers in their order. New makes the same plan of them.
func (p Plan) Entries() []Entry {
	entries := make([]Entry, 0, len(p.tiers))
	for _, t := range p.tiers {
		entries = append(entries, t.Entry)
	}
	return entries
}
