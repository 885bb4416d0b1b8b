package starter

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"

	"drydock/api"
	"drydock/client"
	"drydock/rules/drainplan"
	"drydock/rules/schedule"
	"drydock/rules/spec"
)

// golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it instead.
func golden(t *testing.T, name string, render func(io.Writer)) {
	t.Helper()
	var got bytes.Buffer
	render(&got)
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

func before(d time.Duration) time.Time { return noon.Add(-d) }

func ago(d time.Duration) *time.Time {
	at := before(d)
	return &at
}

func drainingView() client.View {
	return viewOf(api.Draining, func(s *api.Status) {
		s.Spec.Reason, s.Spec.Ticket, s.Spec.Priority = "kernel 6.12", "OPS-7", 3
		s.Attempt = 2
		s.WaitingFor = "pod default/db-0: budget db allows 0 disruptions"
		s.Requestors = []api.RequestorStatus{{Name: "ops"}, {Name: "net", DoneAt: ago(time.Minute)}}
		s.Slot = &api.SlotStatus{RequestID: "run-1/2", GrantedAt: ago(6 * time.Minute)}
		s.Drain = &api.DrainProgress{
			At: before(2 * time.Second), Total: 8, Evicted: 3, Remaining: 5, Skipped: 2, MoreBlockers: 4,
			Blockers: []api.Blocker{{Pod: "default/db-0", Reason: "DisruptionBudget", Message: "budget db allows 0 disruptions", Since: before(4 * time.Minute)}},
		}
		s.Transitions = []api.Transition{
			{Phase: api.Pending, At: before(10 * time.Minute)},
			{Phase: api.Cordoning, At: before(6 * time.Minute)},
			{Phase: api.Draining, At: before(5 * time.Minute)},
			{Phase: api.Draining, At: before(time.Minute), Message: "cordon restored"},
		}
		s.Messages = []api.Received{{At: before(time.Minute), Name: "done", By: "net@host", Effect: "net is done", Comment: "NIC swapped"}}
	})
}

// escalatedView drains in tiers, has taken two rungs and has the third to come.
func escalatedView() client.View {
	v := drainingView()
	s := v.Status
	s.CordonedAt = ago(48 * time.Minute)
	s.Spec.Drain.Escalation = []spec.Rung{
		{After: spec.Duration(30 * time.Minute), Do: spec.Notify}, {After: spec.Duration(40 * time.Minute), Do: spec.BypassBudget},
		{After: spec.Duration(time.Hour), Do: spec.GiveBack},
	}
	s.Escalation = []api.RungTaken{
		{At: before(18 * time.Minute), Do: spec.Notify, Why: "30m after the cordon", Planned: true},
		{At: before(12 * time.Minute), Do: spec.BypassBudget, By: "jane@host", Why: "team db agrees", Planned: true},
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

func TestStatusTables(t *testing.T) {
	golden(t, "status_draining", func(w io.Writer) { renderStatus(w, drainingView(), noon) })
	golden(t, "status_escalated", func(w io.Writer) { renderStatus(w, escalatedView(), noon) })
	golden(t, "status_given_back", func(w io.Writer) {
		renderStatus(w, viewOf(api.Pending, func(s *api.Status) {
			next := noon.Add(4 * time.Minute)
			s.Attempt, s.NextAttemptAt, s.WaitingFor = 2, &next, "the next attempt"
			s.Spec.Drain.Escalation = []spec.Rung{{After: spec.Duration(time.Hour), Do: spec.GiveBack}}
		}), noon)
	})
	golden(t, "status_ready", func(w io.Writer) {
		renderStatus(w, viewOf(api.Ready, func(s *api.Status) {
			s.StartedAt = ago(3 * time.Minute)
			deadline := noon.Add(55 * time.Minute)
			s.ReadyDeadline = &deadline
			s.WaitingFor = `"done" or "failed" from ops`
		}), noon)
	})
	golden(t, "status_ended", func(w io.Writer) {
		v := endedView(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "cancelled by ops@host")
		v.Result.Transitions = []api.Transition{
			{Phase: api.Pending, At: before(24*time.Hour + 10*time.Minute)},
			{Phase: api.Cancelled, At: before(time.Minute)},
		}
		renderStatus(w, v, noon)
	})
	golden(t, "status_unanswered", func(w io.Writer) {
		v := viewOf("")
		v.Status = nil
		renderStatus(w, v, noon)
	})
}

func TestListTables(t *testing.T) {
	unknown := viewOf("")
	unknown.Status, unknown.Node = nil, "worker-03"
	views := []client.View{
		drainingView(), viewOf(api.Ready), unknown,
		endedView(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, ""),
		endedView(api.NodeGone, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "the node\ndoes not exist"),
	}
	golden(t, "list", func(w io.Writer) { renderList(w, views, true, noon) })
	golden(t, "list_none", func(w io.Writer) { renderList(w, nil, false, noon) })
	o := output{format: formatYAML}
	golden(t, "list_yaml", func(w io.Writer) {
		if err := o.write(w, inUTC(summaries(views)), nil); err != nil {
			t.Error(err)
		}
	})
}

// inUTC makes the times of a golden file those of every machine.
func inUTC(all []summary) []summary {
	utc := func(t *time.Time) {
		if t != nil {
			*t = time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
		}
	}
	for i := range all {
		since, ended := all[i].Since, all[i].EndedAt
		if since != nil {
			copied := *since
			all[i].Since = &copied
		}
		if ended != nil {
			copied := *ended
			all[i].EndedAt = &copied
		}
		utc(&all[i].StartedAt)
		utc(all[i].Since)
		utc(all[i].EndedAt)
	}
	return all
}

func TestLimitTables(t *testing.T) {
	state := api.State{
		Limits: api.LimitsInForce{SetBy: "ops@host", SetAt: before(2 * time.Hour), Comment: "two crews", Limits: schedule.Limits{
			MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(20),
			Groups: []schedule.Group{
				{Name: "gpu", NodeSelector: "pool=gpu", MaxParallel: schedule.Unlimited()},
				{Name: "zone", NodeSelector: "a=b", GroupBy: []string{"zone", "rack"}, MaxUnavailable: schedule.Count(1)},
			},
		}},
		Rebuilding: true,
		Freezes:    []schedule.Freeze{{By: "incident-1", Reason: "disk\nfull", At: before(time.Hour), Running: true}},
		Holders:    []api.Holder{{Grant: schedule.Grant{Node: "worker-01", Requestor: "ops"}, GrantedAt: before(time.Minute)}},
		Nodes:      6, Unavailable: 1, ObservedAt: ago(3 * time.Second),
		PendingAll: 23,
	}
	for range firstPending + 1 {
		state.Pending = append(state.Pending, api.PendingRequest{
			SlotRequest: api.SlotRequest{Request: schedule.Request{Node: "worker-02", Requestor: "net", Priority: 5, Created: before(time.Hour)}},
			Reason:      "frozen by incident-1 (disk full)",
		})
	}
	golden(t, "limits", func(w io.Writer) { renderState(w, state, noon) })
	golden(t, "limits_empty", func(w io.Writer) { renderState(w, api.State{}, noon) })
}

func TestOutcomeTable(t *testing.T) {
	zero, three := 0, 3
	outcomes := []outcome{
		{Node: "worker-01", Result: resultDone, ExitStatus: &zero, duration: 83 * time.Second},
		{Node: "worker-02", Result: resultFailed, ExitStatus: &three, duration: 5 * time.Second, Note: "exit status 3"},
		{Node: "worker-03", Result: resultCancelled, duration: time.Second, Note: "another node failed before the node was ready"},
		{Node: "worker-04", Result: resultNotStarted, Note: "another node failed"},
		{Node: "cp-01", Result: resultSkipped, Note: "control plane"},
	}
	golden(t, "outcomes", func(w io.Writer) { renderOutcomes(w, outcomes) })
	golden(t, "outcomes_json", func(w io.Writer) {
		o := output{format: formatJSON}
		if err := o.write(w, outcomes, nil); err != nil {
			t.Error(err)
		}
	})
}

func TestDifferentSettingsAreShown(t *testing.T) {
	c := &connection{program: "drydock"}
	err := c.errDifferent(&client.DifferentError{View: viewOf(api.Draining), Differences: []client.Difference{
		{"drain.mode", "evict", "wait"}, {"drain.force", true, nil}, {"reason", nil, "<b> & c"},
	}})
	golden(t, "different", func(w io.Writer) { fmt.Fprintln(w, "Error: "+indent(err.Error())) })
}
