package details_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/details"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func TestOf(t *testing.T) {
	later, done := noon.Add(time.Hour), noon.Add(-time.Minute)
	for name, c := range map[string]struct {
		status api.Status
		want   []string
	}{
		"begins": {
			api.Status{Phase: api.Pending, Since: noon},
			[]string{"**Pending** since 2026-07-01 12:00:00Z"},
		},
		"waits for its time": {
			api.Status{
				Phase: api.Pending, Since: noon, WaitingFor: "its time: not before 2026-07-01T22:00:00Z",
				Spec:     spec.Maintenance{Node: "worker-01", Requestor: "ops", Reason: "kernel *6.12*", Ticket: "CHG-7"},
				Starter:  &api.Sender{Identity: "ann@desk"},
				Approval: &api.ApprovalStatus{At: noon, Identity: "7@host@", Comment: "window agreed"},
				Messages: []api.Received{{At: noon, Name: "approve", Comment: "window agreed", Effect: "the maintenance is approved"}},
			},
			[]string{
				`Maintenance of **worker-01** by ops: kernel \*6.12\* (CHG-7)`, "**Pending** since 2026-07-01 12:00:00Z",
				"waiting for its time: not before 2026-07-01T22:00:00Z",
				"- started by ann@desk\n- approved by unknown (identity 7@host@) at 2026-07-01 12:00:00Z: window agreed",
				"Messages, the latest first:",
				"- 2026-07-01 12:00:00Z `approve` by unknown: window agreed (the maintenance is approved)",
			},
		},
		"drains": {
			api.Status{
				Phase: api.Draining, Since: noon,
				Drain: &api.DrainProgress{Total: 5, Evicted: 2, Deleted: 1, Remaining: 2, Blockers: []api.Blocker{{Pod: "a/db-0", Reason: "DisruptionBudget", Message: "no"}}},
			},
			[]string{"**Draining** since 2026-07-01 12:00:00Z", "2 of 5 pods evicted, 1 deleted, 2 remaining", "- a/db-0 DisruptionBudget: no"},
		},
		"is held": {
			api.Status{
				Phase: api.Ready, Since: noon, ReadyDeadline: &later, Spec: spec.Maintenance{OnReadyTimeout: spec.FailOnTimeout},
				Requestors: []api.RequestorStatus{{Name: "ops"}, {Name: "net", DoneAt: &done}},
			},
			[]string{
				"**Ready** since 2026-07-01 12:00:00Z", "held until 2026-07-01 13:00:00Z, then RequestorFailed", "- net done at 2026-07-01 11:59:00Z",
			},
		},
		"was given back": {
			api.Status{Phase: api.Pending, Since: noon, NextAttemptAt: &later},
			[]string{"**Pending** since 2026-07-01 12:00:00Z", "next attempt at 2026-07-01 13:00:00Z"},
		},
	} {
		if got, want := details.Of(c.status), strings.Join(c.want, "\n\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestOnlyTheLatestMessagesAreShownAndLittleOfEach(t *testing.T) {
	s := api.Status{Phase: api.Ready, Since: noon}
	for range 30 {
		s.Messages = append(s.Messages, api.Received{At: noon, Name: "started", Comment: strings.Repeat("x", 1000)})
	}
	if got := details.Of(s); strings.Count(got, "`started`") != 5 || len(got) > 2000 {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
}
