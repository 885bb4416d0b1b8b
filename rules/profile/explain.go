package profile

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/profile/state"
)

// Seen is since when a check says the same.
type Seen struct {
	Holds  bool      `json:"holds,omitempty"`
	Failed bool      `json:"failed,omitempty"`
	At     time.Time `json:"at"`
}

// History is by profile and check of a node since when it says the same.
type History map[string]Seen

// Fails reports whether the check of a profile failed when it was evaluated last.
func (h History) Fails(profile, instance string) bool { return h[seenKey(profile, instance)].Failed }

func seenKey(profile, instance string) string { return profile + "/" + instance }

// After is the history with one more evaluation. Checks that were not asked are forgotten.
func (h History) After(e Evaluation, now time.Time) History {
	next := History{}
	for _, p := range e.Profiles {
		for _, t := range p.Transitions {
			for _, o := range t.Checks {
				key := seenKey(p.Profile, o.Instance)
				seen, known := h[key]
				if !known || seen.Holds != o.Holds || seen.Failed != (o.Error != "") {
					seen = Seen{Holds: o.Holds, Failed: o.Error != "", At: now.UTC()}
				}
				next[key] = seen
			}
		}
	}
	return next
}

// Explain says of a node in words which checks hold, which do not, why, and since when, a line each. Times are in the zone of
// now. What a check itself knows of since when counts more than when it was first seen so.
func (e Evaluation) Explain(h History, now time.Time) []string {
	if e.Problem != "" {
		return []string{e.Node + ": " + e.Problem}
	}
	lines := []string{fmt.Sprintf("%s is %s", e.Node, e.Label)}
	if len(e.Profiles) == 0 {
		lines = append(lines, "  its label names no profile that is known")
	}
	for _, p := range e.Profiles {
		lines = append(lines, p.explain(h, now)...)
	}
	return lines
}

func (p Evaluated) explain(h History, now time.Time) []string {
	if p.Unknown {
		line := "  profile " + p.Profile + ": the configuration does not have it"
		if p.State != "" {
			line += fmt.Sprintf("; it stays %s until it is there again, or not in the label", p.State)
		}
		return []string{line}
	}
	lines := []string{fmt.Sprintf("  profile %s: %s since %s (%s)", p.Profile, p.State, moment.Clock(p.Since, now), period.Age(now.Sub(p.Since)))}
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	switch {
	case p.Busy != nil && !p.Busy.Until.IsZero():
		add("    to %s was not carried out: %s; tried again at %s", p.Busy.To, p.Busy.Failed, moment.Clock(p.Busy.Until, now))
	case p.Busy != nil && p.Busy.Enter:
		add("    its triggers on entering %s run", p.Busy.To)
	case p.Busy != nil:
		add("    on its way to %s", p.Busy.To)
	case len(p.Enter) > 0:
		add("    runs on entering: %s", strings.Join(p.Enter, ", "))
	case len(p.Transitions) == 0:
		add("    no transition leads out of this state")
	}
	for _, d := range p.Notify {
		add("    sends %s: %s", d.Instance, d.Why)
	}
	for _, t := range p.Transitions {
		add("    to %s: %s: %s", t.Next, t.Check, t.verdict(p.State))
		for _, o := range t.Checks {
			add("      %s", o.explain(h[seenKey(p.Profile, o.Instance)], now))
		}
	}
	return lines
}

func (t Considered) verdict(from state.State) string {
	switch {
	case t.Error != "":
		return "is not known: " + t.Error
	case t.Refused != "":
		return "holds, and has to wait: " + t.Refused
	case t.Chosen && t.Next == from:
		return "holds, and leads to the same state: nothing is done"
	case t.Chosen:
		return "holds, and is done"
	case t.Holds:
		return "holds, and one before it is done"
	}
	return "does not hold"
}

func (o Outcome) explain(seen Seen, now time.Time) string {
	word := "no "
	switch {
	case o.Error != "":
		word = "?  "
	case o.Holds:
		word = "yes"
	}
	line := fmt.Sprintf("%s %s (%s)", word, o.Instance, o.Kind)
	if why := o.Error + o.Reason; why != "" {
		line += ": " + why
	}
	since := o.Since
	if since.IsZero() {
		since = seen.At
	}
	if !since.IsZero() {
		line += ", since " + moment.Clock(since, now)
	}
	if !o.Until.IsZero() {
		line += ", until " + moment.Clock(o.Until, now)
	}
	return line
}
