package plan

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestNodesAreMatchedAsTheWorkerDoes(t *testing.T) {
	p, err := plan.Decode("kernel", []byte(`{"nodes":["m","a","x"],"exclude":["b","c"]}`))
	if err != nil {
		t.Fatal(err)
	}
	matches, err := p.Matcher()
	if err != nil {
		t.Fatal(err)
	}
	c := match(p, matches, []invocation.Node{
		{Name: "a", Labels: map[string]string{"topology.kubernetes.io/zone": "z1"}}, {Name: "b"},
		{Name: "m", Labels: map[string]string{"node-role.kubernetes.io/control-plane": ""}},
	})
	if len(c.nodes) != 2 || c.nodes[0] != (plan.Facts{Name: "a", Zone: "z1"}) {
		t.Errorf("nodes %+v", c.nodes)
	}
	if got := strings.Join(c.warnings(p), "; "); got != "every control-plane node is among them (1); there are no nodes of these names: x; exclude: there are no nodes of these names: c" {
		t.Errorf("warnings %q", got)
	}
	var said bytes.Buffer
	announce(&said, "kernel", p, c)
	if !strings.HasPrefix(said.String(), "Plan kernel over 2 nodes, 1 at a time by name: a, m\nWarning: every") {
		t.Errorf("it says %q", said.String())
	}
	said.Reset()
	p.All, p.Nodes = true, nil
	announce(&said, "kernel", p, choice{why: errors.New("no kubeconfig\nat all")})
	if got := said.String(); !strings.Contains(got, "over all nodes") || !strings.Contains(got, "control-plane nodes included") || strings.Contains(got, "at all") {
		t.Errorf("without Kubernetes it says %q", got)
	}
}

func TestAPlanThatWasStartedSaysWhoDoesTheWork(t *testing.T) {
	for input, want := range map[string]string{
		`{"all":true,"maintenance":{"work":"reboot"}}`: "The worker does reboot on each node",
		`{"all":true}`:                       `"drydock done NODE --requestor plan-kernel"`,
		`{"all":true,"requestor":"patcher"}`: `"drydock plan attach kernel -- COMMAND", or by hand and then "drydock done NODE --requestor patcher"`,
	} {
		p, err := plan.Decode("kernel", []byte(input))
		if err != nil {
			t.Fatal(err)
		}
		if got := next("drydock", "kernel", p); !strings.Contains(got, want) {
			t.Errorf("%s: it says %q, want %q", input, got, want)
		}
	}
}

func TestAStageInWhichAPlanBeginsMayBeRefused(t *testing.T) {
	for name, c := range map[string]struct {
		stages  *api.PlanStages
		why     string
		settled bool
	}{
		"not known":       {nil, "", false},
		"not answered":    {&api.PlanStages{Stage: plan.Drain, Revision: 1}, "", false},
		"taken":           {&api.PlanStages{Stage: plan.Drain, Revision: 1, Answered: 1}, "", true},
		"refused":         {&api.PlanStages{Stage: plan.Idle, Revision: 2, Answered: 1}, "Drain was refused: other settings", true},
		"completed since": {&api.PlanStages{Stage: plan.Complete, Revision: 3, Answered: 3}, "", true},
	} {
		s := &api.PlanStatus{Stages: c.stages, Failure: c.why}
		if why, settled := stageRefused(s); why != c.why || settled != c.settled {
			t.Errorf("%s: %q, %v", name, why, settled)
		}
	}
}

func TestThePlansEndIsTheExitCode(t *testing.T) {
	ended := func(phase api.PlanPhase) client.PlanView {
		return client.PlanView{Run: client.Run{Name: "kernel", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_FAILED}, Result: &api.PlanResult{Phase: phase}}
	}
	for phase, want := range map[api.PlanPhase]int{
		api.PlanCompleted: exit.OK, api.PlanCancelled: exit.Cancelled, api.PlanIncomplete: exit.Failed, api.PlanAborted: exit.Failed, "": exit.Failed,
	} {
		if got := exit.CodeOf(endOf(ended(phase))); got != want {
			t.Errorf("%s: %d, want %d", phase, got, want)
		}
	}
	if err := endOf(client.PlanView{Run: client.Run{Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING}}); err != nil {
		t.Error(err)
	}
}

func TestAFollowerSaysWhatHasChanged(t *testing.T) {
	var out bytes.Buffer
	f := follower{display: terminal.NewDisplay(&out, startertest.ClockAtNoon), clock: startertest.ClockAtNoon, known: map[string]string{}}
	look := func(counts plan.Counts, nodes ...api.PlanNode) string {
		out.Reset()
		f.see(client.PlanView{
			Run:    client.Run{Name: "kernel", Execution: enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING},
			Status: &api.PlanStatus{Phase: api.PlanRunning, Counts: counts, Nodes: nodes},
		})
		return out.String()
	}
	node := func(name, state string) api.PlanNode { return api.PlanNode{Node: name, State: state} }
	const at = "12:00:00 CEST  "
	first := look(plan.Counts{Total: 3, Running: 1, Waiting: 2}, node("a", "running"), node("b", "waiting"), node("c", "waiting"))
	if want := at + "a: running\n" + at + "kernel  Running: 0 of 3 done, 1 running, 2 waiting\n"; first != want {
		t.Errorf("at first\n%swant\n%s", first, want)
	}
	if again := look(plan.Counts{Total: 3, Running: 1, Waiting: 2}, node("a", "running"), node("b", "waiting"), node("c", "waiting")); again != "" {
		t.Errorf("nothing has changed, and it says\n%s", again)
	}
	cut := api.PlanStatus{Phase: api.PlanRunning, NextOffset: 1, Nodes: []api.PlanNode{node("b", "failed")}}
	if allThere(&cut) {
		t.Error("a page that is cut among those that have something to say counts as all of them")
	}
	if cut.Nodes[0].State = "waiting"; !allThere(&cut) {
		t.Error("a page that is cut among those whose turn has not come counts as less than all of them")
	}
	back := api.PlanNode{Node: "b", State: "waiting", NotBefore: startertest.Noon.Add(10 * time.Minute), Note: "blocked"}
	then := look(plan.Counts{Total: 3, Done: 1, Held: 1, Waiting: 1}, api.PlanNode{Node: "c", State: "held", Note: "the disk"}, back,
		api.PlanNode{Node: "d", State: "skipped", Note: "skipped by amy: to be scrapped"})
	for _, want := range []string{"a: over\n", "c: held: the disk\n", "d: skipped by amy: to be scrapped\n", "b: waiting, back at 12:10:00 CEST: blocked\n", "1 of 3 done, 1 failed (1 still held), 1 waiting"} {
		if !strings.Contains(then, want) {
			t.Errorf("then it says\n%swant %q", then, want)
		}
	}
}

func TestTheMaintenancesMostLikeThePlansSayHowLongItTakes(t *testing.T) {
	own, there, other := client.Maintenance{Node: "x", Requestor: "plan-kernel"}, client.Maintenance{Node: "a", Requestor: "ops"}, client.Maintenance{Node: "y", Requestor: "ops"}
	for want, all := range map[string][]client.Maintenance{
		"of plan-kernel": {other, own, there}, "on its nodes": {other, there}, "on other nodes": {other},
	} {
		took, among, err := tookMost(alike(all, "plan-kernel", []string{"a", "b"}), completedAll)
		if err != nil || among != want || len(took) != 1 {
			t.Errorf("%+v %s, want one %s (%v)", took, among, want, err)
		}
	}
}

// completedAll observes maintenances that completed, each 20 minutes after its slot.
func completedAll(all []client.Maintenance) (observed []client.View, err error) {
	for _, m := range all {
		v := startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
		v.Maintenance = m
		v.Result.Transitions = []api.Transition{
			{Phase: api.Scheduled, At: startertest.Before(30 * time.Minute)}, {Phase: api.Completed, At: startertest.Before(10 * time.Minute)},
		}
		observed = append(observed, v)
	}
	return observed, nil
}

// TestThoseThatSayNothingOfTheTimeAreNoneOfThePast: the workflow of a maintenance whose node was gone completes too.
func TestThoseThatSayNothingOfTheTimeAreNoneOfThePast(t *testing.T) {
	all := []client.Maintenance{{Node: "x", Requestor: "plans"}, {Node: "y", Requestor: "ops"}}
	took, among, err := tookMost(alike(all, "plans", []string{"a"}), func(some []client.Maintenance) ([]client.View, error) {
		observed, err := completedAll(some)
		for i := range observed {
			if observed[i].Requestor == "plans" {
				observed[i].Result.Phase = api.NodeGone
			}
		}
		return observed, err
	})
	if err != nil || len(took) != 1 || among != "on other nodes" {
		t.Errorf("%v %s, want one on other nodes (%v)", took, among, err)
	}
}

// TestAWaitThatTimesOutSaysWhatHoldsUpTheSlowestNode: in a pipe nothing else does.
func TestAWaitThatTimesOutSaysWhatHoldsUpTheSlowestNode(t *testing.T) {
	slow := []api.SlowNode{views.SlowNode(startertest.Draining().Known())}
	staged := startertest.Plan(func(s *api.PlanStatus) { s.WaitingFor = "its stage to be set: Drain or Complete" })
	pausedPlan := func(why string) client.PlanView {
		return startertest.Plan(func(s *api.PlanStatus) { s.WaitingFor, s.Failure = plan.PausedWaits, why })
	}
	for name, c := range map[string]struct {
		view client.PlanView
		slow []api.SlowNode
		want string
	}{
		"a budget":       {startertest.Plan(), slow, "; worker-01 is Draining (attempt 2): "},
		"its pod":        {startertest.Plan(), slow, "default/db-0"},
		"no node":        {staged, nil, "; it waits for its stage to be set: Drain or Complete"},
		"failures":       {pausedPlan("2 nodes failed: maxFailures is 1"), nil, "; it is paused: 2 nodes failed: maxFailures is 1"},
		"somebody":       {pausedPlan("paused by amy: incident"), nil, "; it is paused by amy: incident"},
		"nobody says":    {pausedPlan(""), nil, "; it is paused"},
		"nothing at all": {client.PlanView{}, nil, ""},
	} {
		if got := waits(c.view, c.slow, startertest.Noon); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNodesThatWaitForTheirPlanAreNotSlow: they are as far as its stage takes them.
func TestNodesThatWaitForTheirPlanAreNotSlow(t *testing.T) {
	for _, c := range []struct {
		drain *api.NodeDrain
		want  bool
	}{
		{nil, false}, {&api.NodeDrain{Phase: api.Cordoned}, true}, {&api.NodeDrain{Phase: api.Draining}, false},
		{&api.NodeDrain{Phase: api.Draining, Drained: true}, true}, {&api.NodeDrain{Phase: api.Ready, Drained: true}, true},
		{&api.NodeDrain{Phase: api.Releasing, Drained: true}, false},
	} {
		if got := waitsForPlan(api.PlanNode{Drain: c.drain}); got != c.want {
			t.Errorf("%+v: %t", c.drain, got)
		}
	}
}

func TestHowLongAMaintenanceTook(t *testing.T) {
	v := startertest.Ended(api.Completed, enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED, "")
	v.Result.Transitions = []api.Transition{
		{Phase: api.Pending, At: startertest.Before(time.Hour)}, {Phase: api.Scheduled, At: startertest.Before(30 * time.Minute)},
		{Phase: api.Cordoning, At: startertest.Before(29 * time.Minute)}, {Phase: api.Completed, At: startertest.Before(10 * time.Minute)},
	}
	if d, ok := worked(v); !ok || d != 20*time.Minute {
		t.Errorf("%s, %v", d, ok)
	}
	if _, ok := worked(startertest.Ended(api.Cancelled, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, "")); ok {
		t.Error("one that was cancelled counts")
	}
}
