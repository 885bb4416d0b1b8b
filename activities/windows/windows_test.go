package windows

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/window"
)

var at = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func activities(t *testing.T, windows map[string]window.Window) *Activities {
	t.Helper()
	a, err := New(windows)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestOpeningsAreComputedForSomeDays(t *testing.T) {
	windows := map[string]window.Window{
		"nights": {From: "22:00", To: "04:00", Timezone: "Europe/Berlin"},
		"hourly": {Cron: "0 * * * *", For: period.Duration(time.Minute)},
		"leap":   {Cron: "0 0 29 2 *", For: period.Duration(time.Hour)},
	}
	a := activities(t, windows)
	env := activitytest.Environment()
	env.RegisterActivity(a)
	value, err := env.ExecuteActivity(a.ComputeOpenings, ComputeInput{At: at})
	if err != nil {
		t.Fatal(err)
	}
	var h window.Horizon
	if err := value.Get(&h); err != nil {
		t.Fatal(err)
	}
	if h.Digest != window.Digest(windows) || h.Digest == window.Digest(nil) || h.Zones == "" || !h.At.Equal(at) {
		t.Errorf("%+v", h)
	}
	nights := h.Windows["nights"]
	if len(nights.Openings) != 9 || !nights.Until.Equal(at.Add(ahead)) || nights.Timezone != "Europe/Berlin" ||
		!nights.Openings[0].From.Equal(at.Add(9*time.Hour)) {
		t.Errorf("nights: %+v", nights)
	}
	if hourly := h.Windows["hourly"]; len(hourly.Openings) != mostOpenings || !hourly.Until.Equal(at.Add(mostOpenings*time.Hour)) {
		t.Errorf("hourly: %+v", hourly)
	}
	if leap, there := h.Windows["leap"]; !there || len(leap.Openings) != 0 {
		t.Errorf("leap: %+v", leap)
	}
}

func TestSomebodyMayAskForTheNextOpenings(t *testing.T) {
	a := activities(t, map[string]window.Window{"hourly": {Cron: "0 * * * *", For: period.Duration(time.Minute)}, "nights": {From: "22:00", To: "04:00"}})
	all, err := a.ListWindows(t.Context(), api.WindowsInput{At: at, Next: 3})
	if err != nil || len(all.Windows) != 2 || len(all.Windows["nights"].Openings) != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	one, err := a.ListWindows(t.Context(), api.WindowsInput{At: at, Next: 100, Name: "hourly"})
	if err != nil || len(one.Windows) != 1 || len(one.Windows["hourly"].Openings) != 100 {
		t.Errorf("%+v, %v", one, err)
	}
	if _, err := a.ListWindows(t.Context(), api.WindowsInput{At: at, Next: 1, Name: "gone"}); err == nil || !strings.Contains(err.Error(), `no window "gone"`) {
		t.Error(err)
	}
}

// What is carried from run to run stays far below what a payload may be.
func TestTheLargestHorizonIsSmall(t *testing.T) {
	windows := map[string]window.Window{}
	for i := range window.MaxWindows {
		windows[fmt.Sprintf("%s-%02d", strings.Repeat("w", 60), i)] = window.Window{
			Cron: "*/2 * * * *", For: period.Duration(time.Minute), Timezone: "America/Argentina/ComodRivadavia",
		}
	}
	h, err := activities(t, windows).ComputeOpenings(t.Context(), ComputeInput{At: at})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(h)
	if err != nil || len(text) > 150<<10 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
}

func TestTheVersionOfTheZonesIsReturned(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("ZONEINFO", folder)
	if got := zones(); got != folder {
		t.Errorf("of a folder without a version: %s", got)
	}
	for file, text := range map[string]string{"tzdata.zi": "# version 2026b\nR d 1916 o", "+VERSION": "2026c\n"} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := zoneVersion(folder); got == "" || !strings.Contains(text, got) {
			t.Errorf("%s: %q", file, got)
		}
		if err := os.Remove(filepath.Join(folder, file)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := New(map[string]window.Window{"n": {From: "1"}}); err == nil || !strings.Contains(err.Error(), "windows.n: ") {
		t.Error(err)
	}
}
