package plan

import (
	"math"
	"slices"
	"time"
)

// Pace is how fast a plan goes, by when the latest of its nodes were done.
type Pace struct {
	// Nodes is of how many that is, and Since when the first of them was done.
	Nodes int       `json:"nodes"`
	Since time.Time `json:"since,omitzero"`
	// Hours are how many were done in each of the last hours, the present one last; none where not even the ends of one hour are known.
	Hours []int `json:"hours"`
	// Expected is when the plan will have ended if it goes on so, between Earliest and Latest; absent where that cannot be said.
	Expected time.Time `json:"expected,omitzero"`
	Earliest time.Time `json:"earliest,omitzero"`
	Latest   time.Time `json:"latest,omitzero"`
}

const (
	// PaceOfLast is of how many ends a pace is at most: of the latest. leastEnds is of how many an end is expected at least.
	PaceOfLast = 300
	leastEnds  = 3
	// paceHours bounds the hours of a pace.
	paceHours = 24
)

// PaceOf is the pace of a plan whose latest nodes were done at some times, all of them or of more, while some run and some are left, those that
// run included. The end is expected by the mean of the times between two ends, and between it and twice their standard deviation over all that are left. It is
// expected of no plan of which too few are done, also beside those that run together, nor where the latest end is longer ago than the pace would
// have it: then something is in its way.
func PaceOf(done []time.Time, all bool, running, left int, now time.Time) Pace {
	p := Pace{Nodes: len(done), Hours: []int{}}
	if len(done) == 0 {
		return p
	}
	done = slices.SortedFunc(slices.Values(done), time.Time.Compare)
	first, last := done[0], done[len(done)-1]
	hours := max(int(now.Sub(first)/time.Hour), 0)
	if all {
		hours++ // before the first there was nothing
	}
	p.Since, p.Hours = first, make([]int, min(hours, paceHours))
	for _, at := range done {
		if ago := max(int(now.Sub(at)/time.Hour), 0); ago < len(p.Hours) {
			p.Hours[len(p.Hours)-1-ago]++
		}
	}
	if left == 0 || len(done) < max(leastEnds, 2*running) {
		return p
	}
	n := float64(len(done) - 1)
	mean := last.Sub(first).Seconds() / n
	var squares float64
	for i := 1; i < len(done); i++ {
		off := done[i].Sub(done[i-1]).Seconds() - mean
		squares += off * off
	}
	deviation := math.Sqrt(squares / n)
	if mean <= 0 || now.Sub(last).Seconds() > 3*(mean+deviation)+mean*float64(running) {
		return p
	}
	at := func(seconds float64) time.Time {
		t := last.Add(time.Duration(seconds * float64(time.Second)))
		if t.Before(now) {
			t = now
		}
		return t
	}
	middle, spread := mean*float64(left), 2*deviation*math.Sqrt(float64(left))
	// Full minutes: those that are expected are not over yet.
	p.Earliest = at(middle - spread).Truncate(time.Minute)
	p.Expected, p.Latest = at(middle).Add(time.Minute-1).Truncate(time.Minute), at(middle+spread).Add(time.Minute-1).Truncate(time.Minute)
	return p
}
