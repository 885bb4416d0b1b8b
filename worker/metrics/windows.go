package metrics

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/rules/window"
)

// horizon is how far ahead openings are computed. One that is further away is not shown.
const horizon = 366 * 24 * time.Hour

var (
	descOpen = prometheus.NewDesc("drydock_window_open", "1 while the window is open.", []string{"window"}, nil)
	descNext = prometheus.NewDesc("drydock_window_next_opening_seconds", "Seconds until the window opens next, the present opening left out; absent if that is more than a year.", []string{"window"}, nil)
)

// Windows collects which windows of the configuration are open, and when they open next.
type Windows struct {
	names     []string
	schedules map[string]window.Schedule
	now       func() time.Time

	mu sync.Mutex
	// known are the present opening, or the next, and the one after it, until the first of them is over.
	known map[string][]window.Opening
	until map[string]time.Time
}

// NewWindows registers the metrics of the windows of a valid configuration.
func NewWindows(registry prometheus.Registerer, windows map[string]window.Window) error {
	w, err := newWindows(windows)
	if err != nil {
		return err
	}
	return registry.Register(w)
}

func newWindows(windows map[string]window.Window) (*Windows, error) {
	w := &Windows{
		names: slices.Sorted(maps.Keys(windows)), schedules: map[string]window.Schedule{}, now: time.Now,
		known: map[string][]window.Opening{}, until: map[string]time.Time{},
	}
	for _, name := range w.names {
		schedule, err := windows[name].Compile()
		if err != nil {
			return nil, fmt.Errorf("windows.%s: %w", name, err)
		}
		w.schedules[name] = schedule
	}
	return w, nil
}

// Describe is the collector's.
func (w *Windows) Describe(to chan<- *prometheus.Desc) { to <- descOpen; to <- descNext }

// Collect is the collector's.
func (w *Windows) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.now()
	for _, name := range w.names {
		openings := w.openings(name, now)
		open := len(openings) > 0 && openings[0].Has(now)
		to <- prometheus.MustNewConstMetric(descOpen, prometheus.GaugeValue, flag(open), name)
		if open {
			openings = openings[1:]
		}
		if len(openings) > 0 {
			to <- prometheus.MustNewConstMetric(descNext, prometheus.GaugeValue, openings[0].From.Sub(now).Seconds(), name)
		}
	}
}

// openings are the present opening of a window, or the next, and the one after it. They are computed anew when the first of
// them is over.
func (w *Windows) openings(name string, now time.Time) []window.Opening {
	if known, ok := w.known[name]; ok && now.Before(w.until[name]) {
		return known
	}
	openings, until := w.schedules[name].Openings(now, now.Add(horizon), 2)
	if len(openings) > 0 {
		until = openings[0].Until
	}
	w.known[name], w.until[name] = openings, until
	return openings
}
