package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/plan"
)

// progress is what the lockstep says.
type progress struct{ api.PlanProgress }

func (m progress) Check(p *maintenancePlan, _ time.Time) error {
	switch {
	case p.Staged == nil:
		return errors.New("the plan is rolling: it is none of the lockstep's")
	case m.RunID != p.Info.Run:
		return fmt.Errorf("runId: it is meant for run %.100s, and this is run %s", m.RunID, p.Info.Run)
	case p.Phase.Ended():
		return errors.New("the plan has ended")
	}
	return nil
}

// maxRevision is more than a plan counts to.
const maxRevision = 1 << 40

func (m progress) Apply(p *maintenancePlan, now time.Time) string {
	s := p.Staged
	switch {
	case m.Repeat:
		s.Asked, s.Tries = s.Asked+1, 0
		return ""
	case m.Revision > s.Revision && m.Revision < maxRevision:
		// A run that this one is a copy of has sent that.
		s.Revision = m.Revision
		s.revise()
	case m.Revision == s.Revision && m.Refused != "":
		p.refuse(bounds.Cut(m.Refused, bounds.Text), now)
	case m.Revision == s.Revision:
		p.answered(now)
		s.Taken = len(s.Begun)
		s.Tier = min(max(m.Tier, 0), p.tiers.Len())
		s.Released = m.Complete && s.Stage == plan.Complete
	case s.Refused == s.Revision:
		s.Tier = min(max(m.Tier, 0), p.tiers.Len()) // the intent before the one that was refused counts
	}
	if m.Refused == "" {
		s.WaitsFor = bounds.Cut(m.WaitsFor, bounds.Text)
	}
	if text := bounds.Cut(m.Forwarded, bounds.Text); text != "" && text != s.Forwarded {
		s.Forwarded = text
		p.note(text, now)
	}
	for i := range m.Nodes {
		p.stands(&m.Nodes[i], now)
	}
	return ""
}

// answered notes that the lockstep has taken or refused the present intent.
func (p *maintenancePlan) answered(now time.Time) {
	if s := p.Staged; s.Answered != s.Revision {
		s.Answered, s.Tries = s.Revision, 0
		p.Rest(s.intentKey(), repeatOnce, now)
	}
}

// refuse goes back to the stage before the intent that was refused; where that is the present one, the nodes that came are
// left alone.
func (p *maintenancePlan) refuse(why string, now time.Time) {
	s := p.Staged
	s.Refused, s.RefusedWhy = s.Revision, why
	p.answered(now)
	p.Failure = fmt.Sprintf("%s was refused: %s", s.Stage, why)
	if s.Taken < len(s.Begun) && s.Stage != plan.Complete {
		s.back(now)
		p.announce(notices.PlanStage, fmt.Sprintf("back in stage %s: %s", s.Stage, p.Failure), now)
		return
	}
	p.note(p.Failure, now)
}

func (p *maintenancePlan) stands(m *api.SharedProgress, now time.Time) {
	s, n := p.Staged, p.node(m.Node)
	if n == nil || n.State == plan.Gone {
		return
	}
	state := stateOf(s.Stage, n.Standing != nil, *m)
	if n.State != state {
		n.State, n.Since = state, now.Unix()
	}
	n.Note, n.RunID = bounds.Words(m.Message, maxNote), ""
	if api.RunID(m.RunID) == nil && !state.Over() {
		n.RunID = m.RunID
	}
	if state == plan.Running {
		n.Tries = max(n.Tries, 1)
	}
	if m.Phase != "" {
		n.Standing = &plan.Standing{
			Targets: s.keep(m.Targets[:min(len(m.Targets), maxTargets)], p.Nodes),
			Pending: max(m.Pending, 0), Evacuating: max(m.Evacuating, 0), Drained: m.Drained,
		}
		if slices.Contains(api.Phases, m.Phase) {
			n.Standing.Phase = string(m.Phase)
		}
	}
	if state == plan.Gone && s.Stage.Holds() {
		s.revise()
		s.Relook = true // one that is made anew under its name matches again
	}
}

// maxTargets bounds the targets of a node.
const maxTargets = 200

// stateOf is the state of a node by the lockstep's report; begun is whether its maintenance had begun before.
func stateOf(stage api.Stage, begun bool, p api.SharedProgress) plan.State {
	switch {
	case p.Left && p.Phase == api.NodeGone:
		return plan.Gone
	case p.Left && p.Failed:
		return plan.Failed
	case p.Left && p.Phase == "" && !begun:
		return plan.Waiting // it was never touched
	case p.Left && (stage == plan.Complete || p.Phase == api.Completed):
		return plan.Done
	case p.Left:
		return plan.Skipped
	case p.Phase == "":
		return plan.Waiting
	case p.Phase == api.RequestorFailed:
		return plan.Held
	default:
		return plan.Running
	}
}

// counted counts the nodes that are held. Those between Cordoning and Releasing are cordoned.
func counted(nodes []plan.Node) api.DrainCounts {
	var c api.DrainCounts
	for i := range nodes {
		n := &nodes[i]
		if n.State != plan.Running && n.State != plan.Held {
			continue
		}
		if c.Held++; n.Standing == nil {
			continue
		}
		phase := slices.Index(api.Phases, api.Phase(n.Standing.Phase))
		if phase > slices.Index(api.Phases, api.Cordoning) && phase < slices.Index(api.Phases, api.Releasing) {
			c.Cordoned++
		}
		if n.Standing.Drained {
			c.Drained++
		}
		c.Pending, c.Evacuating = c.Pending+n.Standing.Pending, c.Evacuating+n.Standing.Evacuating
	}
	return c
}

// judge records whether all nodes are drained, in the stage Drain.
func (p *maintenancePlan) judge(now time.Time) {
	s := p.Staged
	if s.Stage != plan.Drain {
		return
	}
	nodes, held := plan.Count(p.Nodes), counted(p.Nodes)
	left := nodes.Waiting + held.Held - held.Drained
	drained := s.Answered > 0 && s.Taken == len(s.Begun) && s.Tier >= p.tiers.Len() && held.Drained > 0 && left == 0
	if drained != s.Drained.Status || s.Drained.Since.IsZero() {
		s.Drained.Status, s.Drained.Since = drained, now
		if drained {
			p.announce(notices.PlanDrained, number.Are(held.Drained, "node")+" drained", now)
		} else if s.Answered > 0 && s.Drained.Message != "" {
			p.note("its nodes are not all drained any more", now)
		}
	}
	s.Drained.Message = fmt.Sprintf("%d of %d nodes are drained", held.Drained, nodes.Total-nodes.Failed-nodes.Skipped-nodes.Done)
}

func (p *maintenancePlan) waitsFor() string {
	s := p.Staged
	held := counted(p.Nodes)
	out := plan.Count(p.Nodes).Waiting + held.Held
	switch {
	case s.Stage != plan.Idle && s.Answered < s.Revision:
		return "the lockstep of all plans to take its stage " + string(s.Stage)
	case s.Stage == plan.Idle:
		return plan.AwaitsStage + "Cordon, Drain or Complete"
	case s.Stage == plan.Complete:
		return fmt.Sprintf("its nodes to be given back: %d are left", held.Held)
	case s.Stage == plan.Cordon && held.Cordoned < out:
		return fmt.Sprintf("its nodes to be cordoned: %d of %d are", held.Cordoned, out) + prefixed("; ", unbegun(p.Nodes))
	case s.Stage == plan.Cordon:
		return plan.AwaitsStage + "Drain or Complete"
	case s.Drained.Status:
		return plan.AwaitsStage + "Complete (all nodes are drained)"
	default:
		return fmt.Sprintf("tier %d of %d (%s): %d of %d nodes are drained up to it",
			min(s.Tier+1, p.tiers.Len()), p.tiers.Len(), tierText(p.tiers, s.Tier), held.Drained, out) + prefixed("; ", unbegun(p.Nodes))
	}
}

// unbegun is what all nodes that have no slot yet wait for, where that is the same: a gang goes whole or not at all.
func unbegun(nodes []plan.Node) (why string) {
	for i := range nodes {
		n := &nodes[i]
		switch {
		case n.State != plan.Running || n.Standing == nil || api.Phase(n.Standing.Phase) != api.Pending:
		case n.Note == "", why != "" && n.Note != why:
			return ""
		default:
			why = n.Note
		}
	}
	return why
}

func tierText(tiers drainplan.Plan, tier int) string {
	if tiers.Len() == 0 {
		return "no pods"
	}
	e := tiers.Entry(min(tier, tiers.Len()-1))
	return fmt.Sprintf("%s pods%s%s", e.PodType, e.UpTo(), prefixed(", ", e.PodSelector))
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func (p *maintenancePlan) stagedSummary() string {
	s := p.Staged
	nodes, held := plan.Count(p.Nodes), counted(p.Nodes)
	text := "stage " + string(s.Stage) + ": "
	switch s.Stage {
	case plan.Idle:
		text += number.Form(nodes.Total, "node matches", "nodes match")
	case plan.Cordon:
		text += fmt.Sprintf("%d of %d nodes are cordoned", held.Cordoned, nodes.Total)
	case plan.Drain:
		text += fmt.Sprintf("%d of %d nodes are drained", held.Drained, nodes.Total)
	default:
		text += fmt.Sprintf("%d of %d nodes are given back", nodes.Done, nodes.Total)
	}
	if n := nodes.Failures(); n > 0 {
		text += fmt.Sprintf(", %d failed", n)
	}
	return text + prefixed(": ", p.Failure)
}
