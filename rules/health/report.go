package health

import (
	"slices"
	"strings"

	"drydock/rules/bounds"
	"drydock/rules/spec"
)

// Report takes in what a remediation says, and tells whether it counts. A remediation that the check does not know of is
// taken up: the check has begun anew. It changes Nodes in place.
func (s *State) Report(p Progress) bool {
	if spec.NodeName(p.Node) != nil {
		return false
	}
	p = boundedProgress(p)
	i, found := s.find(p.Node)
	if !found || s.Nodes[i].Remediation == nil {
		return s.adopt(i, found, p)
	}
	n := s.Nodes[i]
	if n.Past != nil && p.RunID != "" && n.Past.RunID == p.RunID {
		return false
	}
	running := *n.Remediation
	if before := running.Progress; before != nil && before.RunID != p.RunID && (p.RunID == "" || !p.StartedAt.After(before.StartedAt)) {
		return false
	}
	running.Progress = &p
	running.Order.Revision = max(running.Order.Revision, p.Revision)
	n.Remediation = &running
	s.Nodes[i] = n
	return true
}

// adopt takes up a remediation that runs.
func (s *State) adopt(i int, found bool, p Progress) bool {
	if p.Ended || found && s.Nodes[i].Past != nil && s.Nodes[i].Past.RunID == p.RunID {
		return false
	}
	running := &Running{BeganAt: p.StartedAt, From: p.Step, Progress: &p}
	running.Order = Order{Node: p.Node, Revision: p.Revision, Step: p.Step}
	for _, step := range p.Steps {
		if step.TimedOut != nil {
			running.Order.TimedOut = append(running.Order.TimedOut, step.Index)
		}
	}
	if !found {
		s.Nodes = slices.Insert(s.Nodes, i, Node{Facts: Facts{Name: p.Node, UID: p.UID, ControlPlane: p.ControlPlane}, Unseen: true})
	}
	s.Nodes[i].Remediation = running
	// What it had told is not known; told twice would be worse than not at all.
	s.Nodes[i].Told.Unhealthy, s.Nodes[i].Told.Steps = true, len(p.Steps)
	return true
}

func boundedProgress(p Progress) Progress {
	p.Steps = slices.Clone(p.Steps[:min(len(p.Steps), maxSteps)])
	slices.SortFunc(p.Steps, func(a, b StepState) int { return a.Index - b.Index })
	for i := range p.Steps {
		p.Steps[i].Failure = bounds.Cut(p.Steps[i].Failure, maxShort)
	}
	p.LeaseHeldBy, p.NotOwned = bounds.Cut(p.LeaseHeldBy, maxShort), bounds.Cut(p.NotOwned, maxShort)
	p.Waiting, p.Failure = bounds.Cut(p.Waiting, maxShort), bounds.Cut(p.Failure, maxShort)
	return p
}

// step is how a step stands, nil where it has not begun.
func (p *Progress) step(index int) *StepState {
	if p == nil {
		return nil
	}
	for i := range p.Steps {
		if p.Steps[i].Index == index {
			return &p.Steps[i]
		}
	}
	return nil
}

// begun counts the steps whose objects were created.
func (p *Progress) begun() int {
	if p == nil {
		return 0
	}
	begun := 0
	for _, step := range p.Steps {
		if !step.StartedAt.IsZero() {
			begun++
		}
	}
	return begun
}

// failed: the step will not succeed any more.
func (s *StepState) failed() bool {
	return s.Succeeded != nil && !*s.Succeeded || s.Failure != "" && (s.StartedAt.IsZero() || s.WorkflowID != "") && !s.succeeded()
}

func (s *StepState) succeeded() bool { return s.Succeeded != nil && *s.Succeeded }

// what names the object or maintenance of a step.
func (s *StepState) what() string {
	switch {
	case s.Resource != nil:
		return strings.TrimSpace(s.Resource.Kind + " " + s.Resource.Name)
	case s.WorkflowID != "":
		return "maintenance " + s.WorkflowID
	default:
		return "nothing yet"
	}
}
