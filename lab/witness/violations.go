package witness

import (
	"fmt"
	"slices"
	"sync"

	"drydock.dev/drydock/lab/world"
)

// Violations are what a judge has seen that must never be.
type Violations struct {
	mu    sync.Mutex
	found []string
}

// Add prints a violation and keeps it.
func (v *Violations) Add(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	world.Say("VIOLATED: %s", text)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.found = append(v.found, text)
}

// Broke adds that a watch broke: what was not seen cannot be judged.
func (v *Violations) Broke(err error) { v.Add("%v", err) }

// Found returns the violations so far.
func (v *Violations) Found() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.found)
}
