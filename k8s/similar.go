package k8s

import (
	"cmp"
	"slices"
	"strings"
)

// Similar returns the names, at most three and the nearest first, that a typo may have made name of. A name with other numbers in it is
// that of another node: who takes a suggestion must not work on a node that was never meant.
func Similar(name string, names []string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	// Longer names leave room for more typos, but a third of a name is another name.
	allowed := max(1, min(3, len(name)/3))
	for _, candidate := range names {
		distance := editDistance(strings.ToLower(name), strings.ToLower(candidate))
		// A short name for a fully qualified one is no typo at all, but common.
		if strings.HasPrefix(candidate, name+".") {
			distance = 0
		} else if isNeighbour(name, candidate) {
			continue
		}
		if distance <= allowed && candidate != name {
			found = append(found, near{candidate, distance})
		}
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.name, b.name))
	})
	var result []string
	for _, f := range found[:min(3, len(found))] {
		result = append(result, f.name)
	}
	return result
}

// isNeighbour reports whether two names differ in their numbers: worker-1 and worker-01 do not.
func isNeighbour(a, b string) bool {
	ofA, ofB := numbers(a), numbers(b)
	return len(ofA) == len(ofB) && !slices.Equal(ofA, ofB)
}

// numbers are those in a name, without leading zeros.
func numbers(name string) (all []string) {
	for _, digits := range strings.FieldsFunc(name, func(r rune) bool { return r < '0' || r > '9' }) {
		all = append(all, strings.TrimLeft(digits, "0"))
	}
	return all
}

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	s, t := []rune(a), []rune(b)
	var before, previous []int
	current := make([]int, len(t)+1)
	for j := range current {
		current[j] = j
	}
	for i := 1; i <= len(s); i++ {
		before, previous, current = previous, current, make([]int, len(t)+1)
		current[0] = i
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
	}
	return current[len(t)]
}
