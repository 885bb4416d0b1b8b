package site

import (
	"slices"
	"time"

	"drydock.dev/drydock/api"
)

// Entered is when a maintenance first came into a phase, which may be over.
func (s *Site) Entered(passed []api.Transition, phase api.Phase) time.Time {
	s.Helper()
	first := slices.IndexFunc(passed, func(t api.Transition) bool { return t.Phase == phase })
	if first < 0 {
		s.Fatalf("it was never %s: %+v", phase, passed)
	}
	return passed[first].At
}
