package maintenance

import (
	"fmt"
	"slices"
	"time"

	"drydock/api"
	"drydock/rules/spec"
)

// ladder is where a drain is on its escalation.
type ladder struct {
	rungs []spec.Rung
	// began is when its clock started, next the rung whose time comes next, asked are those that somebody wants now.
	began time.Time
	next  int
	asked []api.RungTaken
}

// due is the rung whose time comes next, and how long until then.
func (l *ladder) due(now time.Time) (rung spec.Rung, left time.Duration, ok bool) {
	if l.next >= len(l.rungs) {
		return spec.Rung{}, 0, false
	}
	rung = l.rungs[l.next]
	return rung, rung.After.Std() - now.Sub(l.began), true
}

// lateTry is how long a drain tries before a rung whose time passed while nobody could drain.
const lateTry = 5 * time.Minute

// catchUp moves the clock on where the next rung's time passed without a drain, as when no worker ran: an honest try
// comes before every rung, and the later rungs keep their distance.
func (l *ladder) catchUp(now time.Time) {
	rung, left, ok := l.due(now)
	if ok && left < 0 {
		l.shift(min(rung.After.Std(), lateTry) - left)
	}
}

// shift takes a time out of the count, in which nothing could be done.
func (l *ladder) shift(d time.Duration) { l.began = l.began.Add(d) }

// takeNext takes the next rung that is not the SLA's off the ladder: the SLA keeps its own time.
func (l *ladder) takeNext() {
	for i := l.next; i < len(l.rungs); i++ {
		if l.rungs[i].Do != spec.ExpireSLA {
			l.rungs = slices.Delete(l.rungs, i, i+1)
			return
		}
	}
}

// ask has a rung taken now.
func (l *ladder) ask(rung api.RungTaken) { l.asked = append(l.asked, rung) }

// isAsked tells that somebody wants a rung now.
func (l *ladder) isAsked() bool { return len(l.asked) > 0 }

// takeAsked is the first of the rungs that somebody wants now.
func (l *ladder) takeAsked() api.RungTaken {
	first := l.asked[0]
	l.asked = l.asked[1:]
	return first
}

// killAt is when the rung Kill is due, if it is still to come: pods are deleted early enough before it to end in their
// own time.
func (l *ladder) killAt() *time.Time {
	for _, rung := range l.left() {
		if rung.Do == spec.Kill {
			at := l.began.Add(rung.After.Std())
			return &at
		}
	}
	return nil
}

func (l *ladder) left() []spec.Rung { return l.rungs[min(l.next, len(l.rungs)):] }

// choose is the rung that is asked for: the named one, or the next of the plan.
func (l *ladder) choose(p api.Escalate) (string, error) {
	if p.Do != "" {
		return p.Do, spec.KnownRung(p.Do)
	}
	skip := 0
	for _, asked := range l.asked {
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
