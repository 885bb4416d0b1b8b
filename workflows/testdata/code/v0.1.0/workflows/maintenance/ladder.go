package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"fmt"
	"slices"
	"time"
)

// ladder is where a drain is on its escalation.
type ladder struct {
	Rungs []spec.Rung `json:"rungs,omitempty"`
	// Began is when its clock started, Next the rung whose time comes next, Asked are those that somebody wants now.
	Began time.Time       `json:"began,omitzero"`
	Next  int             `json:"next,omitempty"`
	Asked []api.RungTaken `json:"asked,omitempty"`
}

// due is the rung whose time comes next, and how long until then.
func (l *ladder) due(now time.Time) (rung spec.Rung, left time.Duration, ok bool) {
	if l.Next >= len(l.Rungs) {
		return spec.Rung{}, 0, false
	}
	rung = l.Rungs[l.Next]
	return rung, rung.After.Std() - now.Sub(l.Began), true
}

// lateTry is how long a drain tries before a rung whose time passed while nobody could drain.
const lateTry = 5 * time.Minute

// catchUp moves the clock on where the next rung's time passed without a drain, as when no worker ran: an honest try
// comes before every rung, as long as the one it was to have, and the later rungs keep their distance.
func (l *ladder) catchUp(now time.Time) {
	rung, left, ok := l.due(now)
	if !ok || left >= 0 {
		return
	}
	try := rung.After.Std()
	if l.Next > 0 {
		try -= l.Rungs[l.Next-1].After.Std()
	}
	l.shift(min(try, lateTry) - left)
}

// takeDue is the next rung where its time has come, with all others of the same time: one clock says when that is.
func (l *ladder) takeDue(now time.Time) []spec.Rung {
	first, left, ok := l.due(now)
	if !ok || left > 0 {
		return nil
	}
	due := l.left()
	if end := slices.IndexFunc(due, func(r spec.Rung) bool { return r.After != first.After }); end >= 0 {
		due = due[:end]
	}
	l.Next += len(due)
	return slices.Clone(due)
}

// shift takes a time out of the count, in which nothing could be done.
func (l *ladder) shift(d time.Duration) { l.Began = l.Began.Add(d) }

// takeNext takes the next rung that is not the SLA's off the ladder: the SLA keeps its own time.
func (l *ladder) takeNext() {
	for i := l.Next; i < len(l.Rungs); i++ {
		if l.Rungs[i].Do != spec.ExpireSLA {
			l.Rungs = slices.Delete(l.Rungs, i, i+1)
			return
		}
	}
}

// ask has a rung taken now.
func (l *ladder) ask(rung api.RungTaken) { l.Asked = append(l.Asked, rung) }

// isAsked tells that somebody wants a rung now.
func (l *ladder) isAsked() bool { return len(l.Asked) > 0 }

// takeAsked is the first of the rungs that somebody wants now.
func (l *ladder) takeAsked() api.RungTaken {
	first := l.Asked[0]
	l.Asked = l.Asked[1:]
	return first
}

// killAt is when the rung Kill is due, if it is still to come: pods are deleted early enough before it to end in their
// own time.
func (l *ladder) killAt() *time.Time {
	for _, rung := range l.left() {
		if rung.Do == spec.Kill {
			at := l.Began.Add(rung.After.Std())
			return &at
		}
	}
	return nil
}

func (l *ladder) left() []spec.Rung { return l.Rungs[min(l.Next, len(l.Rungs)):] }

// choose is the rung that is asked for: the named one, or the next of the plan.
func (l *ladder) choose(p api.Escalate) (string, error) {
	if p.Do != "" {
		return p.Do, spec.KnownRung(p.Do)
	}
	skip := 0
	for _, asked := range l.Asked {
		if asked.Planned {
			skip++
		}
	}
	for _, rung := range l.left() {
		if rung.Do == spec.ExpireSLA {
			continue
		}
		if skip == 0 {
			return rung.Do, nil
		}
		skip--
	}
	return "", fmt.Errorf(`no rung is left: name one with {"do": "%s"}`, spec.BypassBudget)
}
