package metrics

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/schedule"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// site is a State whose readings and clock are the test's.
type site struct {
	*State
	reads atomic.Int32
	mu    sync.Mutex
	at    time.Time
	next  func() (reading, error)
	held  phaseCounts
}

// phaseCounts is what holders do.
type phaseCounts map[cluster.HeldIn]int

func (c *phaseCounts) Latest(time.Duration, time.Time) (map[cluster.HeldIn]int, bool) {
	return *c, *c != nil
}

func newSite(groups ...string) *site {
	s := &site{at: noon}
	s.State = &State{
		options: Options{Every: 15 * time.Second, Groups: groups, PhaseCounts: &s.held, Logger: slog.New(slog.DiscardHandler)},
		now: func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.at
		},
		source: s,
	}
	return s
}

func (s *site) read(context.Context) (reading, error) {
	s.reads.Add(1)
	return s.next()
}

func (s *site) pass(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = s.at.Add(d)
}

// expect compares some metrics with what the collector shows.
func (s *site) expect(t *testing.T, text string, names ...string) {
	t.Helper()
	if err := testutil.CollectAndCompare(s.State, strings.NewReader(text), names...); err != nil {
		t.Error(err)
	}
}

// busy is what a cluster in the middle of things says.
func busy() reading {
	oldest, seen, trouble := noon.Add(-time.Hour), noon.Add(-time.Minute), noon.Add(-30*time.Second)
	return reading{
		maintenances: 12, awaiting: 2, plans: map[api.PlanPhase]int{api.PlanRunning: 3, api.PlanPaused: 1},
		summary: api.Summary{
			Usage: schedule.Usage{
				Slots: schedule.Use{Used: 3, Limit: new(4)}, Unavailable: schedule.Use{Used: 5, Unlimited: true},
				Groups: []schedule.GroupUsage{
					{Name: "gpu", Slots: schedule.Use{Used: 2, Limit: new(2)}}, {Name: "zone", Slots: schedule.Use{Used: 3, Unlimited: true}},
					{Name: "set-by-hand", Slots: schedule.Use{Used: 1, Limit: new(1)}},
				},
			},
			Nodes: 40, ObservedAt: &seen, Rebuilding: true, Freezes: 3, FreezesRunning: 1, OldestPending: &oldest, TroubleSince: &trouble,
			Pending: []api.PendingCount{
				{Code: schedule.Frozen, Group: "gpu", Count: 1}, {Code: schedule.MaxParallel, Count: 2},
				{Code: schedule.MaxParallel, Group: "gpu", Count: 1}, {Code: schedule.MaxParallel, Group: "set-by-hand", Count: 1},
				{Code: "WhatALaterBuildSays", Count: 1}, {Code: schedule.ControlPlane, Kind: schedule.KindControlPlane, Count: 2},
			},
			Strays: []api.StrayCount{{Kind: api.StrayForeign, Count: 2}, {Kind: api.StrayMalformed}, {Kind: api.StrayUnknown}, {Kind: api.StrayOrphan, Count: 1}},
		},
	}
}

func TestStateTellsWhatWasRead(t *testing.T) {
	s := newSite("gpu", "zone")
	s.next = func() (reading, error) { return busy(), nil }
	s.held = phaseCounts{
		{Phase: api.Draining, Group: "gpu"}: 2, {Phase: api.Ready}: 1,
	}
	s.expect(t, `
# HELP drydock_maintenances Maintenances that run, by phase and by the first group of the configuration that their node is in. From Scheduled to Releasing only the worker knows that watches the cluster for the scheduler, ten seconds late at most; the others tell 0.
# TYPE drydock_maintenances gauge
drydock_maintenances{group="gpu",phase="AwaitingApproval"} 0
drydock_maintenances{group="gpu",phase="Cordoned"} 0
drydock_maintenances{group="gpu",phase="Cordoning"} 0
drydock_maintenances{group="gpu",phase="Draining"} 2
drydock_maintenances{group="gpu",phase="Pending"} 2
drydock_maintenances{group="gpu",phase="Ready"} 0
drydock_maintenances{group="gpu",phase="Releasing"} 0
drydock_maintenances{group="gpu",phase="RequestorFailed"} 0
drydock_maintenances{group="gpu",phase="Scheduled"} 0
drydock_maintenances{group="gpu",phase="Validating"} 0
drydock_maintenances{group="gpu",phase="WaitingForPods"} 0
drydock_maintenances{group="other",phase="AwaitingApproval"} 2
drydock_maintenances{group="other",phase="Cordoned"} 0
drydock_maintenances{group="other",phase="Cordoning"} 0
drydock_maintenances{group="other",phase="Draining"} 0
drydock_maintenances{group="other",phase="Pending"} 5
drydock_maintenances{group="other",phase="Ready"} 1
drydock_maintenances{group="other",phase="Releasing"} 0
drydock_maintenances{group="other",phase="RequestorFailed"} 0
drydock_maintenances{group="other",phase="Scheduled"} 0
drydock_maintenances{group="other",phase="Validating"} 0
drydock_maintenances{group="other",phase="WaitingForPods"} 0
drydock_maintenances{group="zone",phase="AwaitingApproval"} 0
drydock_maintenances{group="zone",phase="Cordoned"} 0
drydock_maintenances{group="zone",phase="Cordoning"} 0
drydock_maintenances{group="zone",phase="Draining"} 0
drydock_maintenances{group="zone",phase="Pending"} 0
drydock_maintenances{group="zone",phase="Ready"} 0
drydock_maintenances{group="zone",phase="Releasing"} 0
drydock_maintenances{group="zone",phase="RequestorFailed"} 0
drydock_maintenances{group="zone",phase="Scheduled"} 0
drydock_maintenances{group="zone",phase="Validating"} 0
drydock_maintenances{group="zone",phase="WaitingForPods"} 0
`, "drydock_maintenances")
	s.expect(t, `
# HELP drydock_pending_requests Requests of maintenances, and of remediations of control-plane nodes, that wait for a slot, by what keeps them from it: Frozen, Window, WindowUnknown, Unobserved, NodeMissing, NodeBusy, Outranked, MaxParallel, MaxUnavailable, GroupMaxParallel, GroupMaxUnavailable, Remediations, ControlPlane, Quota, GangIncomplete, GangWaits, GangTooLarge, Reserved.
# TYPE drydock_pending_requests gauge
drydock_pending_requests{reason="ControlPlane"} 2
drydock_pending_requests{reason="Frozen"} 1
drydock_pending_requests{reason="GangIncomplete"} 0
drydock_pending_requests{reason="GangTooLarge"} 0
drydock_pending_requests{reason="GangWaits"} 0
drydock_pending_requests{reason="GroupMaxParallel"} 0
drydock_pending_requests{reason="GroupMaxUnavailable"} 0
drydock_pending_requests{reason="MaxParallel"} 4
drydock_pending_requests{reason="MaxUnavailable"} 0
drydock_pending_requests{reason="NodeBusy"} 0
drydock_pending_requests{reason="NodeMissing"} 0
drydock_pending_requests{reason="Outranked"} 0
drydock_pending_requests{reason="Quota"} 0
drydock_pending_requests{reason="Remediations"} 0
drydock_pending_requests{reason="Reserved"} 0
drydock_pending_requests{reason="Unobserved"} 0
drydock_pending_requests{reason="Window"} 0
drydock_pending_requests{reason="WindowUnknown"} 0
drydock_pending_requests{reason="other"} 1
# HELP drydock_pending_oldest_seconds For how long the request has waited for a slot that has waited longest.
# TYPE drydock_pending_oldest_seconds gauge
drydock_pending_oldest_seconds 3600
`, "drydock_pending_requests", "drydock_pending_oldest_seconds")
	s.expect(t, `
# HELP drydock_slots_used Slots that maintenances hold.
# TYPE drydock_slots_used gauge
drydock_slots_used 3
# HELP drydock_slots_limit Slots that there may be at a time (maxParallel, in nodes), +Inf if they are not limited, absent while it is a percentage of nodes that were not counted yet.
# TYPE drydock_slots_limit gauge
drydock_slots_limit 4
# HELP drydock_group_slots_used Slots that maintenances of a group's nodes hold; here a node counts in every group that it is in.
# TYPE drydock_group_slots_used gauge
drydock_group_slots_used{group="gpu"} 2
drydock_group_slots_used{group="zone"} 3
# HELP drydock_group_slots_limit Slots that a group may have at a time (its maxParallel, of one with groupBy all its parts together), +Inf if they are not limited.
# TYPE drydock_group_slots_limit gauge
drydock_group_slots_limit{group="gpu"} 2
drydock_group_slots_limit{group="zone"} +Inf
# HELP drydock_nodes Nodes of the cluster, as the scheduler saw them last: it looks while maintenances wait or run.
# TYPE drydock_nodes gauge
drydock_nodes 40
# HELP drydock_nodes_unavailable Nodes that are unschedulable or not Ready for whatever reason, as the scheduler saw them last.
# TYPE drydock_nodes_unavailable gauge
drydock_nodes_unavailable 5
# HELP drydock_nodes_unavailable_limit Nodes that may be out of service for a further one to go (maxUnavailable, in nodes), +Inf if that is not limited.
# TYPE drydock_nodes_unavailable_limit gauge
drydock_nodes_unavailable_limit +Inf
`, "drydock_slots_used", "drydock_slots_limit", "drydock_group_slots_used", "drydock_group_slots_limit", "drydock_nodes", "drydock_nodes_unavailable", "drydock_nodes_unavailable_limit")
	s.expect(t, `
# HELP drydock_plans Maintenance plans that run, by phase: Running, Paused.
# TYPE drydock_plans gauge
drydock_plans{phase="Paused"} 1
drydock_plans{phase="Running"} 3
# HELP drydock_stray_marks Marks on nodes that are no running maintenance's, by kind: orphan, unknown, malformed, foreign, the last of which are another Drydock's.
# TYPE drydock_stray_marks gauge
drydock_stray_marks{kind="foreign"} 2
drydock_stray_marks{kind="malformed"} 0
drydock_stray_marks{kind="orphan"} 1
drydock_stray_marks{kind="unknown"} 0
# HELP drydock_freezes Freezes in force: of grants alone, or of running maintenances too.
# TYPE drydock_freezes gauge
drydock_freezes{scope="grants"} 2
drydock_freezes{scope="running"} 1
# HELP drydock_scheduler_rebuilding 1 while the scheduler finds out who holds a slot, and grants none.
# TYPE drydock_scheduler_rebuilding gauge
drydock_scheduler_rebuilding 1
# HELP drydock_scheduler_trouble_seconds For how long the scheduler has failed to find out what it has to know before it grants; 0 where it does not.
# TYPE drydock_scheduler_trouble_seconds gauge
drydock_scheduler_trouble_seconds 30
# HELP drydock_state_read_success 1 where the scheduler and Temporal's lists could be asked when that was tried last.
# TYPE drydock_state_read_success gauge
drydock_state_read_success 1
# HELP drydock_state_age_seconds How old the counts of the scheduler and of Temporal's lists are.
# TYPE drydock_state_age_seconds gauge
drydock_state_age_seconds 0
# HELP drydock_state_read_seconds How long it took to ask for them.
# TYPE drydock_state_read_seconds gauge
drydock_state_read_seconds 0
`, "drydock_plans", "drydock_stray_marks", "drydock_freezes", "drydock_scheduler_rebuilding", "drydock_scheduler_trouble_seconds",
		"drydock_state_read_success", "drydock_state_age_seconds", "drydock_state_read_seconds")
	if n := s.reads.Load(); n != 1 {
		t.Errorf("%d readings for scrapes at one instant", n)
	}
}

// An idle cluster whose limit is a percentage says nothing of a limit that nobody can know.
func TestStateSaysNothingItDoesNotKnow(t *testing.T) {
	s := newSite()
	s.next = func() (reading, error) { return reading{}, nil }
	for _, name := range []string{"drydock_slots_limit", "drydock_nodes", "drydock_nodes_unavailable", "drydock_nodes_unavailable_limit"} {
		if n := testutil.CollectAndCount(s.State, name); n != 0 {
			t.Errorf("%d series of %s", n, name)
		}
	}
	// Everything else is there at 0, the only group being other: 11 phases and 19 reasons.
	if n := testutil.CollectAndCount(s.State, "drydock_maintenances", "drydock_pending_requests", "drydock_slots_used", "drydock_plans", "drydock_freezes"); n != 11+19+1+2+2 {
		t.Errorf("%d series", n)
	}
}

func TestWhatHoldersDoIsNothingWhereNoneHolds(t *testing.T) {
	s := newSite()
	s.next = func() (reading, error) { return reading{maintenances: 1}, nil }
	s.held = phaseCounts{{Phase: api.Releasing}: 1}
	families, err := gather(s.State)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families["drydock_maintenances"].GetMetric() {
		want := 0.0
		if m.GetLabel()[1].GetValue() == "Pending" {
			want = 1
		}
		if m.GetGauge().GetValue() != want {
			t.Errorf("%v", m)
		}
	}
}

func TestAFailedReadingShowsAndTheOldCountsGoInTime(t *testing.T) {
	s := newSite()
	s.next = func() (reading, error) { return busy(), nil }
	if n := testutil.CollectAndCount(s.State, "drydock_slots_used"); n != 1 {
		t.Fatalf("%d series", n)
	}
	s.next = func() (reading, error) { return reading{}, errors.New("no such luck") }
	s.pass(time.Minute)
	failed := func(age string) string {
		return "# HELP drydock_state_read_success 1 where the scheduler and Temporal's lists could be asked when that was tried last.\n" +
			"# TYPE drydock_state_read_success gauge\ndrydock_state_read_success 0\n" +
			"# HELP drydock_state_age_seconds How old the counts of the scheduler and of Temporal's lists are.\n" +
			"# TYPE drydock_state_age_seconds gauge\ndrydock_state_age_seconds " + age + "\n"
	}
	s.expect(t, failed("60"), "drydock_state_read_success", "drydock_state_age_seconds")
	if n := testutil.CollectAndCount(s.State, "drydock_slots_used"); n != 1 {
		t.Errorf("the counts of a minute ago are gone")
	}
	s.pass(5 * time.Minute)
	s.expect(t, failed("360"), "drydock_state_read_success", "drydock_state_age_seconds")
	if n := testutil.CollectAndCount(s.State, "drydock_slots_used"); n != 0 {
		t.Errorf("counts of six minutes ago are shown as if they were of now")
	}
	s.next = func() (reading, error) { return busy(), nil }
	s.pass(15 * time.Second)
	if n := testutil.CollectAndCount(s.State, "drydock_slots_used"); n != 1 {
		t.Errorf("it does not come back")
	}
}

func TestNothingIsShownBeforeTheFirstReading(t *testing.T) {
	s := newSite()
	s.next = func() (reading, error) { return reading{}, errors.New("no such luck") }
	s.expect(t, "# HELP drydock_state_read_success 1 where the scheduler and Temporal's lists could be asked when that was tried last.\n"+
		"# TYPE drydock_state_read_success gauge\ndrydock_state_read_success 0\n")
}

// However many scrape, one reading is under way, and none begins before its time.
func TestOneReadingAtATime(t *testing.T) {
	s := newSite()
	begun, goOn := make(chan struct{}, 100), make(chan struct{})
	s.next = func() (reading, error) {
		begun <- struct{}{}
		<-goOn
		return busy(), nil
	}
	var scrapes sync.WaitGroup
	for range 20 {
		scrapes.Go(func() { testutil.CollectAndCount(s.State) })
	}
	<-begun
	s.pass(time.Hour) // it is time for the next, and this one is not over
	for range 20 {
		scrapes.Go(func() { testutil.CollectAndCount(s.State) })
	}
	close(goOn)
	scrapes.Wait()
	if n := s.reads.Load(); n > 2 {
		t.Errorf("%d readings", n)
	}
	reads := s.reads.Load()
	for range 20 {
		testutil.CollectAndCount(s.State)
	}
	if n := s.reads.Load(); n > reads+1 {
		t.Errorf("%d readings within the time for which one is shown", n-reads)
	}
}

func TestMetricsAreNamedAsTheyShould(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	s := newSite("gpu")
	s.next = func() (reading, error) { return busy(), nil }
	registry.MustRegister(s.State)
	registerAll(t, registry)
	problems, err := testutil.GatherAndLint(registry)
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if err != nil {
		t.Error(err)
	}
}
