package plan

import (
	"cmp"
	"fmt"
	"time"

	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/schedule"
)

// Progress is how far a plan has come, besides the states of its nodes.
type Progress struct {
	// CanaryPassed: the canary is over, and the others may go.
	CanaryPassed bool `json:"canaryPassed,omitempty"`
	// Approved: somebody approved, for after the canary. A canary that fails has to be approved again.
	Approved bool `json:"approved,omitempty"`
	// LastEnd is when a node was last over.
	LastEnd time.Time `json:"lastEnd,omitzero"`
	// Paused: nothing is begun until somebody resumes the plan.
	Paused bool `json:"paused,omitempty"`
	// MaxParallel takes the place of the strategy's, if somebody has set another pace.
	MaxParallel schedule.Amount `json:"maxParallel,omitzero"`
	// CreatedAt is when the plan began. It is not part of the state: the caller sets it.
	CreatedAt time.Time `json:"-"`
}

// Decision is what a plan does next.
type Decision struct {
	// Start are the nodes to begin now, by their places.
	Start []int
	// CanaryPassed: the canary has passed with this decision.
	CanaryPassed bool
	// Pause is why the plan has to pause, empty if it has not.
	Pause string
	// End: nothing is left to do.
	End bool
	// Waits says in words what keeps further nodes from being begun; empty if only their turn does.
	Waits string
	// WaitsForApproval: somebody has to approve.
	WaitsForApproval bool
	// Until is when to decide again, if nothing happens before; zero is never.
	Until time.Time
	// Over is when the time of BeginWithin is over, and it is to be decided again; zero if there is none.
	Over time.Time
}

// AwaitsApproval is what a plan waits for whose canary somebody has to approve.
const AwaitsApproval = "approval after the canary"

// PausedWaits is what a paused plan waits for: why and by whom is the message of its phase.
const PausedWaits = "paused"

// AwaitsStage begins what a plan waits for whose stage somebody has to set: the stages follow.
const AwaitsStage = "its stage to be set: "

// MaxAtOnce bounds the nodes that a plan works on at a time, whatever its strategy says: a server takes 2,000 children of a
// run, and keeps room for other questions than when each of them ends.
const MaxAtOnce = 500

// Decide returns which nodes go next. Nodes are in the order of Sort.
func Decide(s Strategy, nodes []Node, p Progress, now time.Time) Decision {
	counts := Count(nodes)
	if counts.Waiting == 0 && counts.Running == 0 {
		return Decision{End: true}
	}
	over := p.CreatedAt.Add(s.BeginWithin.Std())
	switch {
	case s.BeginWithin == 0 || counts.Waiting == 0:
		return next(s, nodes, counts, p, now)
	case over.After(now):
		d := next(s, nodes, counts, p, now)
		d.Over = over
		return d
	case counts.Running == 0:
		return Decision{End: true}
	default:
		return Decision{Waits: "the last nodes: the time of beginWithin is over"}
	}
}

// Pace is how many nodes are worked on at a time.
func (p Progress) Pace(s Strategy) schedule.Amount { return cmp.Or(p.MaxParallel, s.MaxParallel) }

// Places is how many more nodes the pace allows to be worked on; less than 0 if there are too many already.
func (p Progress) Places(s Strategy, c Counts) int {
	return min(p.Pace(s).Of(c.Total), MaxAtOnce) - c.Running
}

// next returns which nodes go next, of a plan that has not ended.
func next(s Strategy, nodes []Node, counts Counts, p Progress, now time.Time) Decision {
	if p.Paused {
		return Decision{Waits: PausedWaits}
	}
	failed := unforgiven(nodes)
	if failed > s.MaxFailures.Of(counts.Total) {
		return Decision{Pause: fmt.Sprintf("%s failed: maxFailures is %s", number.Of(counts.Failures(), "node"), s.MaxFailures)}
	}
	places := p.Places(s, counts)
	var d Decision
	if s.Canary != nil && !p.CanaryPassed {
		left, waits := canary(*s.Canary, counts, failed, p, now)
		if waits != nil {
			return *waits
		}
		if d.CanaryPassed = left == 0; !d.CanaryPassed {
			places = min(places, left-counts.Running)
		}
	}
	if counts.Waiting == 0 || places <= 0 {
		return d
	}
	if next := p.LastEnd.Add(s.PauseBetween.Std()); s.PauseBetween > 0 && !p.LastEnd.IsZero() && next.After(now) {
		d.Waits, d.Until = "pauseBetween", next
		return d
	}
	d.pick(s, nodes, places, now)
	return d
}

// canary returns how many nodes of the canary have not ended, 0 when it has passed, or what the plan waits for.
func canary(c Canary, counts Counts, failed int, p Progress, now time.Time) (left int, waits *Decision) {
	size := min(c.Nodes, counts.Total-counts.Skipped)
	over := counts.Done + counts.Failures()
	if failed > 0 {
		return 0, &Decision{Pause: fmt.Sprintf("%s of the canary failed", number.Of(failed, "node"))}
	}
	if over < size {
		return size - over, nil
	}
	if counts.Running > 0 {
		return 0, &Decision{Waits: "the canary's nodes"}
	}
	if until := p.LastEnd.Add(c.Soak.Std()); until.After(now) {
		return 0, &Decision{Waits: "the canary's soak", Until: until}
	}
	if c.Approval && !p.Approved {
		return 0, &Decision{Waits: AwaitsApproval, WaitsForApproval: true}
	}
	return 0, nil
}

// pick chooses the first nodes whose turn it is. With ByZone only those of one zone go at a time.
func (d *Decision) pick(s Strategy, nodes []Node, places int, now time.Time) {
	zone, fixed := "", false
	if s.Order == ByZone {
		for i := range nodes {
			if nodes[i].State == Running {
				zone, fixed = nodes[i].Zone, true
				break
			}
		}
	}
	var earliest int64
	otherZone := false
	for i := range nodes {
		n := &nodes[i]
		if n.State != Waiting {
			continue
		}
		if n.NotBefore > now.Unix() {
			if earliest == 0 || n.NotBefore < earliest {
				earliest = n.NotBefore
			}
			continue
		}
		if s.Order == ByZone {
			if fixed && n.Zone != zone {
				otherZone = true
				continue
			}
			zone, fixed = n.Zone, true
		}
		if d.Start = append(d.Start, i); len(d.Start) == places {
			return
		}
	}
	switch {
	case len(d.Start) > 0:
	case otherZone:
		d.Waits = "the last nodes of zone " + zone
	case earliest > 0:
		d.Waits = "blocked nodes, which come back later"
	}
	if earliest > 0 {
		d.Until = time.Unix(earliest, 0)
	}
}

// Waves are the names of the nodes that wait, in the order and the groups in which they go if none of them fails: the
// canary first, then as many at a time as may.
func Waves(s Strategy, nodes []Node) [][]string {
	left := make([]Node, len(nodes))
	copy(left, nodes)
	Sort(s.Order, left)
	var waves [][]string
	p := Progress{}
	now := time.Unix(0, 0)
	s.PauseBetween, s.BeginWithin = 0, 0
	if s.Canary != nil {
		c := *s.Canary
		c.Soak, c.Approval = 0, false
		s.Canary = &c
	}
	for {
		d := Decide(s, left, p, now)
		p.CanaryPassed = p.CanaryPassed || d.CanaryPassed
		if len(d.Start) == 0 {
			return waves
		}
		var wave []string
		for _, i := range d.Start {
			left[i].State = Done
			wave = append(wave, left[i].Name)
		}
		waves = append(waves, wave)
	}
}
