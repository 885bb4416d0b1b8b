package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/window"
)

// toTheMinute is how much longer something may be expected to take than its windows stay open: what takes as long as they
// are open is granted a moment after they have opened.
const toTheMinute = time.Minute

// hours knows, during one decision, whether the windows of a request are open.
type hours struct {
	now     time.Time
	horizon *window.Horizon
	trouble string
	// cluster are the windows of all requests, groups those of the nodes of some groups, by the group's name.
	cluster []string
	groups  map[string][]string

	// known are the combinations of windows and durations that were computed so far: thousands ask for the same. asked is the
	// latest, nil if no window applied.
	known map[string]*combined
	asked *combined
	next  time.Time
	// unknown: the horizon lacks openings that the decision needs.
	unknown bool
}

// combined are several windows that have to be open together for some time.
type combined struct {
	open bool
	// unknown: the horizon lacks them.
	unknown bool
	// why they are not open.
	why string
	// last is the last instant at which they are open long enough, zero if they are not; next is then the first, zero if
	// it is not known.
	last, next time.Time
}

func newHours(in Input) *hours {
	h := &hours{
		now: in.Now, horizon: in.Horizon, trouble: in.HorizonTrouble, cluster: in.Limits.Windows,
		groups: map[string][]string{}, known: map[string]*combined{},
	}
	for _, g := range in.Limits.Groups {
		if len(g.Windows) > 0 {
			h.groups[g.Name] = g.Windows
		}
	}
	return h
}

// allow reports whether all windows that apply to a request for a node in some groups are open, for as long as it takes.
func (h *hours) allow(r Request, groupKeys []string) bool {
	h.asked = nil
	if r.Remediation || r.IgnoreWindows != "" || len(h.cluster)+len(h.groups)+len(r.Windows) == 0 {
		return true
	}
	names := h.names(r, groupKeys)
	if len(names) == 0 {
		return true
	}
	key := strings.Join(names, " ") + " " + r.ExpectedDuration.String()
	c := h.known[key]
	if c == nil {
		c = h.combine(names, r.ExpectedDuration.Std())
		h.known[key] = c
	}
	h.asked = c
	return c.open
}

// names are the windows that apply, each once and in order.
func (h *hours) names(r Request, groupKeys []string) []string {
	names := slices.Concat(h.cluster, r.Windows)
	if len(h.groups) > 0 {
		for _, key := range groupKeys {
			names = append(names, h.groups[GroupName(key)]...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// closed refuses a request because of the windows that allow looked at last.
func (h *hours) closed(r Request) Refusal {
	code := Window
	if h.asked.unknown && h.trouble == "" {
		code = WindowUnknown
	}
	return Refusal{Request: r, Code: code, Reason: h.asked.why, Until: h.asked.next}
}

// wakeAtClose has the decision made again when the windows that allow looked at last close: from then on the request
// waits for them.
func (h *hours) wakeAtClose() {
	if h.asked != nil {
		h.wake(h.asked.last.Add(time.Second))
	}
}

// wake has the decision made again at an instant, if none is due sooner.
func (h *hours) wake(at time.Time) {
	if at.After(h.now) && (h.next.IsZero() || at.Before(h.next)) {
		h.next = at
	}
}

// report adds to a decision what it found out about windows.
func (h *hours) report(d Decision) Decision {
	d.Windows, d.Next, d.Unknown = len(h.known) > 0, h.next, h.unknown
	return d
}

// combine looks whether windows are open together, and says when they are next where they are not.
func (h *hours) combine(names []string, expected time.Duration) *combined {
	c := &combined{}
	var lists [][]window.Opening
	var closed []string
	var latest, known time.Time
	for _, name := range names {
		openings, why := h.openings(name)
		if why != "" {
			c.why, c.unknown = why, h.lacks(name)
			h.unknown = h.unknown || c.unknown
			return c
		}
		lists = append(lists, openings.Openings)
		if o, ok := window.At(openings.Openings, h.now); !ok || !o.Has(h.now) {
			closed = append(closed, opens(name, o, openings.Until))
			h.wake(o.From)
			latest = later(latest, o.From)
		}
		if known.IsZero() || openings.Until.Before(known) {
			known = openings.Until
		}
	}
	together := window.Intersect(lists...)
	if o, ok := window.At(together, h.now); ok && o.Has(h.now) {
		c.last = o.Until.Add(min(-time.Nanosecond, toTheMinute-expected))
		if c.open = !h.now.After(c.last); c.open {
			return c
		}
		h.wake(o.Until) // what is said of it is no longer so then
		closed = append(closed, fmt.Sprintf("%s at %s, before the expected %s are over",
			verb(names, "closes", "close"), instant(o.Until), period.Duration(expected)))
	}
	h.wake(known)
	c.why = strings.Join(closed, ", ")
	if c.next = h.fitting(together, expected); !c.next.IsZero() && !c.next.Equal(latest) {
		c.why += "; at the earliest " + instant(c.next)
	}
	return c
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lacks reports whether openings of a window are yet to be computed.
func (h *hours) lacks(name string) bool {
	if h.horizon == nil {
		return true
	}
	openings, there := h.horizon.Windows[name]
	return there && !h.now.Before(openings.Until)
}

// openings are those of a window, or why they are not known.
func (h *hours) openings(name string) (openings window.Openings, why string) {
	switch {
	case h.lacks(name) && h.trouble != "":
		return openings, fmt.Sprintf("when window %s opens could not be found out: %s", name, h.trouble)
	case h.lacks(name):
		return openings, fmt.Sprintf("when window %s opens is not known yet", name)
	}
	openings, there := h.horizon.Windows[name]
	if !there {
		return openings, fmt.Sprintf("the worker's configuration has no window %s (windows)", name)
	}
	return openings, ""
}

// opens says when a window that is closed opens next.
func opens(name string, next window.Opening, known time.Time) string {
	if next.From.IsZero() {
		return fmt.Sprintf("window %s does not open before %s", name, instant(known))
	}
	return fmt.Sprintf("window %s opens %s", name, instant(next.From))
}

// fitting is when the windows are open together next for as long as it takes; zero if that is not known.
func (h *hours) fitting(together []window.Opening, expected time.Duration) time.Time {
	for _, o := range together {
		if o.From.After(h.now) && o.Until.Sub(o.From)+toTheMinute >= expected {
			h.wake(o.From)
			return o.From
		}
	}
	return time.Time{}
}

// verb says of one window or several what they do.
func verb(names []string, one, several string) string {
	if len(names) == 1 {
		return "window " + names[0] + " " + one
	}
	return "windows " + strings.Join(names, ", ") + " " + several
}

// instant is a time as programs write it. What shows a reason to people converts it to their zone.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
