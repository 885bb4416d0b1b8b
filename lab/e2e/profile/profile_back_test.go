package profile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/profile/state"
)

// theirProfile and theirData are what maintenance-controller decodes its annotation into, field by field.
type theirProfile struct {
	Transition time.Time
	Current    string
	Previous   string
}

type theirData struct {
	Profiles      map[string]*theirProfile
	Notifications map[string]time.Time
}

// decodeTheirs reads the annotation as maintenance-controller does.
func decodeTheirs(t *testing.T, text string) theirData {
	t.Helper()
	var d theirData
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Errorf("maintenance-controller cannot read %s: %v", text, err)
	}
	return d
}

// flags is a profile that goes round by annotations of a node: needed, approved, done.
const flags = `
- name: %[1]s
  operational: {transitions: [{check: %[1]s_needed, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: "%[1]s_approved && !%[1]s_done", next: in-maintenance}]}
  in-maintenance: {transitions: [{check: %[1]s_done, next: operational, trigger: %[1]s_clear && %[1]s_reset}]}
`

// flagged is a file with such profiles.
func flagged(names ...string) string {
	checks, triggers, profiles := "", "", ""
	for _, name := range names {
		for _, flag := range []string{"needed", "approved", "done"} {
			checks += fmt.Sprintf("  - {type: hasAnnotation, name: %s_%s, config: {key: cloud.sap/%s-%s, value: \"true\"}}\n", name, flag, name, flag)
		}
		triggers += fmt.Sprintf("  - {type: alterAnnotation, name: %s_clear, config: {key: cloud.sap/%s-needed, remove: true}}\n", name, name)
		triggers += fmt.Sprintf("  - {type: alterAnnotation, name: %s_reset, config: {key: cloud.sap/%s-done, remove: true}}\n", name, name)
		profiles += fmt.Sprintf(flags, name)
	}
	return "intervals: {requeue: 2s}\ninstances:\n  check:\n" + checks + "  trigger:\n" + triggers + "profiles:" + profiles
}

// flag says something of a profile on a node.
func (m *machines) flag(node, profile, flag string) {
	m.Helper()
	m.annotate(node, "cloud.sap/"+profile+"-"+flag, "true")
}

func TestStatesOfMaintenanceControllerAreCarriedOnAndGoBack(t *testing.T) {
	t.Parallel()
	m := prepareMachines(t, site.Shared.Lanes.Take(t), flagged("patch", "other"), "")
	const node = "worker-01"
	// As it writes it, in the midst of a maintenance; of "gone" only the label and the annotation know.
	began := time.Date(2026, 7, 7, 10, 11, 12, 123456789, time.UTC)
	m.label(node, "patch", "gone")
	m.annotate(node, state.DataAnnotation, `{"Profiles":{"gone":{"Transition":"2026-07-01T00:00:00Z","Current":"maintenance-required","Previous":"operational"},`+
		`"patch":{"Transition":"2026-07-07T10:11:12.123456789Z","Current":"in-maintenance","Previous":"in-maintenance"}},`+
		`"Notifications":{"mail":"0001-01-01T00:00:00Z","slack":"2026-07-07T10:00:00.5Z"}}`)
	m.annotate("worker-02", state.DataAnnotation, `{"LastTransition":"2020-01-01T00:00:00Z"}`)
	m.StartWorker()
	m.Eventually("the node shows its state", func() error {
		if label := m.Node(node).Labels[state.StateLabel]; label != string(state.Maintenance) {
			return fmt.Errorf("%q", label)
		}
		return nil
	})
	if is := m.data(node).Profiles["patch"]; !is.Transition.Equal(began) || is.Current != state.Maintenance {
		t.Errorf("it goes on as %+v", is)
	}
	m.Exits(m.Drydock("profile", "explain", node), 0, "patch", "in-maintenance", "gone")
	m.Exits(m.Drydock("profile", "list"), 0, node, "worker-02", "before maintenance-controller v1.2")
	m.flag(node, "patch", "done")
	moved := m.comes(node, "patch", state.Operational)
	m.rests()
	theirs := decodeTheirs(t, m.Node(node).Annotations[state.DataAnnotation])
	if p := theirs.Profiles["patch"]; p == nil || p.Current != "operational" || !p.Transition.Equal(moved.Transition) || time.Since(p.Transition) > site.Patience {
		t.Errorf("they read %+v", p)
	}
	if g := theirs.Profiles["gone"]; g == nil || g.Current != "maintenance-required" || g.Previous != "operational" || g.Transition.Format(time.DateOnly) != "2026-07-01" {
		t.Errorf("what nobody knows became %+v", g)
	}
	if !theirs.Notifications["mail"].IsZero() || theirs.Notifications["slack"].Format(time.RFC3339Nano) != "2026-07-07T10:00:00.5Z" {
		t.Errorf("the notifications became %v", theirs.Notifications)
	}
	for _, key := range []string{`"Profiles"`, `"Transition"`, `"Current"`, `"Previous"`, `"Notifications"`} {
		if text := m.Node(node).Annotations[state.DataAnnotation]; !strings.Contains(text, key) {
			t.Errorf("%s has no %s", text, key)
		}
	}
	if text := m.Node("worker-02").Annotations[state.DataAnnotation]; text != `{"LastTransition":"2020-01-01T00:00:00Z"}` {
		t.Errorf("what cannot be read became %s", text)
	}
}
