// Package nearest finds the name that somebody may have meant.
package nearest

import "strings"

// longest bounds, in bytes, the names that are compared.
const longest = 64

// To returns the known name that differs least from the written one, in a third of its letters at most; empty if there is none.
func To(written string, known []string) string {
	if len(written) > longest {
		return ""
	}
	best, least := "", max(1, len(written)/3)+1
	for _, name := range known {
		if d := distance(strings.ToLower(written), strings.ToLower(name)); d < least {
			best, least = name, d
		}
	}
	return best
}

// distance counts the letters that have to be added, removed, replaced, or exchanged with the next one, to make b of a.
func distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row := make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			row[j+1] = min(last[j+1], row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], last[j])
			} else {
				row[j+1] = min(row[j+1], last[j]+1)
			}
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
