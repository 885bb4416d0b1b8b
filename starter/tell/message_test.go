package tell

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
)

func TestEveryMessageToAMaintenanceHasACommand(t *testing.T) {
	var names []string
	for _, r := range rows() {
		names = append(names, r.name())
		if r.noun != "" && !slices.ContainsFunc(nouns, func(n noun) bool { return n.name == r.noun }) {
			t.Errorf("%s is below %s, which is no command", r.use, r.noun)
		}
	}
	want := api.MessagesTo(api.NodeMaintenanceType)
	slices.Sort(want)
	slices.Sort(names)
	if !slices.Equal(names, want) {
		t.Errorf("commands\n%q, messages\n%q", names, want)
	}
}

// orderOf is a command line for a maintenance of worker-01 for ops, on behalf of net.
func orderOf(t *testing.T, line string) (*order, error) {
	t.Helper()
	words := strings.Fields(line)
	i := slices.IndexFunc(rows(), func(r row) bool { return strings.HasPrefix(line, strings.TrimSpace(r.noun+" "+r.verb())+" ") })
	if i < 0 {
		t.Fatalf("there is no command %s", words[0])
	}
	if rows()[i].noun != "" {
		words = words[1:]
	}
	app := &invocation.App{Name: "drydock", Env: invocation.Environment{invocation.EnvRequestor + "=net"}, Clock: startertest.ClockAtNoon}
	o := &order{row: rows()[i], app: app, found: client.Found{Maintenance: startertest.View(api.Ready).Maintenance, For: "net"}}
	cmd := o.command()
	if err := cmd.ParseFlags(words[1:]); err != nil {
		t.Fatal(err)
	}
	o.args = cmd.Flags().Args()
	if err := cmd.Args(cmd, o.args); err != nil {
		t.Fatal(err)
	}
	return o, o.check()
}

func TestACommandLineMakesThePayload(t *testing.T) {
	for line, want := range map[string]string{
		"done worker-01":                                          `{"requestor":"net"}`,
		"fail worker-01 --comment broken":                         `{"requestor":"net"}`,
		"retry worker-01":                                         `{}`,
		"cancel worker-01 --yes":                                  `{}`,
		"cancel worker-01 --wait":                                 `{"beforeReady":true}`,
		"cancel worker-01 --wait --release":                       `{"release":true}`,
		"extend worker-01":                                        `{}`,
		"extend worker-01 --for 1h":                               `{"for":"1h0m0s"}`,
		"work begin worker-01":                                    `{}`,
		"join worker-01":                                          `{"requestor":"net"}`,
		"leave worker-01 --requestor bios --of ops":               `{"requestor":"bios"}`,
		"escalate worker-01 --do giveBack --comment late -y":      `{"do":"giveBack"}`,
		"drain skip worker-01 a/db-0":                             `{"pod":"a/db-0"}`,
		"consent worker-01 --force --pod a/b --comment y --yes":   `{"force":true,"pods":["a/b"]}`,
		"consent worker-01 --delete-emptydir-data --comment y -y": `{"deleteEmptyDir":true}`,
		"reschedule worker-01 --not-before 0s":                    `{"notBefore":"2026-07-01T10:00:00Z"}`,
		"hook done worker-01 move --failed":                       `{"hook":"move","failed":true}`,
		"hook skip worker-01 move":                                `{"hook":"move"}`,
		"note worker-01 --comment found":                          `{}`,
		"validation pass worker-01 --comment good":                `{}`,
	} {
		o, err := orderOf(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		payload, _, err := o.form.payload(context.Background(), o)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		got, err := json.Marshal(payload)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s (%v), want %s", line, got, err, want)
		}
		declared, _ := api.MessageOf(api.NodeMaintenanceType, o.name())
		if _, _, err := declared.Complete(payload, api.Message{}, ""); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestWhatCannotBeMeantIsRefusedBeforeAnythingIsLookedAt(t *testing.T) {
	for line, want := range map[string]string{
		"extend worker-01 --for 0s":                              "--for 0s: want a time to come",
		"escalate worker-01 --do reboot --comment y":             `--do "reboot": want one of`,
		"escalate worker-01 --do notify":                         "missing --comment: it is recorded with the rung",
		"escalate worker-01 --do kill --comment y":               "pass --yes",
		"escalate worker-01 --do giveBack --comment y":           "pass --yes",
		"drain skip worker-01 a/b/c":                             "want NAMESPACE/NAME",
		"consent worker-01 --comment y --yes":                    "missing what to consent to",
		"consent worker-01 --force --pod web --comment y --yes":  "--pod",
		"consent worker-01 --force --comment y":                  "pass --yes",
		"reschedule worker-01":                                   "until when?",
		"reschedule worker-01 --not-before 2026-01-01T00:00:00Z": "is over",
		"note worker-01":                                         "missing --comment: it is what goes on record",
		"validation pass worker-01":                              "say with --comment why",
		"done worker-01 --timeout 5m":                            "--timeout needs --wait",
		"join worker-01 --requestor No/Name":                     "requestor",
	} {
		if _, err := orderOf(t, line); exit.CodeOf(err) != exit.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

func TestDangerousMessagesAreAskedAbout(t *testing.T) {
	for line, want := range map[string]string{
		"escalate worker-01 --do kill --comment y --yes":     "kill deletes the pods without their grace period",
		"escalate worker-01 --do fail --comment y --yes":     "fail gives up",
		"escalate worker-01 --do giveBack --comment y --yes": "giveBack puts the node back into service",
		"escalate worker-01 --do notify --comment y":         "",
		"consent worker-01 --force --pod a/b --comment y -y": "pods that nobody re-creates (a/b) will be lost for good. Consent?",
	} {
		o, err := orderOf(t, line)
		if err != nil {
			t.Fatal(err)
		}
		_, question, err := o.form.payload(context.Background(), o)
		if err != nil || !strings.HasPrefix(question, want) || want == "" && question != "" {
			t.Errorf("%s: %q, %v", line, question, err)
		}
	}
}

func TestOnlyWhatEndsAMaintenanceIsAskedAbout(t *testing.T) {
	for line, want := range map[string]string{"cancel worker-01 --yes": "", "cancel worker-01 --release": "cancel --release", "done worker-01": "done", "retry worker-01": ""} {
		o, err := orderOf(t, line)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := o.form.payload(context.Background(), o); err != nil || o.ends != want {
			t.Errorf("%s: %q, %v", line, o.ends, err)
		}
	}
}

func TestCancelTurnsAReadyNodeIntoAFailedOneOnlyIfAgreedTo(t *testing.T) {
	for phase, want := range map[api.Phase]string{
		"":                  `{"beforeReady":true}`,
		api.Pending:         `{"beforeReady":true}`,
		api.Draining:        `{"beforeReady":true}`,
		api.Ready:           `{} it is Ready, and becomes RequestorFailed`,
		api.RequestorFailed: `{}`,
		api.Validating:      `{}`,
	} {
		var s *api.Status
		if phase != "" {
			s = startertest.View(phase).Status
		}
		m, turns := cancelOf(s)
		got, err := json.Marshal(m)
		if text := strings.TrimSpace(string(got) + " " + turns); err != nil || !strings.HasPrefix(text, want) || (turns == "") != (phase != api.Ready) {
			t.Errorf("%s: %s (%v), want %s", phase, text, err, want)
		}
	}
}

// TestAVolumeIsNoPodToSkip: it is listed among the pods that block the drain.
func TestAVolumeIsNoPodToSkip(t *testing.T) {
	s := blockedBy("volume/pvc-1")
	s.Drain.Blockers[0].Reason = api.ReasonVolumeAttached
	if full, err := fullName(s, "pvc-1", "drydock"); err == nil {
		t.Errorf("it is the pod %s", full)
	}
}

func blockedBy(pods ...string) *api.Status {
	return startertest.View(api.Draining, func(s *api.Status) {
		s.Drain = &api.DrainProgress{}
		for _, pod := range pods {
			s.Drain.Blockers = append(s.Drain.Blockers, api.Blocker{Pod: pod})
		}
	}).Status
}

func TestABareNameIsThatOfOnePodThatBlocksTheDrain(t *testing.T) {
	for name, c := range map[string]struct {
		status    *api.Status
		pod       string
		full, err string
	}{
		"by its name":   {blockedBy("a/db-0", "a/db-1"), "db-0", "a/db-0", ""},
		"ambiguous":     {blockedBy("b/db-0", "a/db-0"), "db-0", "", `Pass "a/db-0" or "b/db-0"`},
		"unknown":       {blockedBy("a/db-0"), "db-9", "", "Name it as NAMESPACE/db-9, or one of these: a/db-0"},
		"nothing known": {blockedBy(), "db-9", "", "Name it as NAMESPACE/db-9."},
	} {
		full, err := fullName(c.status, c.pod, "drydock")
		if full != c.full || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, %v", name, full, err)
		}
	}
}
