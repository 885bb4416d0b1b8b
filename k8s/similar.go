package k8s

import (
	"cmp"
	"slices"
	"strings"
)

// Similar returns the names, at most three and the nearest first, that a typo may have made name of.
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
