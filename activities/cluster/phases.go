package cluster

import (
	"maps"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

// PhaseCounts counts the maintenances that hold a slot, by what they do, as a watch of the cluster found them last. A watch looks
// after them anyway: that it counts them costs nothing. Only the worker whose watch runs has one.
type PhaseCounts struct {
	mu   sync.Mutex
	held map[HeldIn]int
	at   time.Time
}

// HeldIn is what is counted together: a phase, and the first group of the node, empty if it is in none.
type HeldIn struct {
	Phase api.Phase
	Group string
}

// Latest are the counts of a watch that looked no longer ago than is given; ok is false if none did.
func (c *PhaseCounts) Latest(within time.Duration, now time.Time) (held map[HeldIn]int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() || now.Sub(c.at) > within {
		return nil, false
	}
	return maps.Clone(c.held), true
}

func (c *PhaseCounts) set(held map[HeldIn]int) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held, c.at = held, time.Now()
}

// nodeGetter is a copy of the nodes.
type nodeGetter interface {
	Get(name string) (*corev1.Node, bool)
}

// nodesByGroup finds nodes and their groups. The zero value knows none.
type nodesByGroup struct {
	grouper schedule.Grouper
	nodes   nodeGetter
}

// look returns the phase that a node shows, and its first group.
func (n nodesByGroup) look(name string) (shown api.Phase, group string) {
	if n.nodes == nil {
		return "", ""
	}
	node, ok := n.nodes.Get(name)
	if !ok {
		return "", ""
	}
	if keys := n.grouper.Keys(node.Labels); len(keys) > 0 {
		group = schedule.GroupName(keys[0])
	}
	return api.Phase(node.Labels[api.PhaseLabel]), group
}

// counting is a count under way.
type counting struct {
	held  map[HeldIn]int
	nodes nodesByGroup
}

// count adds a maintenance; its workflow is nil if it was not asked.
func (c counting) count(name string, workflow *workflowservice.DescribeWorkflowExecutionResponse) {
	shown, group := c.nodes.look(name)
	c.held[HeldIn{Phase: phaseOf(shown, workflow), Group: group}]++
}

// phaseOf is the phase of a maintenance that holds a slot, by what its node shows and by what it has under way. A node shows
// nothing before it is cordoned, that it is Cordoning until it is drained, and from then on the phase itself.
func phaseOf(shown api.Phase, workflow *workflowservice.DescribeWorkflowExecutionResponse) api.Phase {
	under := map[string]bool{}
	for _, activity := range workflow.GetPendingActivities() {
		under[activity.GetActivityType().GetName()] = true
	}
	switch {
	case under["ReleaseNode"]:
		return api.Releasing
	case under["Drain"]:
		return api.Draining
	case shown == api.Cordoned, shown == api.Ready, shown == api.RequestorFailed, shown == api.Validating:
		return shown
	case under["WaitForPods"]:
		return api.WaitingForPods
	case under["HoldNode"]:
		return api.Cordoning
	case shown == "":
		return api.Scheduled
	}
	return api.Draining // by somebody else, or it is frozen
}
