package migration

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/rules/nodestate"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
)

// looksAhead is for how long the openings of windows are computed.
const looksAhead = 8 * 24 * time.Hour

// slots is what Drydock's scheduler would go by.
type slots struct {
	limits schedule.Limits
	// windows are by their names. Opens is the window of what claims are for.
	windows map[string]window.Window
	opens   map[string]string
	// paces are how many nodes are worked on at a time for each of what claims are for: a plan of Drydock's has such a pace.
	paces map[string]int
	// frozen: no slot is granted.
	frozen bool
	// unknown is why the system's own limits cannot be told.
	unknown error
}

// over are limits of which each that a person has given takes the place of the system's.
func (s slots) over(given schedule.Limits) slots {
	if !given.MaxParallel.IsZero() {
		s.limits.MaxParallel, s.frozen, s.unknown = given.MaxParallel, false, nil
	}
	if !given.MaxUnavailable.IsZero() {
		s.limits.MaxUnavailable = given.MaxUnavailable
	}
	s.limits = s.limits.WithDefaults()
	return s
}

// refusals are why the scheduler would not grant a slot to the claims that ask, where all others that are out hold one.
func (s slots) refusals(c Cluster, all, asked []Claim) (map[string]string, error) {
	if s.unknown != nil {
		return nil, s.unknown
	}
	horizon, err := s.horizon(c.At)
	if err != nil {
		return nil, err
	}
	in := schedule.Input{Limits: s.limits, Now: c.At, Horizon: horizon}
	if s.frozen {
		in.Freezes = []schedule.Freeze{{By: "the system's configuration"}}
	}
	why := map[string]string{}
	asks := map[string]bool{}
	for _, claim := range asked {
		asks[claim.Key()] = true
	}
	busy := map[string]int{}
	for _, claim := range all {
		if claim.Out && !asks[claim.Key()] {
			in.Granted = append(in.Granted, schedule.Grant{RequestID: claim.Key(), Node: claim.Node, Requestor: cmp.Or(claim.requestor, claim.For)})
			busy[claim.For]++
		}
	}
	for _, claim := range slices.SortedStableFunc(slices.Values(asked), byAsked) {
		if pace, has := s.paces[claim.For]; has && busy[claim.For] >= pace {
			why[claim.Key()] = fmt.Sprintf("%s: strategy.maxParallel %d of the plan", claim.For, pace)
			continue
		}
		busy[claim.For]++
		request := schedule.Request{ID: claim.Key(), Node: claim.Node, Requestor: cmp.Or(claim.requestor, claim.For), Created: claim.Asked}
		if name, has := s.opens[claim.For]; has {
			request.Windows = []string{name}
		}
		in.Pending = append(in.Pending, request)
	}
	in.Observed = observe(c, all, asked)
	for _, refused := range schedule.Decide(in).Refused {
		why[refused.Request.ID] = refused.Reason
	}
	return why, nil
}

func byAsked(a, b Claim) int { return a.Asked.Compare(b.Asked) }

// observe is what the scheduler would see of the cluster, if the system had not taken the nodes that are asked for.
func observe(c Cluster, all, asked []Claim) *schedule.Observation {
	taken, known := map[string]bool{}, map[string]bool{}
	for _, claim := range asked {
		taken[claim.Node] = taken[claim.Node] || claim.Out
		known[claim.Node] = true
	}
	for _, claim := range all {
		known[claim.Node] = true
	}
	o := &schedule.Observation{At: c.At, Nodes: len(c.Nodes), Facts: map[string]schedule.NodeFacts{}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		out := nodestate.IsUnavailable(n) && !taken[n.Name]
		if out {
			o.Unavailable++
			if !known[n.Name] {
				o.Others = append(o.Others, schedule.UnavailableNode{Node: n.Name, Why: nodestate.WhyUnavailable(n)})
			}
		}
		if known[n.Name] {
			o.Facts[n.Name] = schedule.NodeFacts{Unavailable: out}
			delete(known, n.Name)
		}
	}
	for node := range known {
		o.Facts[node] = schedule.NodeFacts{Missing: true}
	}
	return o
}

// horizon is when the windows are open.
func (s slots) horizon(at time.Time) (*window.Horizon, error) {
	if len(s.windows) == 0 {
		return nil, nil
	}
	h := &window.Horizon{At: at, Windows: map[string]window.Openings{}}
	var wrong []error
	for name, w := range s.windows {
		schedule, err := w.Compile()
		if err != nil {
			wrong = append(wrong, fmt.Errorf("window %s: %w", name, err))
			continue
		}
		openings, until := schedule.Openings(at, at.Add(looksAhead), 100)
		h.Windows[name] = window.Openings{Timezone: schedule.Zone(), Until: until, Openings: openings}
	}
	return h, errors.Join(wrong...)
}
