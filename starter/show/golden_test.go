package show

import (
	"io"
	"math"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
)

func drainingView() client.View {
	return startertest.View(api.Draining, func(s *api.Status) {
		s.Spec.Reason, s.Spec.Ticket, s.Spec.Priority = "kernel 6.12", "OPS-7", 3
		s.Attempt = 2
		s.WaitingFor = "pod default/db-0: budget db allows 0 disruptions"
		s.Requestors = []api.RequestorStatus{{Name: "ops"}, {Name: "net", DoneAt: startertest.Ago(time.Minute)}}
		s.Slot = &api.SlotStatus{RequestID: "run-1/2", GrantedAt: startertest.Ago(6 * time.Minute)}
		s.Drain = &api.DrainProgress{
			At: startertest.Before(2 * time.Second), Total: 8, Evicted: 3, Remaining: 5, Skipped: 2, MoreBlockers: 4,
			Blockers: []api.Blocker{{Pod: "default/db-0", Reason: "DisruptionBudget", Message: "budget db allows 0 disruptions", Since: startertest.Before(4 * time.Minute)}},
		}
		s.Transitions = []api.Transition{
			{Phase: api.Pending, At: startertest.Before(10 * time.Minute)},
			{Phase: api.Cordoning, At: startertest.Before(6 * time.Minute)},
			{Phase: api.Draining, At: startertest.Before(5 * time.Minute)},
			{Phase: api.Draining, At: startertest.Before(time.Minute), Message: "cordon restored"},
		}
		s.Messages = []api.Received{{At: startertest.Before(time.Minute), Name: "done", By: "net@host", Effect: "net is done", Comment: "NIC swapped"}}
	})
}

// escalatedView drains in tiers, has taken two rungs and has the third to come.
func escalatedView() client.View {
	v := drainingView()
	s := v.Status
	s.CordonedAt = startertest.Ago(48 * time.Minute)
	s.Spec.Drain.Escalation = []spec.Rung{
		{After: spec.Duration(30 * time.Minute), Do: spec.Notify}, {After: spec.Duration(40 * time.Minute), Do: spec.BypassBudget},
		{After: spec.Duration(time.Hour), Do: spec.GiveBack},
	}
	s.Escalation = []api.RungTaken{
		{At: startertest.Before(18 * time.Minute), Do: spec.Notify, Why: "30m after the cordon", Planned: true},
		{At: startertest.Before(12 * time.Minute), Do: spec.BypassBudget, By: "jane@host", Why: "team db agrees", Planned: true},
	}
	s.Force, s.SkippedPods = spec.BypassBudget, []string{"batch/crawler-0", "batch/crawler-1"}
	s.Drain.Tier, s.Drain.Tiers = 2, 4
	s.Drain.Targets = []drainplan.Entry{
		{PodType: drainplan.Default, PodPriority: 1000, PodSelector: "app=web"}, {PodType: drainplan.Default, PodPriority: math.MaxInt32},
	}
	s.Drain.Reasons = map[string]int{"DisruptionBudget": 3, "Webhook": 1, "NoController": 1}
	s.Drain.Stays = []api.Blocker{{Pod: "kube-system/cni-x", Reason: "ToleratesTaint", Owner: "DaemonSet cni", Message: "its DaemonSet tolerates every taint"}}
	s.Drain.Blockers[0].Owner = "StatefulSet db"
	s.Drain.Blockers[0].Budgets = []api.BudgetState{
		{Name: "db", Allowed: 0, Healthy: 2, Desired: 2, Pods: 3}, {Name: "all", Allowed: 0, Healthy: 9, Desired: 9, Pods: 9, Impossible: true},
	}
	return v
}

// sharedView is held, drained as far as its plans have come.
func sharedView() client.View {
	return startertest.View(api.Ready, func(s *api.Status) {
		s.Spec.Requestor, s.Spec.Lockstep = api.PlansRequestor, true
		s.Requestors = []api.RequestorStatus{{Name: api.PlansRequestor}}
		s.WaitingFor = "node worker-02"
		s.Slot = &api.SlotStatus{RequestID: "run-1/1", GrantedAt: startertest.Ago(6 * time.Minute)}
		s.Lockstep = &api.LockstepStatus{Revision: 3, Plans: []string{"kernel", "firmware"}, Targets: []drainplan.Entry{
			{PodType: drainplan.Default, PodPriority: 1000}, {PodType: drainplan.Default, PodPriority: 2000, PodSelector: "app=web"},
		}}
	})
}

func TestStatusTables(t *testing.T) {
	startertest.Golden(t, "status_shared", func(w io.Writer) { Status(w, sharedView(), startertest.Noon) })
	startertest.GoldenInWidths(t, "status_draining", func(w io.Writer) { Status(w, drainingView(), startertest.Noon) })
	startertest.GoldenInWidths(t, "status_escalated", func(w io.Writer) { Status(w, escalatedView(), startertest.Noon) })
	startertest.Golden(t, "status_given_back", func(w io.Writer) {
		Status(w, startertest.View(api.Pending, func(s *api.Status) {
			next := startertest.Noon.Add(4 * time.Minute)
			s.Attempt, s.NextAttemptAt, s.WaitingFor = 2, &next, "the next attempt"
			s.Spec.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}
		}), startertest.Noon)
	})
	startertest.Golden(t, "status_ready", func(w io.Writer) {
		Status(w, startertest.View(api.Ready, func(s *api.Status) {
			s.StartedAt = startertest.Ago(3 * time.Minute)
			deadline := startertest.Noon.Add(55 * time.Minute)
			s.ReadyDeadline = &deadline
			s.WaitingFor = `"done" or "failed" from ops`
		}), startertest.Noon)
	})
	startertest.Golden(t, "status_ended", func(w io.Writer) {
		v := startertest.Ended(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "cancelled by ops@host")
		v.Result.Transitions = []api.Transition{
			{Phase: api.Pending, At: startertest.Before(24*time.Hour + 10*time.Minute)},
			{Phase: api.Cancelled, At: startertest.Before(time.Minute)},
		}
		Status(w, v, startertest.Noon)
	})
	startertest.Golden(t, "status_unanswered", func(w io.Writer) {
		v := startertest.View("")
		v.Status = nil
		Status(w, v, startertest.Noon)
	})
}

func TestListTables(t *testing.T) {
	unknown := startertest.View("")
	unknown.Status, unknown.Node = nil, "worker-03"
	views := []client.View{
		drainingView(), startertest.View(api.Ready), unknown,
		startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""),
		startertest.Ended(api.NodeGone, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the node\ndoes not exist"),
	}
	startertest.GoldenInWidths(t, "list", func(w io.Writer) { List(w, views, false, startertest.Noon) })
	startertest.Golden(t, "list_wide", func(w io.Writer) { List(w, views, true, startertest.Noon) })
	o := terminal.Output{Format: terminal.FormatYAML}
	startertest.Golden(t, "list_yaml", func(w io.Writer) {
		if err := o.Write(w, Summaries(views), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestLimitTables(t *testing.T) {
	state := api.State{
		Limits: api.LimitsInForce{SetBy: "ops@host", SetAt: startertest.Before(2 * time.Hour), Comment: "two crews", Limits: schedule.Limits{
			MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(20),
			Groups: []schedule.Group{
				{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Unlimited()},
				{Name: "zone", NodeSelector: "a=b", GroupBy: []string{"zone", "rack"}, MaxUnavailable: schedule.Count(1)},
			},
		}},
		Rebuilding: true,
		Freezes:    []schedule.Freeze{{By: "incident-1", Reason: "disk\nfull", At: startertest.Before(time.Hour), Running: true}},
		Holders: []api.Holder{
			{Grant: schedule.Grant{Node: "worker-01", Requestor: "ops"}, GrantedAt: startertest.Before(time.Minute)},
			{Grant: schedule.Grant{Node: "cp-1", Requestor: "health-cp", Kind: schedule.KindControlPlane}, GrantedAt: startertest.Before(time.Hour)},
		},
		Nodes: 6, Unavailable: 3, UnavailableOthers: []schedule.UnavailableNode{{Node: "worker-05", Why: "cordoned"}}, ObservedAt: startertest.Ago(3 * time.Second),
		PendingAll: 23,
	}
	for range FirstPending + 1 {
		state.Pending = append(state.Pending, api.PendingRequest{
			SlotRequest: api.SlotRequest{Request: schedule.Request{Node: "worker-02", Requestor: "net", Priority: 5, Created: startertest.Before(time.Hour)}},
			Reason:      "frozen by incident-1 (disk full)",
		})
	}
	startertest.GoldenInWidths(t, "limits", func(w io.Writer) { SchedulerState(w, state, startertest.Noon) })
	startertest.Golden(t, "limits_empty", func(w io.Writer) { SchedulerState(w, api.State{}, startertest.Noon) })
}
