package migration

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
)

// Difference is what a system did, beside what Drydock would have done.
type Difference string

// Differences are all of them, in the order in which they are counted for people.
func Differences() []Difference { return []Difference{Same, Earlier, Later, Gone, Before} }

// The differences.
const (
	// Same: both took the node at the same time, within alike.
	Same Difference = "same"
	// Earlier: Drydock would have taken it earlier than the system did.
	Earlier Difference = "earlier"
	// Later: the system took it when Drydock would have let it wait.
	Later Difference = "later"
	// Sooner: Drydock would have taken it, and the system still waits.
	Sooner Difference = "sooner"
	// Waits: with both it waits.
	Waits Difference = "waits"
	// Gone: it was not taken by the system before it was no longer asked for.
	Gone Difference = "gone"
	// Before: it was out of service when the comparison began, or was never seen to wait and cannot be judged.
	Before Difference = "before"
)

// alike is how far apart two decisions may be that count as the same: that of one look at a cluster that changes meanwhile.
const alike = 30 * time.Second

// Compared is one claim, with what the system did and what Drydock would have done.
type Compared struct {
	Node string `json:"node"`
	For  string `json:"for"`
	// Asked is since when the node was wanted, as the system says or was seen first.
	Asked time.Time `json:"asked"`
	// System is when the system took it, and Ended when it gave it back.
	System time.Time `json:"system,omitzero"`
	Ended  time.Time `json:"ended,omitzero"`
	// Drydock is when Drydock would have taken it. Why is why it would not have when it was looked at last before the system took it.
	Drydock    time.Time  `json:"drydock,omitzero"`
	Why        string     `json:"why,omitempty"`
	Difference Difference `json:"difference"`
	// By is how much the two differ.
	By period.Duration `json:"by,omitzero"`
}

// Shadow follows a system, and decides beside it. It is made of the cluster as it is: what Drydock would have changed has not happened,
// so each of its decisions is compared by itself.
type Shadow struct {
	system System
	began  time.Time
	open   map[string]*Compared
	// Counts are how many claims ended, or were taken, with each difference.
	Counts map[Difference]int
}

// NewShadow follows a system from a first look on.
func NewShadow(s System) *Shadow {
	return &Shadow{system: s, open: map[string]*Compared{}, Counts: map[Difference]int{}}
}

// Look compares what there is now with what there was, and returns the claims of which something new is to be said, by their nodes.
func (s *Shadow) Look(c Cluster) ([]Compared, error) {
	first := s.began.IsZero()
	claims := s.system.Claims(c)
	var asked []Claim
	for _, claim := range claims {
		is, known := s.open[claim.Key()]
		if claim.Out && (first || known && !is.System.IsZero()) {
			continue // it was taken before
		}
		if known && (claim.Out || claim.Asked.IsZero()) {
			claim.Asked = is.Asked // since when it waited
		}
		asked = append(asked, claim)
	}
	refused, err := s.system.Refusals(c, asked)
	if err != nil {
		return nil, err
	}
	if first {
		s.began = c.At
	}
	all := s.end(c.At, claims)
	for _, claim := range claims {
		if s.follow(c.At, claim, first, refused[claim.Key()]) {
			all = append(all, *s.open[claim.Key()])
		}
	}
	slices.SortStableFunc(all, func(a, b Compared) int { return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.For, b.For)) })
	return all, nil
}

// end are the claims that the system has given back, or does not ask for any more.
func (s *Shadow) end(at time.Time, claims []Claim) (ended []Compared) {
	asks, out := map[string]bool{}, map[string]bool{}
	for _, claim := range claims {
		asks[claim.Key()], out[claim.Key()] = true, claim.Out
	}
	for key, is := range s.open {
		taken := !is.System.IsZero()
		if taken && out[key] || !taken && asks[key] {
			continue
		}
		is.Ended = at
		if !taken {
			is.Difference = Gone
			s.Counts[Gone]++
		}
		ended = append(ended, *is)
		delete(s.open, key)
	}
	return ended
}

// follow takes one claim in, with why Drydock would not grant it, and reports whether something is new.
func (s *Shadow) follow(at time.Time, claim Claim, first bool, why string) bool {
	key := claim.Key()
	is, known := s.open[key]
	if !known {
		is = &Compared{Node: claim.Node, For: claim.For, Asked: claim.Asked}
		if is.Asked.IsZero() {
			is.Asked = at
		}
		s.open[key] = is
	}
	switch {
	case !is.System.IsZero():
		return false
	case claim.Out && first:
		is.System, is.Difference = at, Before
		s.Counts[Before]++
		return true
	}
	before := *is
	is.Why = why
	if why == "" && is.Drydock.IsZero() {
		is.Drydock = at
	}
	if !claim.Out {
		is.Difference = Waits
		if !is.Drydock.IsZero() {
			is.Difference = Sooner
		}
		return !known || is.Difference != before.Difference || kindOf(is.Why) != kindOf(before.Why)
	}
	is.System = at
	switch {
	case is.Drydock.IsZero():
		is.Difference = Later
	case at.Sub(is.Drydock) > alike:
		is.Difference, is.By, is.Why = Earlier, period.Duration(at.Sub(is.Drydock)), ""
	default:
		is.Difference, is.Why = Same, ""
	}
	s.Counts[is.Difference]++
	return true
}

// kindOf is what a reason begins with: its numbers change more often than it does.
func kindOf(reason string) string {
	before, _, _ := strings.Cut(reason, ":")
	return before
}

// Waiting counts the claims that the system has not taken yet, and those of them that Drydock would have.
func (s *Shadow) Waiting() (waiting, sooner int) {
	for _, is := range s.open {
		if is.System.IsZero() {
			waiting++
		}
		if is.Difference == Sooner {
			sooner++
		}
	}
	return waiting, sooner
}
