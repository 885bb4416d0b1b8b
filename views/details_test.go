package views_test

import (
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/views"
)

func TestDetailsOfAMaintenance(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	later, done := at.Add(time.Hour), at.Add(-time.Minute)
	for name, c := range map[string]struct {
		status api.Status
		want   []string
	}{
		"begins": {
			api.Status{Phase: api.Pending, Since: at},
			[]string{"- **Phase:** Pending (since 2026-07-01 12:00:00Z)\n- **Slot:** none"},
		},
		"waits for its time": {
			api.Status{
				Phase: api.Pending, Since: at, WaitingFor: "its time: not before 2026-07-01T22:00:00Z",
				Spec:     spec.Maintenance{Node: "worker-01", Requestor: "ops", Reason: "kernel *6.12*", Ticket: "CHG-7"},
				Starter:  &api.Sender{Identity: "ann@desk"},
				Approval: &api.ApprovalStatus{At: at, Identity: "7@host@", Comment: "window agreed"},
				Messages: []api.Received{{At: at, Name: "approve", Comment: "window agreed", Effect: "the maintenance is approved"}},
			},
			[]string{
				"**Maintenance of worker-01 by ops**",
				"- **Started by:** ann@desk\n- **Reason:** kernel \\*6.12\\*\n- **Ticket:** CHG-7\n" +
					"- **Approved:** 2026-07-01 12:00:00Z by unknown (identity 7@host@): window agreed\n- **Phase:** Pending (since 2026-07-01 12:00:00Z)\n" +
					"- **Waiting for:** its time: not before 2026-07-01 22:00:00Z\n- **Slot:** none",
				"Messages, the latest first:",
				"- 2026-07-01 12:00:00Z; message: approve; by: unknown; effect: the maintenance is approved; comment: window agreed",
			},
		},
		"drains": {
			api.Status{
				Phase: api.Draining, Since: at,
				Drain: &api.DrainProgress{At: at, Total: 5, Remaining: 2, MoreBlockers: 1, Blockers: []api.Blocker{{Pod: "a/db-0", Reason: "DisruptionBudget", Message: "no", Since: at}}},
			},
			[]string{
				"- **Phase:** Draining (since 2026-07-01 12:00:00Z)\n- **Slot:** none\n- **Drain:** 3 of 5 pods gone; as of 2026-07-01 12:00:00Z",
				"Blocked by:", "- a/db-0; owner: \\-; reason: DisruptionBudget; since: 2026-07-01 12:00:00Z; message: no\n- and 1 more",
			},
		},
		"is held": {
			api.Status{
				Phase: api.Ready, Since: at, ReadyDeadline: &later, Spec: spec.Maintenance{OnReadyTimeout: spec.FailOnTimeout},
				Requestors: []api.RequestorStatus{{Name: "ops"}, {Name: "net", DoneAt: &done}},
			},
			[]string{"- **Phase:** Ready (since 2026-07-01 12:00:00Z)\n- **Requestors:** ops, net (done 2026-07-01 11:59:00Z)\n- **Slot:** none\n" +
				"- **Held until:** 2026-07-01 13:00:00Z (then RequestorFailed)"},
		},
		"was given back": {
			api.Status{Phase: api.Pending, Since: at, NextAttemptAt: &later},
			[]string{"- **Phase:** Pending (since 2026-07-01 12:00:00Z)\n- **Slot:** none\n- **Next attempt:** 2026-07-01 13:00:00Z"},
		},
	} {
		if got, want := document.Details(views.Maintenance(api.MaintenanceOf(c.status), views.Brief())), strings.Join(c.want, "\n\n"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
}

func TestDetailsAreSmall(t *testing.T) {
	s := api.Status{Phase: api.Draining, Drain: &api.DrainProgress{Total: 300, Tiers: 300, At: time.Unix(1, 0)}, Lockstep: &api.LockstepStatus{}}
	long := strings.Repeat("x", 1000)
	for range 300 {
		entry := drainplan.Entry{PodType: drainplan.Default, PodSelector: "app=" + long}
		s.Lockstep.Plans, s.Lockstep.Targets = append(s.Lockstep.Plans, "a-plan-of-some-length"), append(s.Lockstep.Targets, entry)
		s.Drain.Targets = append(s.Drain.Targets, entry)
		s.Messages = append(s.Messages, api.Received{Name: "started", Comment: long, Effect: long})
		s.Drain.Blockers = append(s.Drain.Blockers, api.Blocker{Pod: "default/web", Message: long})
		s.Transitions = append(s.Transitions, api.Transition{Phase: api.Draining, Message: long})
		s.Work = append(s.Work, api.WorkRun{Name: "flash", Output: long})
	}
	got := document.Details(views.Maintenance(api.MaintenanceOf(s), views.Brief()))
	if strings.Count(got, "message: started") != 5 || strings.Count(got, "default/web") != 20 || strings.Count(got, "flash") != 1 || len(got) > 10000 {
		t.Errorf("%d bytes:\n%s", len(got), got)
	}
}
