package health

import (
	"slices"
	"time"
)

// view is what there is to decide on.
type view struct {
	spec  Spec
	steps []Remediation
	now   time.Time
	// state is a copy that may be changed.
	state *State
	// lingering counts the nodes of each group, and with "" all, that match nothing and whose remediation is not over.
	lingering map[string]int
	// blocks keep everything from beginning.
	blocks []block
}

func viewOf(in Input) *view {
	state := in.State
	state.Nodes = slices.Clone(state.Nodes)
	v := &view{spec: in.Spec, steps: in.Spec.Steps(), now: in.Now, state: &state}
	v.count()
	return v
}

func (v *view) count() {
	v.lingering = map[string]int{}
	for _, n := range v.state.Nodes {
		if n.lingers() {
			v.lingering[""]++
			if n.Group != "" {
				v.lingering[n.Group]++
			}
		}
	}
}

// tally counts a group, or with "" all nodes.
func (v *view) tally(group string) tally {
	counted, found := v.state.Seen.count(group)
	t := tally{nodes: counted.Nodes, counted: found}
	t.healthy = max(counted.Nodes-counted.Matching-v.lingering[group], 0)
	if t.required = v.spec.Required(t.nodes); group != "" && v.spec.Groups != nil {
		t.required = required(v.spec.Groups.MinHealthy, v.spec.Groups.MaxUnhealthy, t.nodes)
	}
	return t
}

// firstStep is the step with which a remediation begins.
func (v *view) firstStep(n Node, found illness) int {
	last := len(v.steps) - 1
	switch past := n.Past; {
	case past == nil:
		return 0
	case past.Failed > 0:
		return min(past.Step, last)
	case v.spec.Flapping != nil && !found.since.After(past.EndedAt.Add(v.spec.Flapping.Within.Std())):
		return min(past.Step+1, last)
	default:
		return 0
	}
}

// stormOver is when the cooldown is over.
func (v *view) stormOver() time.Time {
	return v.state.Storm.CooldownSince.Add(v.spec.StormCooldownDuration.Std())
}

// anyIll reports whether a node's condition is over its duration: before that nothing is to be held back.
func (v *view) anyIll() bool {
	for _, n := range v.state.Nodes {
		if !n.Unseen && !n.Left && v.spec.illnessOf(n.Facts, v.now).class == ill {
			return true
		}
	}
	return false
}
