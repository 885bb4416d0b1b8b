package state

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// theirs is an annotation as maintenance-controller v2.1.0 writes it.
const theirs = `{"Profiles":{"flatcar":{"Transition":"2026-07-07T10:11:12.123456789Z","Current":"in-maintenance","Previous":"maintenance-required"},` +
	`"os-patching":{"Transition":"0001-01-01T00:00:00Z","Current":"operational","Previous":"operational"}},` +
	`"Notifications":{"mail":"0001-01-01T00:00:00Z","slack":"2026-07-07T10:00:00Z"}}`

func TestTheAnnotationGoesBackAsItCame(t *testing.T) {
	d, err := Read(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Profiles["flatcar"]; got.Current != Maintenance || got.Previous != Required || got.Transition.Nanosecond() != 123456789 {
		t.Errorf("%+v", got)
	}
	if text, err := d.Write(); err != nil || text != theirs {
		t.Errorf("%s, %v", text, err)
	}
}

func TestTimesAreWrittenInUTC(t *testing.T) {
	berlin := time.FixedZone("CEST", 7200)
	d := Data{}.Attach([]string{"a"}, func(string) bool { return true }, time.Date(2026, 7, 7, 12, 0, 0, 0, berlin)).
		Notified("n", time.Date(2026, 7, 7, 13, 0, 0, 0, berlin))
	want := `{"Profiles":{"a":{"Transition":"2026-07-07T10:00:00Z","Current":"operational","Previous":"operational"}},"Notifications":{"n":"2026-07-07T11:00:00Z"}}`
	if text, err := d.Write(); err != nil || text != want {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAnnotationsThatCanBeRead(t *testing.T) {
	for _, text := range []string{
		"", "{}", "null", `{"Profiles":null,"Notifications":null}`, `{"profiles":{},"NOTIFICATIONS":{}}`, `{} and what follows`,
		`{"Profiles":{"a":{"transition":"2026-01-01T00:00:00Z","current":"operational","previous":""}}}`,
	} {
		d, err := Read(text)
		if err != nil || d.Profiles == nil || d.Notifications == nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAnnotationsThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{", "unexpected EOF"},
		{"nonsense", "invalid character"},
		{`{"Other":1}`, `unknown field "Other"`},
		{`{"Profiles":{"a":null}}`, `profile "a" has no value`},
		{`{"Profiles":{"a":{"Current":"broken"}}}`, `Current is "broken", which is not a state`},
		{`{"Profiles":{"a":{"Current":"operational","Transition":"yesterday"}}}`, "parsing time"},
		{`{"LastTransition":"2020-01-01T00:00:00Z","ProfileStates":{}}`, "it has the form from before maintenance-controller v1.2: remove it"},
		{`{"Profiles":{"a":{"Current":"operational","Transition":"0000-01-01T00:00:00+23:00"}}}`, "Transition is in year -1"},
		{`{"Notifications":{"n":"9999-12-31T23:00:00-23:00"}}`, `notification "n" is in year 10000`},
		{strings.Repeat(" ", maxData+1), "bytes"},
	} {
		_, err := Read(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), DataAnnotation) {
			t.Errorf("%.60s: %v", c.text, err)
		}
	}
}

func TestProfilesOfALabel(t *testing.T) {
	for label, want := range map[string][]string{
		"": {"default"}, "a": {"a"}, "a--b": {"a", "b"}, "b--a": {"b", "a"}, "ok--": {"ok"}, "ok---a": {"ok", "-a"}, "a--b--a": {"a", "b"},
		"a-b": {"a-b"},
	} {
		if got := Profiles(map[string]string{ProfileLabel: label}); !slices.Equal(got, want) {
			t.Errorf("%q: %v", label, got)
		}
	}
	if got := Profiles(nil); !slices.Equal(got, []string{"default"}) {
		t.Error(got)
	}
}

func TestNames(t *testing.T) {
	for name, right := range map[string]bool{
		"a": true, "-a": true, "A_b.c-1": true, strings.Repeat("a", 63): true,
		"": false, "a--b": false, "a b": false, "ä": false, "a/b": false, strings.Repeat("a", 64): false,
	} {
		if err := CheckName(name); (err == nil) != right {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCrucial(t *testing.T) {
	for _, c := range []struct {
		states []State
		want   State
	}{
		{nil, Operational}, {[]State{Operational, Required}, Required}, {[]State{Maintenance, Required, Operational}, Maintenance},
		{[]State{"unknown"}, Operational},
	} {
		if got := Crucial(c.states); got != c.want {
			t.Errorf("%v: %s", c.states, got)
		}
	}
}

func TestAttach(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	before := Data{Profiles: map[string]Profile{
		"stays": {Transition: now.Add(-time.Hour), Current: Maintenance, Previous: Required},
		"gone":  {Current: Maintenance, Previous: Maintenance},
		"lost":  {Current: Required, Previous: Required},
	}, Notifications: map[string]time.Time{"n": now}}
	kept := maps.Clone(before.Profiles)
	after := before.Attach([]string{"new", "stays", "lost", "unknown"}, func(name string) bool { return name == "new" || name == "stays" }, now)
	want := map[string]Profile{"new": {Transition: now, Current: Operational, Previous: Operational}, "stays": kept["stays"], "lost": kept["lost"]}
	if !maps.Equal(after.Profiles, want) || len(after.Notifications) != 1 {
		t.Errorf("%+v", after)
	}
	if !maps.Equal(before.Profiles, kept) {
		t.Error("what it was made of changed")
	}
}

func TestMoveAndEnter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	d := Data{}.Attach([]string{"a"}, func(string) bool { return true }, now)
	moved, err := d.Move("a", Operational, Required, now.Add(time.Minute))
	if got := moved.Profiles["a"]; err != nil || got != (Profile{now.Add(time.Minute), Required, Operational}) {
		t.Error(got, err)
	}
	entered, err := moved.Enter("a", Required)
	if got := entered.Profiles["a"]; err != nil || got != (Profile{now.Add(time.Minute), Required, Required}) {
		t.Error(got, err)
	}
	if _, err := moved.Move("a", Operational, Required, now); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	if _, err := moved.Move("b", Operational, Required, now); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
	if _, err := moved.Enter("a", Operational); !errors.Is(err, ErrMoved) {
		t.Error(err)
	}
}

// What was read can be written, and means the same when it is read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{"", "{}", theirs, `{"Profiles":{"a":null}}`, `{"Profiles":{"a":{"Current":"operational"}}} x`, "null", "{"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := Read(text)
		if err != nil {
			return
		}
		written, err := d.Write()
		if err != nil {
			return // a time that JSON cannot write
		}
		again, err := Read(written)
		if err != nil || !again.Equal(d) {
			t.Errorf("%s is written as %s (%v)", text, written, err)
		}
	})
}
