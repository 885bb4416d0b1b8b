package views

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
)

// forceText says what the rungs taken allow the drain to do; it is empty if that is nothing.
func forceText(force string) string {
	switch force {
	case spec.BypassBudget:
		return "deletes pods whatever their budgets say"
	case spec.Kill:
		return "deletes pods without their grace period, whatever their budgets say"
	}
	return force
}

// rungDue is when the time of a rung comes. The clock runs from the cordon, or where pods were let complete first,
// from the end of that wait; where plans share the maintenance, only while it drains.
func rungDue(s *api.Status, rung spec.Rung) (due time.Time, known bool) {
	began := s.CordonedAt
	switch {
	case s.Spec.WaitForPodCompletion != nil:
		began = &s.Since
	case s.Spec.Lockstep:
		began = new(s.Since.Add(-drainedBefore(s.Transitions)))
	}
	if s.Phase != api.Draining || began == nil {
		return time.Time{}, false
	}
	return began.Add(rung.After.Std()), true
}

// drainedBefore is how long drains took that are over.
func drainedBefore(transitions []api.Transition) (total time.Duration) {
	for i, t := range transitions[:max(0, len(transitions)-1)] {
		if next := transitions[i+1]; t.Phase == api.Draining && slices.ContainsFunc(transitions[i+1:], func(later api.Transition) bool { return later.Phase != api.Draining }) {
			total += next.At.Sub(t.At)
		}
	}
	return total
}

// nextRungText is the next rung with the time until it is due; it is empty if none is left.
func nextRungText(s *api.Status, r Reader) string {
	rung, left := nextRung(s)
	due, known := rungDue(s, rung)
	switch {
	case !left || !known:
		return ""
	case r.brief:
		return fmt.Sprintf("at %s: %s", r.at(due), rung.Do)
	case !due.After(r.now):
		return "due now: " + rung.Do
	default:
		return fmt.Sprintf("in %s: %s", period.Age(due.Sub(r.now)), rung.Do)
	}
}

// nextRung is the first rung of the maintenance's escalation whose turn the present attempt has not had; left is false
// where all had theirs.
func nextRung(s *api.Status) (rung spec.Rung, left bool) {
	plan := rungsLeft(s)
	if len(plan) == 0 {
		return spec.Rung{}, false
	}
	return plan[0], true
}

// RungToTake is the rung that an escalation takes where it names none: the next one, but for the SLA's, which keeps its time.
func RungToTake(s *api.Status) (rung spec.Rung, left bool) {
	for _, rung := range rungsLeft(s) {
		if rung.Do != spec.ExpireSLA {
			return rung, true
		}
	}
	return spec.Rung{}, false
}

func rungsLeft(s *api.Status) []spec.Rung {
	plan := s.Spec.Ladder()
	for _, taken := range s.Escalation {
		if taken.Planned && len(plan) > 0 {
			plan = plan[1:]
		}
	}
	return plan
}
