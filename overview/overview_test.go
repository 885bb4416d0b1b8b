package overview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/docs/schemas/schematest"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

// fake is a cluster as a test has it. An error keeps a part from being read.
type fake struct {
	scheduler api.State
	views     []client.View
	running   []client.PlanView
	watching  []client.HealthCheckView
	report    *api.ProfileReport
	failed    map[string]error
	looked    int
}

func (f *fake) state(_ context.Context, pending int, code schedule.Code) (api.State, error) {
	s := f.scheduler
	s.Pending = nil
	for i, p := range f.scheduler.Pending {
		if i < pending || p.Code == code {
			s.Pending = append(s.Pending, p)
		}
	}
	return s, f.failed[partScheduler]
}

func (f *fake) maintenances(_ context.Context, limit int) (all []client.Maintenance, err error) {
	for _, v := range f.views[:min(limit, len(f.views))] {
		all = append(all, v.Maintenance)
	}
	return all, f.failed[partMaintenances]
}

func (f *fake) look(_ context.Context, some []client.Maintenance) (found []client.View, err error) {
	f.looked = len(some)
	for _, m := range some {
		i := slices.IndexFunc(f.views, func(v client.View) bool { return v.WorkflowID == m.WorkflowID })
		found = append(found, f.views[i])
	}
	return found, f.failed["look"]
}

func (f *fake) plans(context.Context, int) ([]client.PlanView, error) {
	return f.running, f.failed[partPlans]
}

func (f *fake) checks(context.Context, int) ([]client.HealthCheckView, error) {
	return f.watching, f.failed[partChecks]
}

func (f *fake) profiles(context.Context) (*api.ProfileReport, error) {
	return f.report, f.failed[partProfiles]
}

func maintenance(node, requestor string, phase api.Phase, change ...func(*api.Status)) client.View {
	v := startertest.View(phase, change...)
	v.Node, v.Requestor = node, requestor
	v.WorkflowID = api.MaintenanceID("", node, requestor)
	v.RunID, v.FirstRunID = "run-"+node, "run-"+node
	v.Status.Spec.Node, v.Status.Spec.Requestor = node, requestor
	return v
}

func slotOf(node, requestor string) api.Holder {
	return api.Holder{Grant: schedule.Grant{Node: node, Requestor: requestor}, RunID: "run-" + node, GrantedAt: startertest.Before(time.Hour)}
}

// busy has something of everything.
func busy() *fake {
	waits := maintenance("worker-05", "ops", api.Pending, startertest.WaitingFor("a slot: maxParallel 2"), func(s *api.Status) {
		s.Slot = &api.SlotStatus{RequestID: "run-worker-05/1"}
	})
	running := client.Run{Name: "kernel-6.12", Started: startertest.Before(3 * time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	paused := client.Run{Name: "firmware", Started: startertest.Before(time.Hour), Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
	return &fake{
		scheduler: api.State{
			Limits: api.LimitsInForce{
				Limits: schedule.Limits{MaxParallel: schedule.Count(2), MaxUnavailable: schedule.Percent(20), Windows: []string{"nights"}},
				SetBy:  "jane@host", SetAt: startertest.Before(72 * time.Hour),
			},
			Freezes: []schedule.Freeze{{By: "incident 4711", Reason: "database migration", At: startertest.Before(9 * time.Minute), Running: true}},
			Holders: api.List[api.Holder]{slotOf("worker-01", "ops"), slotOf("worker-02", "net")},
			Nodes:   20, Unavailable: 3, ObservedAt: startertest.Ago(10 * time.Second),
			UnavailableOthers: []schedule.UnavailableNode{{Node: "worker-09", Why: "not Ready"}},
			PendingAll:        1, StraysAll: 2,
			Pending: []api.PendingRequest{{
				SlotRequest: api.SlotRequest{Request: schedule.Request{Node: "worker-05", Requestor: "ops", Created: startertest.Before(12 * time.Minute)}},
				Reason:      "maxParallel 2 is reached",
			}},
		},
		views: []client.View{
			maintenance("worker-03", "ops", api.AwaitingApproval, startertest.WaitingFor(`"approve" or "deny"`)),
			waits,
			maintenance("worker-01", "ops", api.Draining, startertest.WaitingFor("pod default/db-0: budget db allows 0 disruptions")),
			maintenance("worker-02", "net", api.RequestorFailed, func(s *api.Status) { s.Failure = "the NIC is dead" }),
			maintenance("worker-02", "ops", api.Ready, startertest.WaitingFor(`"done" or "failed" from ops`)),
		},
		running: []client.PlanView{
			{Run: running, Status: &api.PlanStatus{
				Phase: api.PlanRunning, Since: startertest.Before(3 * time.Hour), WaitingFor: plan.AwaitsApproval,
				Counts: plan.Counts{Total: 40, Done: 2, Waiting: 38},
			}},
			{Run: paused, Status: &api.PlanStatus{
				Phase: api.PlanPaused, Since: startertest.Before(20 * time.Minute), Failure: "3 nodes failed in a row", Counts: plan.Counts{Total: 9, Failed: 3, Waiting: 6},
			}},
		},
		watching: []client.HealthCheckView{{
			HealthCheckRun: client.HealthCheckRun{Run: client.Run{Name: "workers"}},
			Status: &api.HealthStatus{Status: health.Status{
				Phase: health.PhasePaused, Reason: "paused by bob", ObservedNodes: 17, HealthyNodes: 16, Unhealthy: 1,
				Pauses: []health.PauseStatus{{By: "bob@host", Why: "switch upgrade", At: startertest.Before(time.Hour)}},
			}},
		}},
		report: &api.ProfileReport{
			Counts: []api.ProfileCount{
				{Profile: "default", State: state.Operational, Nodes: 15}, {Profile: "flatcar", State: state.Operational, Nodes: 3, Failing: 1},
				{Profile: "flatcar", State: state.Maintenance, Nodes: 2},
			},
			Nodes: []api.ProfileNode{
				{Node: "worker-11", Profiles: []api.NodeProfile{{Profile: "flatcar", State: state.Maintenance, Since: startertest.Before(40 * time.Minute), Waiting: []string{"restarted"}}}},
				{Node: "worker-12", Profiles: []api.NodeProfile{{Profile: "flatcar", State: state.Maintenance, Since: startertest.Before(2 * time.Minute)}}},
			},
		},
	}
}

func draw(s api.ClusterStatus) func(io.Writer) {
	return func(w io.Writer) { terminal.Show(w, views.Cluster(s, views.At(startertest.Noon))) }
}

func TestStatus(t *testing.T) {
	s := read(t.Context(), busy(), startertest.Noon, AsIs{})
	s.Cluster = "prod"
	startertest.GoldenInWidths(t, "cluster", draw(s))
	startertest.Golden(t, "cluster_quiet", draw(read(t.Context(), &fake{scheduler: api.State{Limits: api.LimitsInForce{Limits: schedule.Limits{MaxParallel: schedule.Count(1)}}}}, startertest.Noon, AsIs{})))
}

func TestPartsThatCannotBeReadDoNotHideTheOthers(t *testing.T) {
	silent := &client.NoWorkerError{TaskQueue: "drydock", Namespace: "default"}
	f := busy()
	f.failed = map[string]error{partScheduler: silent}
	s := read(t.Context(), f, startertest.Noon, AsIs{})
	startertest.Golden(t, "cluster_silent", draw(s))
	if f.looked > 0 {
		t.Errorf("%d maintenances were asked, and there is nobody to answer", f.looked)
	}
	for _, part := range parts {
		t.Run(part, func(t *testing.T) {
			f := busy()
			f.failed = map[string]error{part: errors.New("permission\ndenied")}
			s := read(t.Context(), f, startertest.Noon, AsIs{})
			if len(s.Unread) != 1 || s.Unread[0].Part != part || !strings.Contains(s.Unread[0].Why, "denied") {
				t.Errorf("unread: %+v", s.Unread)
			}
			present := map[string]bool{
				partScheduler: s.Slots != nil, partMaintenances: s.Maintenances != nil, partPlans: s.Plans != nil,
				partChecks: s.HealthChecks != nil, partProfiles: s.Profiles != nil,
			}
			for other, there := range present {
				if there == (other == part) {
					t.Errorf("%s: there is %t", other, there)
				}
			}
		})
	}
	all := map[string]error{}
	for _, part := range parts {
		all[part] = context.DeadlineExceeded
	}
	if s := read(t.Context(), &fake{failed: all}, startertest.Noon, AsIs{}); !Unknown(s) || len(s.Unread) != len(parts) || !strings.Contains(s.Unread[0].Why, "no answer within") {
		t.Errorf("%+v", s)
	}
}

func TestEveryPartIsBounded(t *testing.T) {
	f := busy()
	f.views = nil
	for i := range listed + 10 {
		f.views = append(f.views, maintenance(fmt.Sprintf("node-%04d", i), "ops", api.RequestorFailed))
	}
	held := f.views[listed-1]
	f.scheduler.Holders = api.List[api.Holder]{slotOf(held.Node, held.Requestor)}
	f.scheduler.PendingAll, f.scheduler.Pending = 0, nil
	for range 100 {
		f.running = append(f.running, f.running[0])
		f.watching = append(f.watching, f.watching[0])
	}
	s := read(t.Context(), f, startertest.Noon, AsIs{})
	m := s.Maintenances
	if m.Running != listed || !m.AtLeast || f.looked != asked || m.Phases[api.RequestorFailed] != asked || len(m.First) != shown || m.More != listed-shown {
		t.Errorf("running %d, at least %t, looked at %d, phases %v, first %d, more %d", m.Running, m.AtLeast, f.looked, m.Phases, len(m.First), m.More)
	}
	if first := firstAsked(toMaintenances(f.views[:listed]), f.scheduler)[0].Node; first != held.Node {
		t.Errorf("%s is asked first, want %s, which holds a slot", first, held.Node)
	}
	if len(s.Plans.First) != shown || s.Plans.More != 102-shown || len(s.HealthChecks.First) != shown || s.HealthChecks.More != 101-shown {
		t.Errorf("plans %d and %d, checks %d and %d", len(s.Plans.First), s.Plans.More, len(s.HealthChecks.First), s.HealthChecks.More)
	}
	if len(s.Attention) != shown || s.MoreAttention == 0 {
		t.Errorf("%d need attention, and %d more", len(s.Attention), s.MoreAttention)
	}
}

// TestTheRestIsCounted also where profiles wait for slots, and where a maintenance has ended since it was listed.
func TestTheRestIsCounted(t *testing.T) {
	for name, c := range map[string]struct {
		drain, wait, ended, all int
		want                    string
	}{
		"a few":            {drain: shown + 5, want: "25 running, 5 more"},
		"profiles wait":    {drain: shown + 5, all: 9, want: "25 running, 5 more"},
		"some wait":        {drain: shown + 5, wait: 3, all: 3, want: "28 running, 5 more"},
		"and profiles too": {drain: shown + 5, wait: 3, all: 9, want: "28 running, 5 more"},
		"one has ended":    {drain: shown + 5, ended: 1, want: "25 running, 5 more"},
		"not all asked":    {drain: asked, wait: 30, all: 30, want: "230 running, 180 more"},
	} {
		f := &fake{scheduler: api.State{PendingAll: c.all}}
		for i := range c.drain {
			f.views = append(f.views, maintenance(fmt.Sprintf("drains-%03d", i), "ops", api.Draining))
		}
		for i := range c.wait {
			f.views = append(f.views, maintenance(fmt.Sprintf("waits-%03d", i), "ops", api.Pending, func(s *api.Status) { s.Slot = &api.SlotStatus{} }))
		}
		for i := range c.ended {
			v := maintenance(fmt.Sprintf("ended-%03d", i), "ops", api.Completed)
			v.Execution = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
			f.views = append(f.views, v)
		}
		s := read(t.Context(), f, startertest.Noon, AsIs{})
		if got := fmt.Sprintf("%d running, %d more", s.Maintenances.Running, s.Maintenances.More); got != c.want || s.Maintenances.Phases[api.Completed] > 0 {
			t.Errorf("%s: %s, %v, want %s", name, got, s.Maintenances.Phases, c.want)
		}
	}
}

func toMaintenances(all []client.View) (some []client.Maintenance) {
	for _, v := range all {
		some = append(some, v.Maintenance)
	}
	return some
}

func TestWhatSomebodyWorksOnNeedsNoAttention(t *testing.T) {
	for name, v := range map[string]client.View{
		"work has begun":    maintenance("a", "ops", api.Ready, func(s *api.Status) { s.StartedAt = startertest.Ago(time.Minute) }),
		"a worker's work":   maintenance("a", "ops", api.Ready, func(s *api.Status) { s.Spec.Work = "firmware" }),
		"a profile ends it": maintenance("a", "profile-flatcar", api.Ready),
		"it drains":         maintenance("a", "ops", api.Draining),
		"it is frozen":      maintenance("a", "ops", api.Draining, startertest.WaitingFor(api.WaitsForThaw+"by jane")),
	} {
		if a, needed := attentionOf(v, false, startertest.Noon); needed {
			t.Errorf("%s: %+v", name, a)
		}
	}
}

// TestABlockedDrainNeedsAttention where it has been blocked for long: the list would go on to say that nothing does.
func TestABlockedDrainNeedsAttention(t *testing.T) {
	v := maintenance("worker-01", "ops", api.Draining, func(s *api.Status) {
		s.Drain = &api.DrainProgress{Total: 2, Remaining: 1, Blockers: []api.Blocker{{
			Pod: "default/db-0", Reason: "DisruptionBudget", Message: "budget db allows 0 disruptions", Since: startertest.Before(6 * time.Minute),
		}}}
	})
	s := read(t.Context(), &fake{views: []client.View{v}}, startertest.Noon, AsIs{})
	next := []string{"drydock drain skip worker-01 default/db-0", "drydock escalate worker-01 --do bypassBudget --comment WHY", "drydock cancel worker-01"}
	if len(s.Attention) != 1 || !slices.Equal(s.Attention[0].Next, next) || !strings.Contains(s.Attention[0].What, "budget db allows 0 disruptions") {
		t.Errorf("%+v", s.Attention)
	}
}

// TestWhatWaitsForAPersonNeedsAttention whoever has begun it.
func TestWhatWaitsForAPersonNeedsAttention(t *testing.T) {
	staged := func(waits string) client.PlanView {
		run := client.Run{Name: "firmware", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}
		return client.PlanView{Run: run, Status: &api.PlanStatus{Name: "firmware", Phase: api.PlanRunning, WaitingFor: waits}}
	}
	for name, c := range map[string]struct {
		has  *fake
		next string
	}{
		"a check's step":   {&fake{views: []client.View{maintenance("a", "health-workers", api.Ready)}}, "drydock done a"},
		"a plan's node":    {&fake{views: []client.View{maintenance("a", "plan-kernel", api.Ready)}}, "drydock plan attach kernel -- COMMAND"},
		"the first stage":  {&fake{running: []client.PlanView{staged(plan.AwaitsStage + "Cordon, Drain or Complete")}}, "drydock plan set-stage firmware Cordon"},
		"all are drained":  {&fake{running: []client.PlanView{staged(plan.AwaitsStage + "Complete (all nodes are drained)")}}, "drydock plan set-stage firmware Complete"},
		"its nodes' drain": {&fake{running: []client.PlanView{staged("tier 1 of 2: 0 of 3 nodes are drained up to it")}}, ""},
	} {
		next := ""
		if all := read(t.Context(), c.has, startertest.Noon, AsIs{}).Attention; len(all) > 0 {
			next = all[0].Next[0]
		}
		if next != c.next {
			t.Errorf("%s: %q, want %q", name, next, c.next)
		}
	}
}

func TestAGangThatCanNeverGoNeedsAttentionOnce(t *testing.T) {
	gang := &schedule.Gang{Name: "firmware/01a21d32-8f6e-4c2b-9a6e-0a1b2c3d4e5f", Size: 3}
	var waiting []api.PendingRequest
	for i := range shown { // as many as are listed go before it
		waiting = append(waiting, api.PendingRequest{SlotRequest: api.SlotRequest{Request: schedule.Request{Node: fmt.Sprintf("first-%02d", i), Requestor: "ops"}}})
	}
	for _, node := range []string{"worker-01", "worker-02", "worker-03"} {
		waiting = append(waiting, api.PendingRequest{
			SlotRequest: api.SlotRequest{Request: schedule.Request{Node: node, Requestor: api.PlansRequestor, Gang: gang}},
			Code:        schedule.GangTooLarge,
			Reason: "gang " + gang.Name + " of 3 nodes goes once limits are raised that it is larger than by itself: " +
				"drydock limits set --max-parallel 3 (maxParallel 2)",
		})
	}
	s := read(t.Context(), &fake{scheduler: api.State{Pending: waiting, PendingAll: len(waiting)}}, startertest.Noon, AsIs{})
	if len(s.Slots.Waiting) != shown || len(s.Attention) != 1 || !slices.Equal(s.Attention[0].Next, []string{"drydock limits set --max-parallel 3"}) {
		t.Errorf("%+v", s.Attention)
	}
	var out strings.Builder
	draw(s)(&out)
	if shown := out.String(); strings.Contains(shown, "01a21d32") || !strings.Contains(shown, "gang firmware ") || !strings.Contains(shown, "maxParallel 2") {
		t.Errorf("it shows %s", shown)
	}
}

func TestOutputHoldsToItsSchema(t *testing.T) {
	for _, s := range []api.ClusterStatus{read(t.Context(), busy(), startertest.Noon, AsIs{}), read(t.Context(), &fake{}, startertest.Noon, AsIs{})} {
		for _, format := range []string{terminal.FormatJSON, terminal.FormatYAML} {
			var out strings.Builder
			o := terminal.Output{Format: format}
			if err := o.Write(&out, s); err != nil {
				t.Fatal(err)
			}
			schematest.Holds(t, "cluster", []byte(out.String()))
		}
	}
}
