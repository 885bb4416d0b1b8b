package plan

import (
	"fmt"
	"slices"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/drainplan"
	"drydock/rules/notices"
	"drydock/rules/number"
	"drydock/rules/rollout"
)

// heard takes what the lockstep says.
func (s *stages) heard(p api.PlanProgress) {
	switch {
	case p.RunID != s.runID, s.state.Phase.Ended():
		return // it is meant for an earlier plan of this name
	case p.Repeat:
		s.Asked, s.Tries, s.dirty = true, 0, true
		return
	case p.Revision > s.Revision && p.Revision < 1<<40:
		// A run that this one is a copy of has told it that.
		s.Revision = p.Revision
		s.revise(s.now())
	case p.Revision == s.Revision && p.Refused != "":
		s.refuse(bounds.Cut(p.Refused, bounds.Text))
	case p.Revision == s.Revision:
		s.answered(s.now())
		s.Taken = len(s.Begun)
		s.Tier = min(max(p.Tier, 0), s.tiers.Len())
		s.Released = p.Complete && s.Stage == rollout.Complete
	case s.refused.revision == s.Revision:
		s.Tier = min(max(p.Tier, 0), s.tiers.Len()) // the intent before the one that was refused counts
	}
	if text := bounds.Cut(p.Forwarded, bounds.Text); text != "" && text != s.Forwarded {
		s.Forwarded = text
		s.news.note(text)
	}
	for i := range p.Nodes {
		s.stands(&p.Nodes[i])
	}
	s.dirty = true
}

// refuse goes back to the stage before the intent that was refused; where that is the present one, the nodes that came are
// left alone.
func (s *stages) refuse(why string) {
	s.refused.revision, s.refused.why = s.Revision, why
	stage := s.Stage
	s.answered(s.now())
	s.state.Failure = fmt.Sprintf("%s was refused: %s", stage, why)
	if s.Taken < len(s.Begun) && stage != rollout.Complete {
		s.back(s.now())
		s.news.tell(notices.PlanStage, fmt.Sprintf("back in stage %s: %s", s.Stage, s.state.Failure))
		return
	}
	s.news.note(s.state.Failure)
}

// stands takes how a node stands.
func (s *stages) stands(p *api.SharedProgress) {
	n := s.node(p.Node)
	if n == nil || n.State == rollout.Gone {
		return
	}
	state := stateOf(s.Stage, n.Standing != nil, *p)
	if n.State != state {
		n.State, n.Since = state, s.now().Unix()
	}
	n.Note, n.RunID = bounds.Cut(p.Message, maxNote), ""
	if api.RunID(p.RunID) == nil && !state.Over() {
		n.RunID = p.RunID
	}
	if state == rollout.Running {
		n.Tries = max(n.Tries, 1)
	}
	if p.Phase != "" {
		n.Standing = &rollout.Standing{
			Phase: known(p.Phase), Targets: s.keep(p.Targets[:min(len(p.Targets), maxTargets)], s.state.Nodes),
			Pending: max(p.Pending, 0), Evacuating: max(p.Evacuating, 0), Drained: p.Drained,
		}
	}
	if state == rollout.Gone && s.Stage.Holds() {
		s.revise(s.now())
		s.Relook = true // one that is made anew under its name matches again
	}
}

// maxTargets bounds the targets of a node.
const maxTargets = 200

// known is a phase that there is.
func known(phase api.Phase) string {
	if !slices.Contains(api.Phases, phase) {
		return ""
	}
	return string(phase)
}

// stateOf is the state of a node as the lockstep tells of it: begun tells whether its maintenance had begun before.
func stateOf(stage api.Stage, begun bool, p api.SharedProgress) rollout.State {
	switch {
	case p.Left && p.Phase == api.NodeGone:
		return rollout.Gone
	case p.Left && p.Failed:
		return rollout.Failed
	case p.Left && p.Phase == "" && !begun:
		return rollout.Waiting // it was never touched
	case p.Left && (stage == rollout.Complete || p.Phase == api.Completed):
		return rollout.Done
	case p.Left:
		return rollout.Skipped
	case p.Phase == "":
		return rollout.Waiting
	case p.Phase == api.RequestorFailed:
		return rollout.Held
	default:
		return rollout.Running
	}
}

// cordoned tells of a node's maintenance that it has its node out of service.
func cordoned(n *rollout.Node) bool {
	if n.Standing == nil || n.State.Over() {
		return false
	}
	place := slices.Index(api.Phases, api.Phase(n.Standing.Phase))
	return place > slices.Index(api.Phases, api.Cordoning) && place < slices.Index(api.Phases, api.Releasing)
}

// counted counts the nodes that are held.
func counted(nodes []rollout.Node) api.DrainCounts {
	var c api.DrainCounts
	for i := range nodes {
		n := &nodes[i]
		if n.State != rollout.Running && n.State != rollout.Held {
			continue
		}
		c.Held++
		if cordoned(n) {
			c.Cordoned++
		}
		if n.Standing != nil {
			c.Pending, c.Evacuating = c.Pending+n.Standing.Pending, c.Evacuating+n.Standing.Evacuating
			if n.Standing.Drained {
				c.Drained++
			}
		}
	}
	return c
}

// judge keeps whether all nodes are drained, while that is asked for.
func (s *stages) judge() {
	if s.Stage != rollout.Drain {
		return
	}
	nodes, held := rollout.Count(s.state.Nodes), counted(s.state.Nodes)
	left := nodes.Waiting + held.Held - held.Drained
	drained := s.Answered > 0 && s.Taken == len(s.Begun) && s.Tier >= s.tiers.Len() && held.Drained > 0 && left == 0
	if drained != s.Drained.Status || s.Drained.Since.IsZero() {
		s.Drained.Status, s.Drained.Since = drained, s.now()
		if drained {
			s.news.tell(notices.PlanDrained, number.Are(held.Drained, "node")+" drained")
		} else if s.Answered > 0 && s.Drained.Message != "" {
			s.news.note("its nodes are not all drained any more")
		}
	}
	s.Drained.Message = fmt.Sprintf("%d of %d nodes are drained", held.Drained, nodes.Total-nodes.Failed-nodes.Skipped-nodes.Done)
}

// waitsFor says in words what has to happen next.
func (s *stages) waitsFor() string {
	held := counted(s.state.Nodes)
	wanted := rollout.Count(s.state.Nodes)
	out := wanted.Waiting + held.Held
	switch {
	case s.Stage != rollout.Idle && s.Answered < s.Revision:
		return "the lockstep of all plans to take its stage " + string(s.Stage)
	case s.Stage == rollout.Idle:
		return "its stage to be set: Cordon, Drain or Complete"
	case s.Stage == rollout.Complete:
		return fmt.Sprintf("its nodes to be given back: %d are left", held.Held)
	case s.Stage == rollout.Cordon && held.Cordoned < out:
		return fmt.Sprintf("its nodes to be cordoned: %d of %d are", held.Cordoned, out) + prefixed("; ", unbegun(s.state.Nodes))
	case s.Stage == rollout.Cordon:
		return "its stage to be set: Drain or Complete"
	case s.Drained.Status:
		return "its stage to be set: Complete (all nodes are drained)"
	default:
		return fmt.Sprintf("tier %d of %d (%s): %d of %d nodes are drained up to it",
			min(s.Tier+1, s.tiers.Len()), s.tiers.Len(), tierText(s.tiers, s.Tier), held.Drained, out) + prefixed("; ", unbegun(s.state.Nodes))
	}
}

// unbegun is what all nodes that have no slot yet wait for, where that is the same: a gang goes whole or not at all.
func unbegun(nodes []rollout.Node) (why string) {
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.State != rollout.Running || n.Standing == nil || api.Phase(n.Standing.Phase) != api.Pending:
		case n.Note == "", why != "" && n.Note != why:
			return ""
		default:
			why = n.Note
		}
	}
	return why
}

// tierText is the tier that the plan is at in words.
func tierText(tiers drainplan.Plan, tier int) string {
	if tiers.Len() == 0 {
		return "no pods"
	}
	e := tiers.Entry(min(tier, tiers.Len()-1))
	return fmt.Sprintf("%s pods up to priority %d%s", e.PodType, e.PodPriority, prefixed(", ", e.PodSelector))
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// summary says in one line how the plan stands.
func (s *stages) summary() string {
	nodes, held := rollout.Count(s.state.Nodes), counted(s.state.Nodes)
	text := "stage " + string(s.Stage) + ": "
	switch s.Stage {
	case rollout.Idle:
		text += number.Form(nodes.Total, "node matches", "nodes match")
	case rollout.Cordon:
		text += fmt.Sprintf("%d of %d nodes are cordoned", held.Cordoned, nodes.Total)
	case rollout.Drain:
		text += fmt.Sprintf("%d of %d nodes are drained", held.Drained, nodes.Total)
	default:
		text += fmt.Sprintf("%d of %d nodes are given back", nodes.Done, nodes.Total)
	}
	if n := nodes.Failures(); n > 0 {
		text += fmt.Sprintf(", %d failed", n)
	}
	return text + prefixed(": ", s.state.Failure)
}
