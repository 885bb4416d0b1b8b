package notice

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
)

func configured(kind, config string) (Notice, error) {
	var p conf.Problems
	o := conf.Read([]byte("config: "+config+"\n"), nil, &p).Object("config")
	n, _ := Read(kind, o)
	for _, key := range o.Unknown() {
		p.Add(o.At(key), "", "unknown")
	}
	return n, p.Join()
}

func schedule(t *testing.T, kind, config string) Schedule {
	t.Helper()
	var p conf.Problems
	s, known := ReadSchedule(kind, conf.Read([]byte("config: "+config+"\n"), nil, &p).Object("config"))
	if err := p.Join(); err != nil || !known {
		t.Fatal(err)
	}
	return s
}

func parameters() Parameters {
	return Parameters{
		Node:  &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-1", Labels: map[string]string{"zone": "a"}}},
		State: "in-maintenance", Profile: Profile{"flatcar", state.Maintenance, state.Required}, InMaintenance: true,
		LastTransition: time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC), LogDetails: true,
	}
}

func TestTexts(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .Node.Name }} is {{ .State }}": "worker-1 is in-maintenance",
		"{{ .Profile }}":                   "flatcar",
		"{{ .Profile.Name }}: {{ .Profile.Last }} to {{ .Profile.Current }}":    "flatcar: maintenance-required to in-maintenance",
		"{{ .Node.Labels.zone }} {{ index .Node.Labels `zone` }}":               "a a",
		"{{ if .InMaintenance }}in{{ end }} {{ .LogDetails }}":                  "in true",
		"{{ .LastTransition.Format `15:04` }}":                                  "12:00",
		"{{ if eq .Profile `flatcar` }}yes{{ else }}no{{ end }}":                "yes",
		"{{ if eq .State `operational` `in-maintenance` }}yes{{ end }}":         "yes",
		"{{ if eq .Profile.Current `in-maintenance` }}yes{{ end }}":             "yes",
		"{{ if ne .Profile `flatcar` }}yes{{ else }}no{{ end }}":                "no",
		"{{ if eq (len .Node.Labels) 1 }}one{{ end }}":                          "one",
		"{{ printf `%s` .Profile }}":                                            "flatcar",
		"no template, <b>raw</b>":                                               "no template, <b>raw</b>",
		"{{ range .Node.Status.Conditions }}{{ .Type }}{{ else }}none{{ end }}": "none",
	} {
		n, err := configured("slack", "{hook: h, channel: c, message: '"+text+"'}")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got, err := n.Render(parameters()); err != nil || got.Text != want {
			t.Errorf("%s: %q, %v", text, got.Text, err)
		}
	}
}

func TestTextsThatAreWrongAreFoundAtLoad(t *testing.T) {
	for text, want := range map[string]string{
		"{{ .Nope }}":                              "can't evaluate field Nope",
		"{{ .Profile.Nope }}":                      "can't evaluate field Nope",
		"{{ .Node.Title }}":                        "can't evaluate field Title",
		"{{ if .InMaintenance }}{{ .X }}{{ end }}": "can't evaluate field X",
		"{{ .Client }}":                            "can't evaluate field Client",
		"{{ toUpper .State }}":                     "function",
		"{{ .State":                                "unclosed action",
		"":                                         "required",
	} {
		_, err := configured("slack", "{hook: h, channel: c, message: '"+text+"'}")
		if err == nil || !strings.HasPrefix(err.Error(), "config.message: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
	// What another node may have is no mistake.
	if _, err := configured("slack", "{hook: h, channel: c, message: '{{ (index .Node.Status.Addresses 7).Address }}'}"); err != nil {
		t.Error(err)
	}
}

func TestTextsAreBounded(t *testing.T) {
	n, err := configured("slack", "{hook: h, channel: c, message: '{{ range .Node.Status.Images }}{{ printf `%1000d` 1 }}{{ end }}'}")
	if err != nil {
		t.Fatal(err)
	}
	p := parameters()
	p.Node.Status.Images = make([]corev1.ContainerImage, 100)
	if _, err := n.Render(p); err == nil {
		t.Error("it has no bound")
	}
}

func TestNotices(t *testing.T) {
	n, err := configured("mail", "{auth: no, address: 'a:25', from: f, to: to, subject: 'S {{ .State }}', message: m}")
	if err != nil {
		t.Fatal(err)
	}
	if m := n.(Mail); len(m.To) != 1 || m.To[0] != "to" || m.Auth {
		t.Errorf("%+v", m)
	}
	// A subject is not a template.
	if got, err := n.Render(parameters()); err != nil || got != (Message{"S {{ .State }}", "m"}) {
		t.Error(got, err)
	}
	n, err = configured("slackThread", "{token: t, channel: c, title: '{{ .Profile }}', message: '{{ .Node.Name }}', leaseName: l, leaseNamespace: ns, period: 60}")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := n.Render(parameters()); err != nil || got != (Message{"flatcar", "worker-1"}) || n.(SlackThread).Period != time.Minute {
		t.Error(got, err)
	}
	for _, c := range []struct{ kind, config, missing string }{
		{"mail", "{}", "address from to subject message"},
		{"slack", "{}", "hook channel message"},
		{"slackThread", "{}", "token channel leaseName leaseNamespace period title message"},
	} {
		_, err := configured(c.kind, c.config)
		var paths []string
		for _, p := range conf.AsProblems(err) {
			paths = append(paths, strings.TrimPrefix(p.Path, "config."))
		}
		if got := strings.Join(paths, " "); got != c.missing {
			t.Errorf("%s: %s", c.kind, got)
		}
	}
}

// at is 2026-01-05, a Monday, or days after it.
func at(days int, clock string) time.Time {
	t, err := time.Parse("15:04", clock)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, 1, 5+days, t.Hour(), t.Minute(), 0, 0, time.UTC)
}

func profile(previous, current state.State, since time.Time) state.Profile {
	return state.Profile{Transition: since, Current: current, Previous: previous}
}

func TestPeriodic(t *testing.T) {
	noon := at(0, "12:00")
	for _, c := range []struct {
		name   string
		p      state.Profile
		last   time.Time
		now    time.Time
		due    bool
		config string
	}{
		{"operational to operational, interval passed", profile(state.Operational, state.Operational, noon), noon, noon.Add(9 * time.Hour), false, "{}"},
		{"in-maintenance to operational, just notified", profile(state.Maintenance, state.Operational, noon), noon.Add(-time.Second), noon.Add(time.Second), true, "{}"},
		{"sent for the change already", profile(state.Maintenance, state.Operational, noon), noon.Add(time.Second), noon.Add(time.Minute), false, "{}"},
		{"not operational, within the default interval", profile(state.Required, state.Required, noon), noon, noon.Add(59 * time.Minute), false, "{}"},
		{"not operational, after the default interval", profile(state.Required, state.Required, noon), noon, noon.Add(time.Hour), true, "{}"},
		{"not operational, after its interval", profile(state.Required, state.Required, noon), noon, noon.Add(time.Minute), true, "{interval: 60}"},
		{"not operational, never sent", profile(state.Required, state.Required, noon), time.Time{}, noon, true, "{}"},
		{"being entered for long", profile(state.Required, state.Maintenance, noon), noon.Add(time.Second), noon.Add(2 * time.Hour), true, "{}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, due := schedule(t, "Periodic", c.config).Due(Case{Now: c.now, Profile: c.p, Last: c.last, Before: c.last}); due != c.due {
				t.Error(due)
			}
		})
	}
}

func TestOneshot(t *testing.T) {
	noon := at(0, "12:00")
	for _, c := range []struct {
		name, config string
		since, last  time.Time
		now          time.Time
		due          bool
	}{
		{"state change zero", "{}", time.Time{}, time.Time{}, noon, false},
		{"change now with positive delay", "{delay: 5m}", noon, time.Time{}, noon, false},
		{"after the delay", "{delay: 5m}", noon, time.Time{}, noon.Add(5 * time.Minute), true},
		{"default delay", "{}", noon, time.Time{}, noon.Add(59 * time.Second), false},
		{"already notified after the change", "{delay: 5m}", noon, noon.Add(time.Minute), noon.Add(time.Hour), false},
		{"notified before the change", "{delay: 5m}", noon, noon.Add(-time.Minute), noon.Add(time.Hour), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := profile(state.Operational, state.Operational, c.since)
			if _, due := schedule(t, "oneshot", c.config).Due(Case{Now: c.now, Profile: p, Last: c.last}); due != c.due {
				t.Error(due)
			}
		})
	}
}

func TestScheduled(t *testing.T) {
	s := schedule(t, "scheduled", "{instant: 12:00, weekdays: [mon]}")
	for _, c := range []struct {
		name      string
		now, last time.Time
		due       bool
	}{
		{"Tue", at(1, "13:00"), time.Time{}, false},
		{"Mon 11:00", at(0, "11:00"), at(-7, "12:00"), false},
		{"Mon 12:00", at(0, "12:00"), at(-7, "12:00"), true},
		{"Mon 13:00", at(0, "13:00"), at(-7, "12:00"), true},
		{"an hour after the last", at(0, "14:00"), at(0, "13:00"), false},
		{"zero last time", at(0, "13:00"), time.Time{}, true},
		// There the day of the month is what is compared.
		{"first ever, on the 1st", time.Date(2026, 6, 1, 13, 0, 0, 0, time.UTC), time.Time{}, true},
		{"the same day of the month, a month later", time.Date(2026, 3, 9, 13, 0, 0, 0, time.UTC), time.Date(2026, 2, 9, 13, 0, 0, 0, time.UTC), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := profile(state.Operational, state.Operational, at(-20, "00:00"))
			if _, due := s.Due(Case{Now: c.now, Profile: p, Last: c.last}); due != c.due {
				t.Error(due)
			}
		})
	}
}

func TestSchedulesThatAreWrong(t *testing.T) {
	for config, want := range map[string]string{
		"{weekdays: mon}":                     "config.instant: required",
		"{instant: noon, weekdays: mon}":      "config.instant: \"noon\" is not a time of day",
		"{instant: 11:00}":                    "config.weekdays: required",
		"{instant: 11:00, weekdays: someday}": "config.weekdays[0]: \"someday\"",
	} {
		var p conf.Problems
		ReadSchedule("scheduled", conf.Read([]byte("config: "+config+"\n"), nil, &p).Object("config"))
		if err := p.Join(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", config, err)
		}
	}
	if _, known := ReadSchedule("weekly", nil); known {
		t.Error("weekly")
	}
}
