package show

import (
	"cmp"
	"fmt"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/terminal"
)

// LineOf names the requestor too where it is not self, since a node can have maintenances of several.
func LineOf(v client.View, self string, now time.Time) terminal.Line {
	l := terminal.Line{Label: v.Node, Text: terminal.Words(Progress(v), now), Style: phaseStyle(v.Phase())}
	if v.Requestor != self {
		l.Label += " (" + v.Requestor + ")"
	}
	switch {
	case !v.Running():
		l.Age = v.Ended().Sub(v.Began())
	case v.Status != nil:
		l.Age = now.Sub(v.Status.Since)
	default:
		l.Age = now.Sub(v.Started)
	}
	return l
}

// Progress says in one line where a maintenance is and what it waits for.
func Progress(v client.View) string {
	phase := v.Phase()
	switch {
	case phase == "":
		return "Starting"
	case phase.Ended():
		return string(phase) + terminal.Colon(v.Message())
	}
	text := string(phase)
	if v.Status == nil {
		return text
	}
	details := v.Status.WaitingFor
	if details != "" {
		details = "waiting for " + details
	}
	switch {
	case (phase == api.Draining || phase == api.WaitingForPods) && looked(v.Status):
		details = drainText(*v.Status.Drain) + forced(v.Status.Force)
	case looksAtPods(v.Status):
		details = lookingAtPods
	case phase == api.RequestorFailed && v.Status.Failure != "":
		details = v.Status.Failure
	}
	if v.Status.Attempt > 1 && phase != api.Ready {
		text += fmt.Sprintf(" (attempt %d)", v.Status.Attempt)
	}
	return text + terminal.Colon(details)
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
	text := fmt.Sprintf("%d of %s gone", d.Total-d.Remaining, terminal.Plural(d.Total, "pod"))
	if d.Terminating > 0 {
		text += fmt.Sprintf(" (%d terminating)", d.Terminating)
	}
	return text
}
