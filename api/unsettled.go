package api

import (
	"maps"
	"slices"
)

// Reasons of blockers that somebody's consent settles.
const (
	ReasonLocalStorage = "LocalStorage"
	ReasonNoController = "NoController"
	ReasonOrphaned     = "Orphaned"
)

// Unsettled is a progress without the blockers that a person's message has settled: a drain that is to begin anew still
// reports them until it has stopped.
func (s Status) Unsettled(p DrainProgress) DrainProgress {
	blockers, reasons := []Blocker(nil), maps.Clone(p.Reasons)
	for _, b := range p.Blockers {
		if !s.settles(b) {
			blockers = append(blockers, b)
			continue
		}
		if reasons[b.Reason]--; reasons[b.Reason] <= 0 {
			delete(reasons, b.Reason)
		}
	}
	if len(blockers) < len(p.Blockers) {
		p.Blockers, p.Reasons = blockers, reasons
	}
	return p
}

// settles reports whether the pod is skipped, or the consent that it lacked has been given: a blocker names a consent only while that is
// missing.
func (s Status) settles(b Blocker) bool {
	if slices.Contains(s.SkippedPods, b.Pod) {
		return true
	}
	return slices.ContainsFunc(s.Consents, func(c ConsentGiven) bool {
		if len(c.Pods) > 0 && !slices.Contains(c.Pods, b.Pod) {
			return false
		}
		switch b.Reason {
		case ReasonLocalStorage:
			return c.DeleteEmptyDir
		case ReasonNoController, ReasonOrphaned:
			return c.Force
		}
		return false
	})
}
