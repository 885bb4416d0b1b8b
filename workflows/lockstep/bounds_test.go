package lockstep

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	activity "drydock.dev/drydock/activities/lockstep"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/inbox"
)

// TestAPlanGetsItsProgressInParts: of 120 nodes with targets of 8 KB each in several signals, and everything again when it says again
// what it intends.
func TestAPlanGetsItsProgressInParts(t *testing.T) {
	s := newSite(t)
	var names, values []string
	for i := range 120 {
		names = append(names, fmt.Sprintf("n%04d", i))
	}
	for i := range 1000 {
		values = append(values, fmt.Sprintf("app-%04d", i))
	}
	tiers := tiersOf(10)
	tiers[0].PodSelector = "app in (" + strings.Join(values, ",") + ")"
	p := s.plan("a", 0, tiers, names...).says(time.Second, api.StageDrain)
	again := p.in
	check := func() {
		h := s.receivedBy("a")
		if len(h.nodes) != 120 || h.last.Tier != 1 || h.size > maxSentText+(20<<10) {
			t.Errorf("%d nodes, at most %d bytes at once, tier %d", len(h.nodes), h.size, h.last.Tier)
		}
		for _, name := range names {
			if n := h.nodes[name]; !n.Drained || n.Message != "Drained" || n.Phase != api.Ready {
				t.Fatalf("%s: %+v", name, n)
			}
		}
		h.nodes = map[string]api.SharedProgress{}
	}
	s.at(2*time.Minute, func() {
		check()
		s.signal(api.SignalPlanIntent, again)
	})
	s.at(4*time.Minute, func() {
		check()
		page := s.state(api.LockstepRequest{Plan: "a", Limit: 1000, Offset: 100})
		if page.NodesAll != 120 || len(page.Nodes) != 20 || page.NextOffset != 0 || page.Plans[0].Tier != 1 || page.Rebuilding != "" {
			t.Errorf("%d nodes of %d, then %d; %+v, %s", len(page.Nodes), page.NodesAll, page.NextOffset, page.Plans, page.Rebuilding)
		}
	})
	p.says(5*time.Minute, api.StageComplete)
	s.run(10 * time.Minute)
	if !s.receivedBy("a").complete || s.count("begin") != 120 || s.count("end") < 120 {
		t.Error("it is not complete")
	}
}

func TestAllPlansTogetherAreBounded(t *testing.T) {
	b := &inventory{}
	intent := func(name string, nodes ...string) api.PlanIntent {
		return api.PlanIntent{Name: name, RunID: runOf(name), CreatedAt: time.Now(), Revision: 1, Stage: api.StageDrain, Tiers: tiersOf(1), Nodes: nodes}
	}
	take := func(in api.PlanIntent) error {
		slices.Sort(in.Nodes)
		tiers, err := in.Validate(time.Now())
		if err == nil {
			err = b.check(in, tiers)
		}
		if err == nil {
			b.accept(in, tiers)
			b.regroup()
		}
		return err
	}
	if err := take(intent("first", randomNames(14999)...)); err != nil {
		t.Fatal(err)
	}
	if err := take(intent("second", "n1", "n2")); err == nil || !strings.Contains(err.Error(), "all plans have 15001: at most 15000 are taken") {
		t.Error(err)
	}
	large := intent("large", "n1")
	large.Maintenance = json.RawMessage(`{"reason":"` + strings.Repeat("x", 60<<10) + `"}`)
	var err error
	for i := 0; i < 10 && err == nil; i++ {
		large.Name, large.RunID = fmt.Sprint("large-", i), runOf(fmt.Sprint(i))
		err = take(large)
	}
	if err == nil || !strings.Contains(err.Error(), "maintenance: those of all plans have") {
		t.Error(err)
	}
	for i := 0; i < maxPlans; i++ {
		err = take(intent(fmt.Sprint("small-", i), "n1"))
	}
	if err == nil || !strings.Contains(err.Error(), "100 plans are under way: complete one first") {
		t.Error(err)
	}
}

// begun is a Lockstep that somebody starts by hand.
func begun(t *testing.T, id string, packed []byte, see func(*testsuite.TestWorkflowEnvironment)) error {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}}})
	env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: id, TaskQueue: "prod/drydock"})
	env.RegisterActivity(&activity.Activities{})
	env.OnActivity("FindShared", mock.Anything, mock.Anything).After(time.Minute).Return(
		func(context.Context, activity.QueueInput) (activity.Running, error) { return activity.Running{}, nil })
	env.RegisterDelayedCallback(func() { see(env) }, time.Second)
	env.ExecuteWorkflow(Lockstep, packed)
	return env.GetWorkflowError()
}

func TestWhatSomebodyGivesItIsNotItsState(t *testing.T) {
	forged, err := api.Pack(map[string]any{"known": true, "inventory": packed{
		Names: []string{"n1"}, Nodes: []packedNode{{nodeState: nodeState{Run: runOf("n1"), Stand: held}}}, Shapes: []shape{{}}, Lists: []lists{{}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	err = begun(t, "prod/"+api.LockstepID(""), forged, func(env *testsuite.TestWorkflowEnvironment) {
		var state api.LockstepState
		value, err := env.QueryWorkflow(api.QueryState, api.LockstepRequest{})
		if err == nil {
			err = value.Get(&state)
		}
		if err != nil || state.NodesAll != 0 || len(state.Notes) != 1 || !strings.Contains(state.Rebuilding, "finding out") {
			t.Errorf("%+v, %v", state, err)
		}
		if _, err := env.QueryWorkflow(api.QueryState, api.LockstepRequest{Plan: "x"}); err == nil || !strings.Contains(err.Error(), `there is no plan "x"`) {
			t.Error(err)
		}
	})
	if err != nil {
		t.Errorf("it ends where there is nothing: %v", err)
	}
}

func TestThereIsOneACluster(t *testing.T) {
	err := begun(t, "mine", nil, func(*testsuite.TestWorkflowEnvironment) {})
	if err == nil || !strings.Contains(err.Error(), `that of the lockstep on this task queue is "prod/drydock-plans"`) {
		t.Error(err)
	}
}

// TestAMaintenanceThatCannotBeSignalledHoldsUpNoOther: it gets its target later.
func TestAMaintenanceThatCannotBeSignalledHoldsUpNoOther(t *testing.T) {
	s := newSite(t)
	s.missed = map[string]int{"n1": 2}
	s.plan("a", 0, tiersOf(10, 20), "n1", "n2").says(time.Second, api.StageDrain)
	s.at(20*time.Second, func() {
		if n := s.receivedBy("a").nodes["n2"]; !n.Drained {
			t.Errorf("n2: %+v", n)
		}
	})
	s.run(10 * time.Minute)
	if s.receivedBy("a").last.Tier != 2 {
		s.dump()
		t.Errorf("plan a received %+v", s.receivedBy("a").last)
	}
}

// TestAPlanThatGrowsBeforeItsNodesAreDrained: between two decisions a plan has nodes that nothing was decided about.
func TestAPlanThatGrowsBeforeItsNodesAreDrained(t *testing.T) {
	v := &inventory{}
	in := api.PlanIntent{Name: "p", RunID: runOf("p"), CreatedAt: now, Revision: 1, Stage: api.StageDrain, Tiers: tiersOf(2000), Nodes: []string{"n1"}}
	tiers, err := in.Validate(now)
	if err != nil {
		t.Fatal(err)
	}
	v.accept(in, tiers)
	v.regroup()
	n := v.byName["n1"]
	n.Stand, n.Run, n.target.Revision = held, runOf("n1"), 1
	n.target.Targets = tiers.Targets(0)
	in.Revision, in.Nodes = 2, []string{"n1", "n2", "n3"}
	v.accept(in, tiers)
	v.report(api.NodeProgress{Node: "n1", RunID: runOf("n1"), Revision: 1, Targets: n.target.Targets, Phase: api.Draining, Drained: true}, now)
	if v.regroup(); !n.Drained || v.plans[0].isDrained() {
		t.Errorf("node n1 drained: %t, and the plan, whose nodes n2 and n3 are not: %t", n.Drained, v.plans[0].isDrained())
	}
}

// TestAMaintenanceThatRunsAlreadyIsKept: its start succeeded, and the answer was lost.
func TestAMaintenanceThatRunsAlreadyIsKept(t *testing.T) {
	l := &lockstep{Known: true}
	v := &l.Inventory
	in := api.PlanIntent{
		Name: "p", RunID: runOf("p"), CreatedAt: now, Revision: 1, Stage: api.StageDrain, Tiers: tiersOf(2000), Nodes: []string{"n1"},
		Maintenance: json.RawMessage(`{"reason":"bios","readyTimeout":"1h","drain":{"force":true}}`),
	}
	tiers, err := in.Validate(now)
	if err != nil {
		t.Fatal(err)
	}
	v.accept(in, tiers)
	v.regroup()
	n := v.byName["n1"]
	l.begun(n, activity.Result{Node: "n1", RunID: runOf("n1"), Adopted: true}, now)
	v.report(api.NodeProgress{Node: "n1", RunID: runOf("n1"), Phase: api.Draining}, now)
	if v.regroup(); n.Stand != held || n.wants(endNodes, now) {
		t.Errorf("it stands at %v, made with %q for plans with %q", n.Stand, n.made, n.group.plans[0].settings)
	}
}

// TestWhatAMaintenanceSaysEndsAtAWord: plans show it, with its commands.
func TestWhatAMaintenanceSaysEndsAtAWord(t *testing.T) {
	l := &lockstep{Known: true}
	v := &l.Inventory
	in := api.PlanIntent{Name: "p", RunID: runOf("p"), CreatedAt: now, Revision: 1, Stage: api.StageDrain, Tiers: tiersOf(2000), Nodes: []string{"n1"}}
	tiers, err := in.Validate(now)
	if err != nil {
		t.Fatal(err)
	}
	v.accept(in, tiers)
	v.regroup()
	n := v.byName["n1"]
	l.begun(n, activity.Result{Node: "n1", RunID: runOf("n1"), Adopted: true}, now)
	why := "a slot: " + strings.Repeat("long ", 34) + "why"
	v.report(api.NodeProgress{Node: "n1", RunID: runOf("n1"), Phase: api.Pending, Waiting: why + ": drydock limits set --max-parallel 12 (maxParallel 2)"}, now)
	if n.progress.Waiting != why+" …" {
		t.Errorf("it waits for %q", n.progress.Waiting)
	}
}
