// Package number says in words how many there are of something.
package number

import "fmt"

// Form is a number with the word that goes with one, or with any other.
func Form(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Of is a number with its noun, whose plural takes an s.
func Of(n int, noun string) string { return Form(n, noun, noun+"s") }

// Are is Of with the verb: 1 node is, 2 nodes are.
func Are(n int, noun string) string { return Form(n, noun+" is", noun+"s are") }
