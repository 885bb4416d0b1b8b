package record

import (
	"slices"
	"time"
)

// PhaseDuration is one stay in a phase. A maintenance whose node was given back is in some phases several times.
type PhaseDuration struct {
	Phase string
	At    time.Time
	Lasts time.Duration
}

// Durations are the stays in the phases, in order. They fill the time from the beginning to the end, or to AsOf of a
// maintenance that has not ended, so that they sum up to Total: what was before the first change of phase belongs to the
// first phase, and an entry that is older than the one before counts as no older.
func Durations(r Record) []PhaseDuration {
	var stays []PhaseDuration
	at := r.CreatedAt
	for i, p := range r.Phases {
		if i > 0 {
			at = latest(at, p.At)
		}
		if n := len(stays); n > 0 && stays[n-1].Phase == p.Phase {
			continue
		}
		stays = append(stays, PhaseDuration{Phase: p.Phase, At: at})
	}
	end := lastMoment(r)
	for i := range stays {
		until := end
		if i+1 < len(stays) {
			until = stays[i+1].At
		}
		stays[i].Lasts = until.Sub(stays[i].At)
	}
	return stays
}

// Total is the time from the beginning to the end, or to AsOf of a maintenance that has not ended.
func Total(r Record) time.Duration { return lastMoment(r).Sub(r.CreatedAt) }

// lastMoment is never before anything that the record says happened, whatever its end claims to be.
func lastMoment(r Record) time.Time {
	last := latest(r.CreatedAt, r.EndedAt)
	if !r.Ended() {
		last = latest(last, r.AsOf)
	}
	for i, p := range r.Phases {
		if i > 0 {
			last = latest(last, p.At)
		}
	}
	return last
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// emptying are the phases in which pods can be in the way.
var emptying = []string{"Draining", "WaitingForPods"}

// Blocked is how long a pod was in the way: until it no longer was, or else until the node was no longer being emptied.
func Blocked(r Record, b Blocker) time.Duration {
	end := lastMoment(r)
	if !b.Until.IsZero() {
		end = earliest(end, b.Until)
	} else {
		for _, stay := range Durations(r) {
			left := stay.At.Add(stay.Lasts)
			if slices.Contains(emptying, stay.Phase) && !left.Before(b.Since) {
				end = left
				break
			}
		}
	}
	return max(0, end.Sub(latest(b.Since, r.CreatedAt)))
}

// Observe keeps account of what is in the way: what a look at the node found is added to what was known, and what it no
// longer found gets its Until. Of more than MaxBlockers those go first that were in the way for the shortest time and no
// longer are; dropped counts them.
func Observe(known, found []Blocker, at time.Time) (all []Blocker, dropped int) {
	open := map[string]int{}
	for i, b := range known {
		if b.Until.IsZero() {
			open[b.Pod] = i
		}
	}
	all = slices.Clone(known)
	for _, b := range found {
		i, before := open[b.Pod]
		if !before {
			all = append(all, b)
			continue
		}
		delete(open, b.Pod)
		since := all[i].Since
		all[i] = b
		all[i].Since = earliest(since, b.Since)
	}
	for _, i := range open {
		all[i].Until = at
	}
	for len(all) > MaxBlockers {
		all = slices.Delete(all, leastOf(all), leastOf(all)+1)
		dropped++
	}
	return all, dropped
}

// leastOf is the blocker that says least: the shortest of those that are over, or else the newest.
func leastOf(all []Blocker) int {
	least := len(all) - 1
	for i, b := range all {
		over, shortest := !b.Until.IsZero(), all[least]
		if over && (shortest.Until.IsZero() || b.Until.Sub(b.Since) < shortest.Until.Sub(shortest.Since)) {
			least = i
		}
	}
	return least
}
