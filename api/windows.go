package api

import (
	"maps"
	"slices"
	"time"

	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
)

// WindowsChanged is the signal to the scheduler that the windows of a worker's configuration are not those whose openings
// it knows.
type WindowsChanged struct {
	// Digest is that of the worker's windows.
	Digest string `json:"digest"`
	// Since is when the worker was started: of workers with different windows, the one that was started last counts.
	Since time.Time `json:"since,omitzero"`
}

// WindowsKnown says what the scheduler's decisions about windows rest on.
type WindowsKnown struct {
	// At is since when their openings are known, Zones the time zone data that they were computed with.
	At    time.Time `json:"at"`
	Zones string    `json:"zones"`
	// Digest identifies the windows of a configuration. Since is when the worker was started that has them, zero if none
	// said so: then they are some worker's.
	Digest string    `json:"digest"`
	Since  time.Time `json:"since,omitzero"`
}

// WindowsInput asks for the windows of the worker's configuration and their next openings.
type WindowsInput struct {
	// Name is the only window to tell of; empty is all.
	Name string `json:"name,omitempty"`
	// Next is how many openings to tell, MaxNextOpenings at most; 0 is DefaultNextOpenings.
	Next int `json:"next,omitempty"`
	// At is the time from which on; the workflow fills it in.
	At time.Time `json:"at,omitzero"`
}

// DefaultNextOpenings and MaxNextOpenings are how many openings of each window are listed.
const (
	DefaultNextOpenings = 3
	MaxNextOpenings     = 100
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
