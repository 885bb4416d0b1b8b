package views_test

import (
	"io"
	"math"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

var noon = views.At(startertest.Noon)

// escalatedView drains in tiers, has taken two rungs and has the third to come.
func escalatedView() client.View {
	v := startertest.Draining()
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
	startertest.Golden(t, "status_shared", func(w io.Writer) { terminal.Show(w, views.Maintenance(sharedView().Known(), noon)) })
	startertest.GoldenInWidths(t, "status_draining", func(w io.Writer) { terminal.Show(w, views.Maintenance(startertest.Draining().Known(), noon)) })
	startertest.GoldenInWidths(t, "status_escalated", func(w io.Writer) { terminal.Show(w, views.Maintenance(escalatedView().Known(), noon)) })
	startertest.Golden(t, "status_given_back", func(w io.Writer) {
		terminal.Show(w, views.Maintenance(startertest.View(api.Pending, func(s *api.Status) {
			next := startertest.Noon.Add(4 * time.Minute)
			s.Attempt, s.NextAttemptAt, s.WaitingFor = 2, &next, "the next attempt"
			s.Spec.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}
		}).Known(), noon))
	})
	startertest.Golden(t, "status_ready", func(w io.Writer) {
		terminal.Show(w, views.Maintenance(startertest.View(api.Ready, func(s *api.Status) {
			s.StartedAt = startertest.Ago(3 * time.Minute)
			deadline := startertest.Noon.Add(55 * time.Minute)
			s.ReadyDeadline = &deadline
			s.WaitingFor = `"done" or "failed" from ops`
		}).Known(), noon))
	})
	startertest.Golden(t, "status_ended", func(w io.Writer) {
		v := startertest.Ended(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "cancelled by ops@host")
		v.Result.Transitions = []api.Transition{
			{Phase: api.Pending, At: startertest.Before(24*time.Hour + 10*time.Minute)},
			{Phase: api.Cancelled, At: startertest.Before(time.Minute)},
		}
		terminal.Show(w, views.Maintenance(v.Known(), noon))
	})
	startertest.Golden(t, "status_unanswered", func(w io.Writer) {
		v := startertest.View("")
		v.Status = nil
		terminal.Show(w, views.Maintenance(v.Known(), noon))
	})
}

func TestListTables(t *testing.T) {
	unknown := startertest.View("")
	unknown.Status, unknown.Node = nil, "worker-03"
	all := []client.View{
		startertest.Draining(), startertest.View(api.Ready), unknown,
		startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""),
		startertest.Ended(api.NodeGone, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the node\ndoes not exist"),
	}
	startertest.GoldenInWidths(t, "list", func(w io.Writer) { terminal.Show(w, views.Maintenances(client.Summaries(all), false, noon)) })
	startertest.Golden(t, "list_wide", func(w io.Writer) { terminal.Show(w, views.Maintenances(client.Summaries(all), true, noon)) })
	o := terminal.Output{Format: terminal.FormatYAML}
	startertest.Golden(t, "list_yaml", func(w io.Writer) {
		if err := o.Write(w, client.Summaries(all)); err != nil {
			t.Error(err)
		}
	})
}
