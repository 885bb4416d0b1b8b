package witness

import (
	"maps"
	"slices"
)

// Tally keeps of which objects something is true, the most of them at one instant, and how often it became true of each.
type Tally struct {
	now   map[string]bool
	most  int
	times map[string]int
}

// NewTally is one of which nothing is known yet.
func NewTally() *Tally { return &Tally{now: map[string]bool{}, times: map[string]int{}} }

// Note takes what a version of an object says. A deleted object is one of which nothing is true.
func (t *Tally) Note(name string, is bool) {
	if !is {
		delete(t.now, name)
		return
	}
	if !t.now[name] {
		t.times[name]++
	}
	t.now[name] = true
	t.most = max(t.most, len(t.now))
}

// Now are the objects of which it is true, by name.
func (t *Tally) Now() []string { return slices.Sorted(maps.Keys(t.now)) }

// Most is the most objects of which it was true at one instant.
func (t *Tally) Most() int { return t.most }

// Forget begins to count the most anew, from nothing.
func (t *Tally) Forget() { t.most = 0 }

// Times is how often it became true of an object, counting that it was so in the beginning.
func (t *Tally) Times(name string) int { return t.times[name] }

// All is how often it became true of any object.
func (t *Tally) All() int {
	all := 0
	for _, times := range t.times {
		all += times
	}
	return all
}
