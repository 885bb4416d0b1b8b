package health

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
)

// tick is how long after the end of a duration it is over: a duration ends strictly after its last instant.
const tick = time.Millisecond

// after is the first instant at which a duration that began at since is over.
func after(since time.Time, d time.Duration) time.Time { return since.Add(d + tick) }

type class int

const (
	well class = iota
	// soon matches a condition whose duration is not over.
	soon
	// ill matches one whose duration is.
	ill
)

// illness is what a node has: the condition whose duration is over first, since when it has it, and when it is over.
type illness struct {
	class class
	index int
	since time.Time
	at    time.Time
}

// illnessOf judges a node's conditions.
func (s Spec) illnessOf(f Facts, now time.Time) illness {
	var found illness
	for _, m := range f.Matches {
		if m.Index < 0 || m.Index >= len(s.UnhealthyConditions) {
			continue
		}
		one := illness{soon, m.Index, m.Since, after(m.Since, s.UnhealthyConditions[m.Index].Duration.Std())}
		if !now.Before(one.at) {
			one.class = ill
		}
		if found.class == well || one.at.Before(found.at) || one.at.Equal(found.at) && one.index < found.index {
			found = one
		}
	}
	return found
}

// words say what a node has.
func (s Spec) words(i illness) string {
	if i.class == well {
		return ""
	}
	what, how := s.UnhealthyConditions[i.index].Words()
	return fmt.Sprintf("condition %s is %s since %s", what, how, stamp(i.since))
}

// stamp writes a time as programs read it; who shows it to people writes it in their zone.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// Required is how many of so many nodes have to be healthy for a remediation to begin: minHealthy rounded up, or all but
// maxUnhealthy rounded up. It is 0 where maxUnhealthy is more than there are.
func (s Spec) Required(nodes int) int { return required(s.MinHealthy, s.MaxUnhealthy, nodes) }

func required(minHealthy, maxUnhealthy schedule.Amount, nodes int) int {
	switch {
	case !minHealthy.IsZero():
		return minHealthy.Of(nodes)
	case !maxUnhealthy.IsZero():
		return max(nodes-maxUnhealthy.Of(nodes), 0)
	default:
		return 0
	}
}

// thresholdText is a threshold as the spec has it.
func thresholdText(minHealthy, maxUnhealthy schedule.Amount) string {
	if !minHealthy.IsZero() {
		return "minHealthy " + minHealthy.String()
	}
	return "maxUnhealthy " + maxUnhealthy.String()
}

// tally counts a group, or all nodes.
type tally struct {
	nodes, healthy, required int
	// counted: the observation has counted it.
	counted bool
}

// violated: nothing may begin in it.
func (t tally) violated() bool { return !t.counted || t.healthy < t.required }

// count is what the observation has counted of a group.
func (s Seen) count(group string) (GroupCount, bool) {
	i, found := slices.BinarySearchFunc(s.Groups, group, func(g GroupCount, group string) int { return strings.Compare(g.Group, group) })
	if !found {
		return GroupCount{}, false
	}
	return s.Groups[i], true
}

// lingers: the node matches nothing, and its remediation is not over. It counts as not healthy.
func (n Node) lingers() bool {
	return n.Remediation != nil && len(n.Matches) == 0 && !n.Left && !ended(n.Remediation)
}

func ended(r *Running) bool { return r.Progress != nil && r.Progress.Ended }

func long(d period.Duration) string { return period.Text(d.Std()) }
