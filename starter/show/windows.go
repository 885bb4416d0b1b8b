package show

import (
	"cmp"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/starter/terminal"
)

// Windows are the windows of the worker's configuration.
type Windows struct {
	// Zones is the time zone data by which the worker knows when they are open.
	Zones   string   `json:"zones"`
	Windows []Window `json:"windows"`
}

// Window is one of them, or one that limits name and the worker's configuration lacks.
type Window struct {
	Name string `json:"name"`
	// Missing: the worker's configuration does not have it, and nothing is granted that needs it.
	Missing bool `json:"missing,omitempty"`
	// Timezone is the zone whose clocks count.
	Timezone string `json:"timezone,omitempty"`
	Open     bool   `json:"open"`
	// Openings are the present one, if it is open, and the next ones.
	Openings []window.Opening `json:"openings"`
	// Cluster: the limit of the whole cluster names it, Groups which of the scheduler's groups do.
	Cluster bool     `json:"cluster,omitempty"`
	Groups  []string `json:"groups,omitempty"`
}

// WindowsOf are windows with the limits that name them, all or only the one of a name.
func WindowsOf(horizon window.Horizon, limits schedule.Limits, only string) Windows {
	groups := map[string][]string{}
	for _, g := range limits.Groups {
		for _, name := range g.Windows {
			groups[name] = append(groups[name], g.Name)
		}
	}
	names := slices.Concat(slices.Collect(maps.Keys(horizon.Windows)), limits.Windows, slices.Collect(maps.Keys(groups)))
	slices.Sort(names)
	all := Windows{Zones: horizon.Zones, Windows: []Window{}}
	for _, name := range slices.Compact(names) {
		if only != "" && name != only {
			continue
		}
		of, configured := horizon.Windows[name]
		w := Window{
			Name: name, Missing: !configured, Timezone: of.Timezone, Openings: of.Openings,
			Cluster: slices.Contains(limits.Windows, name), Groups: groups[name],
		}
		if w.Openings == nil {
			w.Openings = []window.Opening{}
		}
		w.Open = len(w.Openings) > 0 && w.Openings[0].Has(horizon.At)
		all.Windows = append(all.Windows, w)
	}
	return all
}

// WindowsDiffer says that the scheduler goes by other windows than those that a worker has; empty where it does not.
func WindowsDiffer(horizon window.Horizon, known *api.WindowsKnown, now time.Time) string {
	if known == nil || known.Digest == horizon.Digest {
		return ""
	}
	text := "these are the windows of the worker that answered, and the scheduler goes by others"
	if !known.Since.IsZero() {
		text += ": those of a worker that was started at " + terminal.Clock(known.Since, now)
	}
	return text + "; give all workers one configuration"
}

// WindowList shows windows to people.
func WindowList(w io.Writer, all Windows, now time.Time) {
	if len(all.Windows) == 0 {
		terminal.Print(w, "The worker's configuration has no windows.\n")
		return
	}
	r := terminal.NewRows(w, "WINDOW", "TIMEZONE", "OPEN", "FROM", "UNTIL", "USED BY")
	for _, one := range all.Windows {
		open, first := yesNo(one.Open), window.Opening{}
		if one.Missing {
			open = "not configured"
		}
		if len(one.Openings) > 0 {
			first = one.Openings[0]
		}
		r.Add(one.Name, cmp.Or(one.Timezone, "-"), open, clockOr(first.From, now), clockOr(first.Until, now), usedBy(one))
		for _, o := range one.Openings[min(1, len(one.Openings)):] {
			r.Add("", "", "", clockOr(o.From, now), clockOr(o.Until, now), "")
		}
	}
	r.Done()
}

func clockOr(t, now time.Time) string { return cmp.Or(terminal.Clock(t, now), "-") }

func usedBy(w Window) string {
	var users []string
	if w.Cluster {
		users = append(users, "cluster")
	}
	for _, group := range w.Groups {
		users = append(users, "group "+group)
	}
	return cmp.Or(strings.Join(users, ", "), "-")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
