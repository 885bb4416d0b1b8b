package starter

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"drydock/api"
	"drydock/client"
)

// line is what is shown of one maintenance while it goes on. Text changes only when something happened; Age is the
// time since the last change of phase.
type line struct {
	Label string
	Text  string
	Age   time.Duration
}

// lineOf names the requestor too where it is not self, since a node can have maintenances of several.
func lineOf(v client.View, self string, now time.Time) line {
	l := line{Label: v.Node, Text: progress(v)}
	if v.Requestor != self {
		l.Label += " (" + v.Requestor + ")"
	}
	switch {
	case !v.Running():
		l.Age = v.Closed.Sub(v.Started)
	case v.Status != nil:
		l.Age = now.Sub(v.Status.Since)
	default:
		l.Age = now.Sub(v.Started)
	}
	return l
}

// progress says in one line where a maintenance is and what it waits for.
func progress(v client.View) string {
	phase := v.Phase()
	switch {
	case phase == "":
		return "Starting"
	case phase.Ended():
		return string(phase) + colon(v.Message())
	}
	text := string(phase)
	if v.Status == nil {
		return text
	}
	details := v.Status.WaitingFor
	// The scheduler's reasons are sentences of their own.
	if details != "" && phase != api.Pending {
		details = "waiting for " + details
	}
	switch {
	case (phase == api.Draining || phase == api.WaitingForPods) && v.Status.Drain != nil:
		details = drainText(*v.Status.Drain) + forced(v.Status.Force)
	case phase == api.RequestorFailed && v.Status.Failure != "":
		details = v.Status.Failure
	}
	if v.Status.Attempt > 1 && phase != api.Ready {
		text += fmt.Sprintf(" (attempt %d)", v.Status.Attempt)
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

func drainCounts(d api.DrainProgress) string {
	if d.Total == 0 {
		return "no pods to drain"
	}
	text := fmt.Sprintf("%d of %s gone, %d left", d.Total-d.Remaining, plural(d.Total, "pod"), d.Remaining)
	if d.Terminating > 0 {
		text += fmt.Sprintf(" (%d terminating)", d.Terminating)
	}
	return text
}

// oneLine keeps what comes from outside, such as reasons, from breaking a table or moving the cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
