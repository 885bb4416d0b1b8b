// Package series bounds how many series a metric has whose labels outsiders choose.
package series

import "sync"

// Other is the value of a label that stands for all that are not kept apart.
const Other = "other"

// Bounded keeps the first values of a label apart, up to a number, and calls the rest Other. The zero value calls all so.
type Bounded struct {
	most int

	mu   sync.Mutex
	seen map[string]bool
}

// NewBounded keeps up to most values apart.
func NewBounded(most int) *Bounded { return &Bounded{most: most, seen: map[string]bool{}} }

// Of is the value under which a value is counted.
func (b *Bounded) Of(value string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.seen[value]:
		return value
	case len(b.seen) >= b.most || value == Other:
		return Other
	}
	b.seen[value] = true
	return value
}
