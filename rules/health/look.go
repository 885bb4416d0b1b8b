package health

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/number"
)

const (
	// defaultPage and maxPage are how many nodes are shown at a time.
	defaultPage = 100
	maxPage     = 1000
)

// showing is what there is to show.
type showing struct{ *view }

func showingOf(in Input) *showing {
	w := &showing{viewOf(in)}
	w.blocks = w.allBlocks()
	return w
}

// shown is a node that is ill or under remediation.
type shown struct {
	node Node
	ill  illness
}

// Look says how a check stands, after the latest decision, with a page of its nodes; a limit of 0 is 100, and no page has
// more than 1000.
func Look(in Input, offset, limit int) Status {
	w := showingOf(in)
	all := w.tally("")
	status := Status{
		ObservedNodes: all.nodes, HealthyNodes: all.healthy, MinHealthy: all.required,
		Conditions: w.conditions(), LastUpdateTime: in.State.Seen.At, Upgrading: in.State.Seen.Upgrading,
		Overlap: in.State.Seen.Overlap.text(),
		Pauses:  w.pauseStatuses(), Groups: w.groupStatuses(), Storm: w.stormStatus(), UnhealthyNodes: []UnhealthyNode{},
	}
	if len(w.blocks) > 0 {
		status.Blocked = w.blocks[0].text
	}
	nodes := w.shown(&status)
	status.Unhealthy = len(nodes)
	status.Phase, status.Reason = w.phase(status)
	w.page(&status, nodes, offset, limit)
	if wake := Decide(in).Wake; !wake.IsZero() {
		status.NextWake = &wake
	}
	return status
}

func (w *showing) page(status *Status, nodes []shown, offset, limit int) {
	limit = min(cmp.Or(max(limit, 0), defaultPage), maxPage)
	from := min(max(offset, 0), len(nodes))
	to := min(from+limit, len(nodes))
	for _, n := range nodes[from:to] {
		status.UnhealthyNodes = append(status.UnhealthyNodes, w.unhealthy(n))
		if n.node.Remediation != nil && n.node.Remediation.Progress.begun() > 0 {
			if status.InFlightRemediations == nil {
				status.InFlightRemediations = map[string]time.Time{}
			}
			status.InFlightRemediations[n.node.Name] = n.node.Remediation.firstStart()
		}
	}
	if to < len(nodes) {
		status.NextOffset = to
	}
}

// shown are the nodes that are ill or under remediation, the latter first, then those that were ill first.
func (w *showing) shown(status *Status) []shown {
	var nodes []shown
	for _, n := range w.state.Nodes {
		found := illness{}
		if !n.Left && !n.Unseen {
			found = w.spec.illnessOf(n.Facts, w.now)
		}
		switch {
		case n.Remediation != nil:
			if n.Remediation.Progress.begun() > 0 {
				status.Remediating++
			}
		case found.class == soon:
			status.Soon++
			continue
		case found.class == well:
			continue
		}
		nodes = append(nodes, shown{n, found})
	}
	slices.SortStableFunc(nodes, func(a, b shown) int {
		if a, b := a.node.Remediation, b.node.Remediation; (a == nil) != (b == nil) {
			if a != nil {
				return -1
			}
			return 1
		}
		if a.node.Remediation != nil {
			return cmp.Or(a.node.Remediation.BeganAt.Compare(b.node.Remediation.BeganAt), strings.Compare(a.node.Name, b.node.Name))
		}
		return cmp.Or(a.ill.at.Compare(b.ill.at), strings.Compare(a.node.Name, b.node.Name))
	})
	return nodes
}

// firstStart is when the first remediation object of a node was created.
func (r *Running) firstStart() time.Time {
	var first time.Time
	if r.Progress != nil {
		for _, step := range r.Progress.Steps {
			if !step.StartedAt.IsZero() && (first.IsZero() || step.StartedAt.Before(first)) {
				first = step.StartedAt
			}
		}
	}
	return first
}

func (w *showing) unhealthy(s shown) UnhealthyNode {
	n := s.node
	shown := UnhealthyNode{Name: n.Name, Group: n.Group, ControlPlane: n.ControlPlane, Ill: w.spec.words(s.ill), Steps: len(w.steps)}
	if s.ill.class != well {
		since := s.ill.since
		shown.Since = &since
	}
	explained := w.explain(n)
	shown.Next, shown.NextAt = explained.Next, explained.At
	if len(explained.Blocks) > 0 {
		shown.Blocked = explained.Blocks[0]
	}
	if n.Remediation == nil {
		return shown
	}
	shown.Step = n.Remediation.Order.Step + 1
	if !n.WellSince.IsZero() {
		since := n.WellSince
		shown.ConditionsHealthyTimestamp = &since
		if w.spec.HealthyDelay > 0 && !n.Remediation.Order.Healthy {
			delayed := true
			shown.HealthyDelayed = &delayed
		}
	}
	if n.Remediation.Progress == nil {
		return shown
	}
	for _, step := range n.Remediation.Progress.Steps {
		if step.StartedAt.IsZero() {
			continue
		}
		one := RemediationOfNode{Resource: step.Resource, WorkflowID: step.WorkflowID, Started: step.StartedAt, TimedOut: step.TimedOut, Succeeded: step.Succeeded}
		if step.Index >= 0 && step.Index < len(w.steps) && w.steps[step.Index].Template != nil {
			one.TemplateName = w.steps[step.Index].Template.Name
		}
		shown.Remediations = append(shown.Remediations, one)
	}
	return shown
}

// phase is where the check is: the first that holds.
func (w *showing) phase(s Status) (Phase, string) {
	reason, text := w.state.Seen.disabled()
	pauses := w.pauses()
	switch {
	case text != "":
		return PhaseDisabled, fmt.Sprintf("the check is disabled: %s: %s", reason, text)
	case len(pauses) > 0:
		return PhasePaused, "paused by " + strings.Join(pauses, "; ")
	case s.Remediating > 0:
		return PhaseRemediating, fmt.Sprintf("%d of %d unhealthy nodes are being remediated", s.Remediating, s.Unhealthy)
	case !w.state.Seen.Known:
		return PhaseEnabled, "the nodes have not been looked at yet"
	case s.Unhealthy > 0 && s.Blocked != "":
		return PhaseEnabled, fmt.Sprintf("%s unhealthy, and no remediation begins: %s", number.Are(s.Unhealthy, "node"), s.Blocked)
	case s.Unhealthy > 0:
		return PhaseEnabled, number.Are(s.Unhealthy, "node") + " unhealthy, and none is being remediated"
	default:
		return PhaseEnabled, "no node is unhealthy"
	}
}

func (w *showing) conditions() []Condition {
	var found []Condition
	if !w.state.DisabledAt.IsZero() {
		c := Condition{Type: ConditionDisabled, Status: "False", Reason: NotDisabled, Message: "the check is in force", LastTransitionTime: w.state.DisabledAt}
		if reason, text := w.state.Seen.disabled(); text != "" {
			c.Status, c.Reason, c.Message = "True", reason, text
		}
		found = append(found, c)
	}
	storm := w.state.Storm
	if w.spec.StormCooldownDuration == nil || storm.ActiveSince.IsZero() && storm.EndedAt.IsZero() {
		return found
	}
	status := func(since time.Time) string {
		if since.IsZero() {
			return "False"
		}
		return "True"
	}
	at := storm.ActiveSince
	if at.IsZero() {
		at = storm.EndedAt
	}
	return append(found,
		Condition{Type: ConditionStorm, Status: status(storm.ActiveSince), Reason: ReasonThreshold, LastTransitionTime: at,
			Message: "whether too many nodes were unhealthy, and the cooldown after that is not over"},
		Condition{Type: ConditionStormCooldown, Status: status(storm.CooldownSince), Reason: ReasonThreshold, LastTransitionTime: storm.CooldownAt,
			Message: "whether enough nodes are healthy again, and nothing begins yet"})
}

func (w *showing) pauseStatuses() []PauseStatus {
	var found []PauseStatus
	for _, text := range w.spec.PauseRequests {
		found = append(found, PauseStatus{Why: text})
	}
	for _, p := range w.state.Pauses {
		found = append(found, PauseStatus(p))
	}
	return found
}

func (w *showing) groupStatuses() []GroupStatus {
	if w.spec.Groups == nil {
		return nil
	}
	var found []GroupStatus
	for _, g := range w.state.Seen.Groups {
		t := w.tally(g.Group)
		if g.Group == "" || t.healthy == t.nodes {
			continue
		}
		if found = append(found, GroupStatus{Group: g.Group, Nodes: t.nodes, Healthy: t.healthy, MinHealthy: t.required, Blocked: t.violated()}); len(found) == defaultPage {
			break
		}
	}
	return found
}

func (w *showing) stormStatus() *StormStatus {
	storm := w.state.Storm
	if storm.ActiveSince.IsZero() || w.spec.StormCooldownDuration == nil {
		return nil
	}
	status := &StormStatus{Since: storm.ActiveSince}
	if !storm.CooldownSince.IsZero() {
		since, over := storm.CooldownSince, w.stormOver()
		status.Cooldown, status.Over = &since, &over
	}
	return status
}
