package health

import (
	"cmp"
	"fmt"
	"strings"

	"drydock.dev/drydock/rules/period"
)

// excludeLabel on a node keeps it from being remediated where its value is true.
const excludeLabel = "remediation.medik8s.io/exclude-from-remediation"

// block is a reason why no remediation, or no further step of one, begins.
type block struct {
	kind, text string
	warning    bool
}

// The kinds of blocks: those of all nodes, in the order in which they are checked, and those of single ones.
const (
	blockDisabled  = "disabled"
	blockUpgrade   = "upgrade"
	blockPause     = "pause"
	blockThreshold = "threshold"
	blockStorm     = "storm"

	blockGroup       = "group"
	blockExcluded    = "excluded"
	blockMaintenance = "maintenance"
	blockNodeUpgrade = "nodeUpgrade"
	blockRetry       = "retry"
	blockTurn        = "controlPlane"

	// why a remediation ended with nothing begun
	endLease    = "lease"
	endNotOwned = "notOwned"
	endFailed   = "failed"
)

// allBlocks are the reasons why nothing begins on any node.
func (v *view) allBlocks() []block {
	var found []block
	add := func(there bool, kind string, warning bool, format string, args ...any) {
		if there {
			found = append(found, block{kind, fmt.Sprintf(format, args...), warning})
		}
	}
	_, text := v.state.Seen.disabled()
	add(text != "", blockDisabled, true, "the check is disabled: %s", text)
	add(v.state.Seen.Upgrading != "", blockUpgrade, false, "the cluster is being upgraded: %s", v.state.Seen.Upgrading)
	pauses := v.pauses()
	add(len(pauses) > 0, blockPause, false, "the check is paused by %s", strings.Join(pauses, "; "))
	all := v.tally("")
	add(all.violated(), blockThreshold, true, "%s", v.tooFew(all, ""))
	storm := v.state.Storm
	switch {
	case storm.ActiveSince.IsZero() || v.spec.StormCooldownDuration == nil:
	case storm.CooldownSince.IsZero():
		add(true, blockStorm, true, "too many nodes are unhealthy since %s, and nothing begins for %s after that is over",
			stamp(storm.ActiveSince), long(*v.spec.StormCooldownDuration))
	default:
		add(true, blockStorm, true, "too many nodes were unhealthy, and nothing begins before %s",
			stamp(storm.CooldownSince.Add(v.spec.StormCooldownDuration.Std())))
	}
	return found
}

// disabled is why the check is, and in words; empty is not.
func (s Seen) disabled() (reason, text string) {
	switch {
	case s.Disabled != "":
		return s.DisabledReason, s.Disabled
	case s.DisabledReason != "":
		return s.DisabledReason, s.DisabledReason
	default:
		return "", ""
	}
}

// pauses are who pauses and why, in words.
func (v *view) pauses() []string {
	var found []string
	for _, text := range v.spec.PauseRequests {
		found = append(found, fmt.Sprintf("%q of its pauseRequests", text))
	}
	for _, p := range v.state.Pauses {
		if p.Why == "" {
			found = append(found, p.By)
			continue
		}
		found = append(found, fmt.Sprintf("%s (%s)", p.By, p.Why))
	}
	return found
}

// tooFew says that too few nodes are healthy.
func (v *view) tooFew(t tally, group string) string {
	threshold, where := thresholdText(v.spec.MinHealthy, v.spec.MaxUnhealthy), "nodes"
	if group != "" && v.spec.Groups != nil {
		threshold, where = thresholdText(v.spec.Groups.MinHealthy, v.spec.Groups.MaxUnhealthy), "nodes of group "+group
	}
	if !t.counted {
		return "the " + where + " have not been counted yet"
	}
	return fmt.Sprintf("%d of %d %s are healthy, and %d have to be (%s)", t.healthy, t.nodes, where, t.required, threshold)
}

// nodeBlocks are the reasons why nothing begins on one node; first is for a remediation rather than a further step.
func (v *view) nodeBlocks(n Node, first bool) []block {
	var found []block
	add := func(there bool, kind string, format string, args ...any) {
		if there {
			found = append(found, block{kind, fmt.Sprintf(format, args...), true})
		}
	}
	if v.spec.Groups != nil {
		group := v.tally(n.Group)
		if n.Group == "" {
			group.counted = false // the watch groups by other labels than the check
		}
		add(group.violated(), blockGroup, "%s", v.tooFew(group, n.Group))
	}
	add(n.Excluded && n.Exclude == "true", blockExcluded, "the node is excluded by its label %s", excludeLabel)
	add(n.UnderMaintenance != "", blockMaintenance, "the node is under maintenance: %s", n.UnderMaintenance)
	add(n.Upgrading != "", blockNodeUpgrade, "the node is being upgraded: %s", n.Upgrading)
	if !first {
		return found
	}
	add(n.Past != nil && v.now.Before(n.Past.RetryAt), blockRetry, "%s", v.retryText(n))
	if n.ControlPlane {
		other := v.otherWithTurn(n)
		add(other != "", blockTurn, "one control-plane node is remediated at a time, now %s", other)
	}
	return found
}

func (v *view) retryText(n Node) string {
	if n.Past == nil {
		return ""
	}
	return fmt.Sprintf("%s; the next try is in %s", cmp.Or(n.Past.Trouble, n.Past.Failure), period.Age(n.Past.RetryAt.Sub(v.now)))
}

// otherWithTurn is another control-plane node that the check remediates, empty if it remediates none. That no other check does is the
// scheduler's business.
func (v *view) otherWithTurn(n Node) string {
	for i := range v.state.Nodes {
		if other := &v.state.Nodes[i]; other.Name != n.Name && other.hasTurn() {
			return other.Name
		}
	}
	return ""
}

// text says what follows from an overlap; empty if there is none.
func (o Overlap) text() string {
	if o.Check == "" {
		return ""
	}
	return fmt.Sprintf("health check %s, which is older, selects node %s too: of such a node the check that has its lease takes care; "+
		"change the selector of one of them", o.Check, o.Node)
}
