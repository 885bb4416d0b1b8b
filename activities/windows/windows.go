// Package windows returns to workflows when the windows of the worker's configuration are open: time zone data is a worker's
// own.
package windows

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
	_ "time/tzdata" // the time zones, on machines without them

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/window"
)

const (
	// ahead is how far ahead openings are computed for a scheduler, at most mostOpenings of each window: what is carried from
	// run to run stays small.
	ahead        = 9 * 24 * time.Hour
	mostOpenings = 32
	// farAhead is the same where somebody asks for the next openings of a window.
	farAhead = 2 * 366 * 24 * time.Hour
)

// Activities compute openings.
type Activities struct {
	schedules map[string]window.Schedule
	digest    string
	zones     string
}

// New checks the windows of a configuration; the error joins a line per wrong field.
func New(windows map[string]window.Window) (*Activities, error) {
	a := &Activities{schedules: map[string]window.Schedule{}, digest: window.Digest(windows), zones: zones()}
	for _, name := range slices.Sorted(maps.Keys(windows)) {
		schedule, err := windows[name].Compile()
		if err != nil {
			return nil, fmt.Errorf("windows.%s: %w", name, err)
		}
		a.schedules[name] = schedule
	}
	return a, nil
}

// ComputeInput is what a scheduler asks.
type ComputeInput struct {
	// At is the instant from which on openings are wanted.
	At time.Time `json:"at"`
	// Digest is that of the windows that are wanted; empty is any worker's.
	Digest string `json:"digest,omitempty"`
}

// ComputeOpenings are the openings of all windows, for some days ahead. Errors: OtherWindows, after which another worker is
// to be asked.
func (a *Activities) ComputeOpenings(_ context.Context, in ComputeInput) (window.Horizon, error) {
	if in.Digest != "" && in.Digest != a.digest {
		return window.Horizon{}, temporal.NewApplicationError("the worker's windows are others than those asked for", api.ErrorOtherWindows)
	}
	return a.horizon(slices.Sorted(maps.Keys(a.schedules)), in.At, ahead, mostOpenings), nil
}

// ListWindows are the next openings of all windows, or of one, as somebody asks for them.
func (a *Activities) ListWindows(_ context.Context, in api.WindowsInput) (window.Horizon, error) {
	names := slices.Sorted(maps.Keys(a.schedules))
	if in.Name != "" {
		if _, there := a.schedules[in.Name]; !there {
			return window.Horizon{}, temporal.NewNonRetryableApplicationError(
				fmt.Sprintf("the worker's configuration has no window %q (windows)", in.Name), api.ErrorInvalidSpec, nil)
		}
		names = []string{in.Name}
	}
	return a.horizon(names, in.At, farAhead, in.Next), nil
}

func (a *Activities) horizon(names []string, at time.Time, ahead time.Duration, most int) window.Horizon {
	h := window.Horizon{At: at, Zones: a.zones, Digest: a.digest, Windows: map[string]window.Openings{}}
	for _, name := range names {
		schedule := a.schedules[name]
		openings, known := schedule.Openings(at, at.Add(ahead), most)
		if openings == nil {
			openings = []window.Opening{}
		}
		h.Windows[name] = window.Openings{Timezone: schedule.Zone(), Until: known, Openings: openings}
	}
	return h
}
