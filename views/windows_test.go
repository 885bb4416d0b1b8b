package views_test

import (
	"io"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestWindowTables(t *testing.T) {
	opening := func(from, until time.Duration) window.Opening {
		return window.Opening{From: startertest.Noon.Add(from), Until: startertest.Noon.Add(until)}
	}
	told := window.Horizon{At: startertest.Noon, Zones: "tzdata 2026b", Windows: map[string]window.Openings{
		"nights":   {Timezone: "Europe/Berlin", Openings: []window.Opening{opening(10*time.Hour, 16*time.Hour), opening(34*time.Hour, 40*time.Hour)}},
		"lunch":    {Timezone: "UTC", Openings: []window.Opening{opening(-time.Hour, time.Hour)}},
		"new-year": {Timezone: "UTC"},
	}}
	limits := schedule.Limits{Windows: []string{"nights", "gone"}, Groups: []schedule.Group{
		{Name: "gpu", NodeSelector: "pool=gpu", Windows: []string{"nights", "lunch"}}, {Name: "cpu", NodeSelector: "pool=cpu", Windows: []string{"lunch"}},
	}}
	startertest.Golden(t, "windows", func(w io.Writer) { terminal.Show(w, views.Windows(api.WindowsOf(told, limits, ""), noon)) })
	startertest.Golden(t, "windows_one", func(w io.Writer) { terminal.Show(w, views.Windows(api.WindowsOf(told, limits, "lunch"), noon)) })
	startertest.Golden(t, "windows_none", func(w io.Writer) {
		terminal.Show(w, views.Windows(api.WindowsOf(window.Horizon{}, schedule.Limits{}, ""), noon))
	})
	startertest.Golden(t, "limits_windows", func(w io.Writer) {
		terminal.Show(w, views.Limits(api.LimitsInForce{Limits: limits.WithDefaults(), SetBy: "jane@host"}, noon))
	})
}

func TestWindowsThatTheSchedulerDoesNotGoBy(t *testing.T) {
	told := window.Horizon{Digest: "a"}
	if got := views.WindowsDiffer(told, nil, noon) + views.WindowsDiffer(told, &api.WindowsKnown{Digest: "a"}, noon); got != "" {
		t.Error(got)
	}
	got := views.WindowsDiffer(told, &api.WindowsKnown{Digest: "b", Since: startertest.Noon.Add(-time.Hour)}, noon)
	if want := "these are the windows of the worker that answered, and the scheduler goes by others: those of a worker that was started at 11:00:00 CEST; give all workers one configuration"; got != want {
		t.Error(got)
	}
}
