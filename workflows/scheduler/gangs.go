package scheduler

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/schedule"
)

// changeGangs: requests may be members of a gang. Before, such a request was refused as one that is not understood.
const changeGangs = "gangs"

// since tells whether a history is of a build that knows something. It may begin with one that did not: what that decided
// is repeated as it was, and the change counts from the first event on that a build handled which knows it. Each question
// is a change of its own, because an answer holds for the rest of a run.
type since struct {
	change string
	yes    bool
	asked  int
}

func (s *since) known(ctx workflow.Context) bool {
	if !s.yes {
		s.asked++
		s.yes = workflow.GetVersion(ctx, fmt.Sprintf("%s-%d", s.change, s.asked), workflow.DefaultVersion, 1) != workflow.DefaultVersion
	}
	return s.yes
}

// knownIn leaves out of a decision the gangs of which a build that did not know them decided.
func (s *since) knownIn(ctx workflow.Context, in schedule.Input) schedule.Input {
	isMember := func(r schedule.Request) bool { return r.Gang != nil }
	if !slices.ContainsFunc(in.Pending, isMember) || s.known(ctx) {
		return in
	}
	for i := range in.Pending {
		in.Pending[i].Gang = nil
	}
	return in
}

// changeRemediations: requests may be for remediations. Before, such a request was refused as one that is not understood.
const changeRemediations = "remediations"

// changeKinds: others than maintenances may hold slots. Before, such a request was refused as one that is not understood.
const changeKinds = "holder-kinds"

// understands tells whether a history knows the windows, the gang, the remediation and the kind of a request: one of an earlier build
// has refused them.
func (s *scheduler) understands(r schedule.Request) bool {
	return (!named(r) || s.hours.inForce()) && (r.Gang == nil || s.gangs.known(s.ctx)) &&
		(!r.Remediation || s.remediations.known(s.ctx)) && (r.Kind == schedule.KindMaintenance || s.kinds.known(s.ctx))
}

// understood is a holder as the history knows it: an earlier build took it for any other.
func (k *knowledge) understood(ctx workflow.Context, h api.Holder) api.Holder {
	h.Remediation = h.Remediation && k.remediations.known(ctx)
	if h.Kind != schedule.KindMaintenance && !k.kinds.known(ctx) {
		h.Kind = schedule.KindMaintenance
	}
	return h
}

// gangs are those of requests, each once for all its members: the size that was said last counts for all. They are only
// looked up in, and no more than the requests of one run.
type gangs map[string]*schedule.Gang

// of is the gang that a request names, nil where it names none.
func (g gangs) of(named *schedule.Gang) *schedule.Gang {
	if named == nil {
		return nil
	}
	known := g[named.Name]
	if known == nil {
		known = &schedule.Gang{Name: named.Name}
		g[named.Name] = known
	}
	known.Size = named.Size
	return known
}

// join has a request that waits be a member of the gang with which it is repeated, or of none.
func (i *intake) join(r api.SlotRequest) {
	l := i.ledger
	gang := l.gangs.of(r.Gang)
	if l.index.gangOf(r.ID) == gang {
		return
	}
	l.index.join(r.ID, gang)
	if at := slices.IndexFunc(l.pending, func(p api.PendingRequest) bool { return p.ID == r.ID }); at >= 0 {
		l.pending[at].Gang = gang
	}
}

// holdsFor notes of a holder for which gang it holds its slot, by its own word: a mark does not tell.
func (s rebuilding) holdsFor(r api.SlotRequest) {
	i := slices.IndexFunc(s.ledger.holders, func(h api.Holder) bool { return h.RequestID == r.ID })
	if i >= 0 && r.Gang != nil {
		s.ledger.holders[i].Gang = r.Gang.Name
	}
}

// packGangs are the gangs of requests, each once, and the number of each request's; both are empty where there are none.
func packGangs(pending []api.PendingRequest) (of []int, all []schedule.Gang) {
	numbers := map[string]int{}
	for i, p := range pending {
		if p.Gang == nil {
			continue
		}
		if of == nil {
			of = make([]int, len(pending))
		}
		if numbers[p.Gang.Name] == 0 {
			all = append(all, *p.Gang)
			numbers[p.Gang.Name] = len(all)
		}
		of[i] = numbers[p.Gang.Name]
	}
	return of, all
}
