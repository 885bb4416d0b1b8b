package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/spec"
)

// Report takes in what a remediation says, and reports whether it counts. A remediation that the check does not know of is
// taken up: the check has begun anew. It changes Nodes in place.
func (s *State) Report(p Progress) bool {
	if spec.NodeName(p.Node) != nil {
		return false
	}
	p = boundedProgress(p)
	i, found := s.find(p.Node)
	if !found || s.Nodes[i].Remediation == nil {
		return s.adopt(i, found, p, true)
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
	running.follow(p)
	if n.Unseen {
		n.ControlPlane, n.UID = n.ControlPlane || p.ControlPlane, cmp.Or(n.UID, p.UID)
	}
	n.Remediation = &running
	s.Nodes[i] = n
	return true
}

// maxLead is far more than the orders that one side of a remediation can know of and the other not.
const maxLead = 1 << 20

// follow has the order be one that the remediation takes, of which the latest revision counts. A remediation that has taken orders of an
// earlier check, which are not known here, gets the present order anew.
func (r *Running) follow(p Progress) {
	o := &r.Order
	switch {
	case o.Revision == 0: // nothing was ordered yet
		o.Revision = p.Revision
	case p.Revision > o.Revision, o.Revision > p.Revision+maxLead:
		o.Revision = p.Revision + 1
	default:
		return
	}
	o.Step = max(o.Step, p.Step)
	o.TimedOut = slices.Clone(o.TimedOut)
	for _, step := range p.Steps {
		if step.TimedOut != nil && !slices.Contains(o.TimedOut, step.Index) {
			o.TimedOut = append(o.TimedOut, step.Index)
		}
	}
}

// Runs takes in which run of a node's remediation was seen to run: what was said in the name of another does not count any more,
// nor that this one is over. It changes Nodes in place.
func (s *State) Runs(node, run string, at time.Time) {
	p := Progress{Node: node, RunID: run, StartedAt: at}
	i, found := s.find(node)
	if found && s.Nodes[i].Past != nil && s.Nodes[i].Past.RunID == run {
		past := *s.Nodes[i].Past
		past.RunID = ""
		s.Nodes[i].Past = &past
	}
	if !found || s.Nodes[i].Remediation == nil {
		s.adopt(i, found, p, false)
		return
	}
	running := *s.Nodes[i].Remediation
	running.Unconfirmed = false
	s.Nodes[i].Remediation = &running
	if before := running.Progress; before != nil {
		if before.RunID == run && !before.Ended {
			return
		}
		// What there may be of it is known until the run says better.
		p.UID, p.ControlPlane, p.Step, p.Steps = before.UID, before.ControlPlane, before.Step, before.Steps
	}
	running.Progress = &p
}

// adopt takes up a remediation that runs.
func (s *State) adopt(i int, found bool, p Progress, unconfirmed bool) bool {
	if p.Ended || found && s.Nodes[i].Past != nil && s.Nodes[i].Past.RunID == p.RunID {
		return false
	}
	running := &Running{BeganAt: p.StartedAt, From: p.Step, Progress: &p, Unconfirmed: unconfirmed}
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
	// Whether this was announced is not known: twice would be worse than not at all.
	s.Nodes[i].Announced.Unhealthy, s.Nodes[i].Announced.Steps = true, len(p.Steps)
	return true
}

func boundedProgress(p Progress) Progress {
	p.Steps = slices.Clone(p.Steps[:min(len(p.Steps), maxSteps)])
	slices.SortFunc(p.Steps, func(a, b StepState) int { return a.Index - b.Index })
	for i := range p.Steps {
		p.Steps[i].Failure = bounds.Cut(p.Steps[i].Failure, maxShort)
	}
	p.LeaseHeldBy, p.NotOwned = bounds.Cut(p.LeaseHeldBy, maxShort), bounds.Cut(p.NotOwned, maxShort)
	p.Indispensable = bounds.Cut(p.Indispensable, maxShort)
	p.Waiting, p.Failure = bounds.Cut(p.Waiting, maxShort), bounds.Cut(p.Failure, maxShort)
	p.Trouble = bounds.Cut(p.Trouble, bounds.Text) // it ends with the command that helps
	return p
}

// step is how a step stands, nil if it has not begun.
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
