package views

import (
	"cmp"
	"fmt"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/spec"
)

// Progress says in one line where a maintenance is and what it waits for.
func Progress(m api.Maintenance) string {
	switch {
	case m.Phase == "":
		return "Starting"
	case m.Phase.Ended():
		return string(m.Phase) + colon(m.Message)
	}
	text, details := string(m.Phase), m.WaitingFor
	if details != "" {
		details = "waiting for " + details
	}
	switch {
	case (m.Phase == api.Draining || m.Phase == api.WaitingForPods) && looked(&m.Status):
		details = drainText(*m.Drain) + forced(m.Force)
	case looksAtPods(&m.Status):
		details = lookingAtPods
	case m.Phase == api.RequestorFailed && m.Failure != "":
		details = m.Failure
	}
	if m.Attempt > 1 && m.Phase != api.Ready {
		text += fmt.Sprintf(" (attempt %d)", m.Attempt)
	}
	return text + colon(details)
}

// drainText is a drain's progress with its tier, where it has several, and its first blocker.
func drainText(d api.DrainProgress) string {
	text := drainCounts(d)
	if d.Tiers > 1 {
		text = fmt.Sprintf("tier %d of %d, %s", d.Tier, d.Tiers, text)
	}
	if len(d.Blockers) == 0 {
		return text
	}
	first := d.Blockers[0]
	text += fmt.Sprintf("; %s: %s", first.Pod, cmp.Or(first.Message, first.Reason))
	if more := len(d.Blockers) - 1 + d.MoreBlockers; more > 0 {
		text += fmt.Sprintf("; %d more blocked", more)
	}
	return text
}

// forced is shown in a line as long as the drain may do more than evict.
func forced(force string) string {
	if force == "" {
		return ""
	}
	return " (" + force + ")"
}

const lookingAtPods = "looking at the node's pods"

func looked(s *api.Status) bool { return s.Drain != nil && s.Drain.Looked() }

// looksAtPods reports whether a drain is under way which has not said yet what it sees.
func looksAtPods(s *api.Status) bool {
	return !looked(s) && s.Phase == api.Draining && (s.Spec.Drain.Mode == spec.ModeEvict || s.Spec.Drain.Mode == spec.ModeWait)
}

func drainCounts(d api.DrainProgress) string {
	if d.Total == 0 {
		return "no pods to drain"
	}
	text := fmt.Sprintf("%d of %s gone", d.Total-d.Remaining, number.Of(d.Total, "pod"))
	if d.Terminating > 0 {
		text += fmt.Sprintf(" (%d terminating)", d.Terminating)
	}
	return text
}
