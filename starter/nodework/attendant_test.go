package nodework

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/starter/exit"
)

// planned is a plan that has as many nodes running as it may, in their order, until it is cancelled.
type planned struct {
	mu        sync.Mutex
	nodes     []api.PlanNode
	parallel  int
	cancelled string
	// goesOn: it does not pause where a node fails.
	goesOn, paused bool
	requestor      string
	// page is how many nodes an answer has room for, 0 is all.
	page int
	// unanswered is how many questions nobody answers.
	unanswered int
	// unsettled is what becomes of a message.
	unsettled error
}

func planOf(parallel int, names ...string) *planned {
	p := &planned{parallel: parallel}
	for _, name := range names {
		p.nodes = append(p.nodes, api.PlanNode{Node: name, State: plan.Waiting.Word()})
	}
	return p
}

func (p *planned) count(state string) (n int) {
	for i := range p.nodes {
		if p.nodes[i].State == state {
			n++
		}
	}
	return n
}

func (p *planned) Status(_ context.Context, asked api.PlanStatusRequest) (api.PlanStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.unanswered > 0 {
		p.unanswered--
		return api.PlanStatus{}, errors.New("no answer")
	}
	for i := range p.nodes {
		if p.nodes[i].State == plan.Waiting.Word() && p.cancelled == "" && !p.paused && p.count("running") < p.parallel {
			p.nodes[i].State, p.nodes[i].RunID = "running", "run of "+p.nodes[i].Node
		}
	}
	s := api.PlanStatus{Phase: api.PlanRunning, Counts: plan.Counts{Total: len(p.nodes)}}
	s.Plan.Requestor = p.requestor
	s.Plan.Strategy.MaxFailures = schedule.Count(0)
	if p.count("running") == 0 && (p.cancelled != "" || p.count(plan.Waiting.Word()) == 0) {
		s.Phase = api.PlanCompleted
	}
	at := 0
	for _, n := range p.nodes {
		switch {
		case len(asked.States) > 0 && !slices.Contains(asked.States, n.State):
		case p.page > 0 && len(s.Nodes) == p.page:
			s.NextOffset = at
			return s, nil
		default:
			if at++; at > asked.Offset {
				s.Nodes = append(s.Nodes, n)
			}
		}
	}
	return s, nil
}

func (p *planned) AllNodesIn(ctx context.Context, states []string) (api.PlanStatus, error) {
	asked := api.PlanStatusRequest{States: states}
	var all []api.PlanNode
	for {
		status, err := p.Status(ctx, asked)
		all = append(all, status.Nodes...)
		if asked.Offset = status.NextOffset; err != nil || asked.Offset == 0 {
			status.Nodes = all
			return status, err
		}
	}
}

func (p *planned) Send(_ context.Context, _ string, _ any, why string) (client.Sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled = why
	return client.Sent{}, p.unsettled
}

// over takes a node out of those that run.
func (p *planned) over(name string, state plan.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.paused = p.paused || state == plan.Failed && !p.goesOn
	for i := range p.nodes {
		if p.nodes[i].Node == name {
			p.nodes[i].State = state.Word()
		}
	}
}

func (p *planned) attendant(work func(abandon context.Context, name string) api.NodeOutcome) *Attendant {
	return &Attendant{
		Plan: p, Abandon: context.Background(), GiveUp: context.Background(), every: time.Millisecond,
		Worker: workerFunc(func(abandon context.Context, _ string, n api.PlanNode) api.NodeOutcome {
			o := work(abandon, n.Node)
			o.Node = n.Node
			state := plan.Done
			if o.Result != api.OutcomeDone {
				state = plan.Failed
			}
			p.over(n.Node, state)
			return o
		}),
	}
}

// workerFunc works on nodes, and shows no notes.
type workerFunc func(abandon context.Context, requestor string, node api.PlanNode) api.NodeOutcome

func (f workerFunc) Work(abandon context.Context, requestor string, node api.PlanNode) api.NodeOutcome {
	return f(abandon, requestor, node)
}

func (workerFunc) Note(string, ...any) {}

func resultsOf(outcomes []api.NodeOutcome) []api.NodeResult {
	results := make([]api.NodeResult, len(outcomes))
	for i, o := range outcomes {
		results[i] = o.Result
	}
	return results
}

func TestEveryNodeOfAPlanIsWorkedOnOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 3).Draw(t, "nodes")
		failing := rapid.SliceOfN(rapid.Bool(), count, count).Draw(t, "failing")
		var names []string
		for i := range count {
			names = append(names, fmt.Sprint(i))
		}
		p := planOf(rapid.IntRange(1, 3).Draw(t, "parallel"), names...)
		p.unanswered = rapid.IntRange(0, 1).Draw(t, "unanswered")
		var mu sync.Mutex
		worked := map[string]int{}
		a := p.attendant(func(_ context.Context, name string) api.NodeOutcome {
			mu.Lock()
			worked[name]++
			mu.Unlock()
			if failing[slices.Index(names, name)] {
				return api.NodeOutcome{Result: api.OutcomeFailed}
			}
			return api.NodeOutcome{Result: api.OutcomeDone}
		})
		a.ContinueOnError, p.goesOn = true, true
		outcomes, _, err := a.Run(names)
		if err != nil || len(outcomes) != count {
			t.Fatalf("%d outcomes for %d nodes: %v", len(outcomes), count, err)
		}
		for i, o := range outcomes {
			if o.Node != names[i] || worked[o.Node] != 1 || (o.Result == api.OutcomeFailed) != failing[i] {
				t.Errorf("outcome %d: %+v after %d times of work", i, o, worked[o.Node])
			}
		}
	})
}

func TestTheFirstFailureGivesUpWhatIsNotReady(t *testing.T) {
	p := planOf(2, "fails", "pending", "third")
	pending := make(chan struct{})
	got, _, err := p.attendant(func(abandon context.Context, name string) api.NodeOutcome {
		if name == "fails" {
			<-pending
			return api.NodeOutcome{Result: api.OutcomeFailed}
		}
		close(pending)
		<-abandon.Done()
		return api.NodeOutcome{Result: api.OutcomeCancelled, Note: whyAbandoned(abandon)}
	}).Run([]string{"fails", "pending", "third"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]api.NodeResult{api.OutcomeFailed, api.OutcomeCancelled, api.OutcomeNotStarted}, resultsOf(got)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if got[1].Note != "another node failed" || got[2].Note != "another node failed" || p.cancelled != "another node failed" {
		t.Errorf("notes = %q, %q, the plan was cancelled for %q", got[1].Note, got[2].Note, p.cancelled)
	}
}

func TestAnInterruptedRolloutBeginsNothingMore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	p := planOf(1, "running", "next")
	a := p.attendant(func(context.Context, string) api.NodeOutcome {
		cancel(exit.ErrInterrupted)
		return api.NodeOutcome{Result: api.OutcomeDone}
	})
	// The plan takes the next node the moment the one before is done, unless it was cancelled by then.
	worker := a.Worker
	a.Worker = workerFunc(func(abandon context.Context, requestor string, n api.PlanNode) api.NodeOutcome {
		o := worker.Work(abandon, requestor, n)
		_, _ = p.Send(ctx, api.MsgCancel, api.Cancel{}, "interrupted")
		return o
	})
	a.ContinueOnError, a.Abandon = true, ctx
	got, _, err := a.Run([]string{"running", "next"})
	if diff := cmp.Diff([]api.NodeResult{api.OutcomeDone, api.OutcomeNotStarted}, resultsOf(got)); diff != "" || err != nil {
		t.Errorf("%v, want - got +\n%s", err, diff)
	}
	if got[1].Note != "interrupted" {
		t.Errorf("note = %q", got[1].Note)
	}
}

// TestThePlanKnowsFirstThatItIsCancelled, since it begins another node in place of one that is cancelled. It may be slow to answer.
func TestThePlanKnowsFirstThatItIsCancelled(t *testing.T) {
	t.Run("answered", func(t *testing.T) { planKnowsFirst(t, nil) })
	t.Run("taken", func(t *testing.T) { planKnowsFirst(t, &client.UnsettledError{Taken: true}) })
}

func planKnowsFirst(t *testing.T, unsettled error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	p := planOf(1, "running", "next")
	p.unsettled = unsettled
	a := p.attendant(func(abandon context.Context, _ string) api.NodeOutcome {
		cancel(exit.ErrInterrupted)
		<-abandon.Done()
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.cancelled == "" || !errors.Is(context.Cause(abandon), exit.ErrInterrupted) {
			t.Errorf("the plan is not cancelled, or the cause is another: %v", context.Cause(abandon))
		}
		return api.NodeOutcome{Result: api.OutcomeCancelled}
	})
	a.ContinueOnError, a.Abandon = true, ctx
	p.goesOn = true
	got, _, err := a.Run([]string{"running", "next"})
	if diff := cmp.Diff([]api.NodeResult{api.OutcomeCancelled, api.OutcomeNotStarted}, resultsOf(got)); diff != "" || err != nil {
		t.Errorf("%v, want - got +\n%s", err, diff)
	}
}

// TestWhoeverLeavesEndsNoPlan: neither does an interrupt, nor a node that failed.
func TestWhoeverLeavesEndsNoPlan(t *testing.T) {
	for name, interrupted := range map[string]bool{"interrupted": true, "a node failed": false} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			p := planOf(1, "first", "next")
			a := p.attendant(func(_ context.Context, name string) api.NodeOutcome {
				if name != "first" {
					t.Errorf("%s is worked on", name)
				}
				if !interrupted {
					return api.NodeOutcome{Result: api.OutcomeFailed}
				}
				cancel(exit.ErrInterrupted)
				return api.NodeOutcome{Result: api.OutcomeDone}
			})
			a.Abandon, a.Leaves = ctx, true
			got, status, err := a.Run(nil)
			if err != nil || status.Phase.Ended() || p.cancelled != "" || len(got) != 2 || got[1].Result != api.OutcomeNotStarted {
				t.Errorf("the plan is %s, cancelled for %q: %+v, %v", status.Phase, p.cancelled, got, err)
			}
		})
	}
}

// TestAllNodesThatRunAreWorkedOn: those of the first page may be waiting for the slots of the others.
func TestAllNodesThatRunAreWorkedOn(t *testing.T) {
	p := planOf(3, "a", "b", "c")
	p.page = 1
	var together sync.WaitGroup
	together.Add(3)
	a := p.attendant(func(context.Context, string) api.NodeOutcome {
		together.Done()
		together.Wait()
		return api.NodeOutcome{Result: api.OutcomeDone}
	})
	if got, _, err := a.Run([]string{"a", "b", "c"}); err != nil || !slices.Equal(resultsOf(got), []api.NodeResult{api.OutcomeDone, api.OutcomeDone, api.OutcomeDone}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestTheRequestorIsThePlans: one who could not be asked at first has it all the same.
func TestTheRequestorIsThePlans(t *testing.T) {
	p := planOf(1, "a")
	p.unanswered, p.requestor = 1, "ops"
	a := p.attendant(func(context.Context, string) api.NodeOutcome { return api.NodeOutcome{Result: api.OutcomeDone} })
	worker, as := a.Worker, ""
	a.Worker = workerFunc(func(abandon context.Context, requestor string, n api.PlanNode) api.NodeOutcome {
		as = requestor
		return worker.Work(abandon, requestor, n)
	})
	if _, _, err := a.Run(nil); err != nil || as != "ops" {
		t.Errorf("it is worked on as %q: %v", as, err)
	}
}

// TestANodeThatSomebodySkipsCancelsNothing: the plan completes without it. One that is given back because the plan is ended was cancelled.
func TestANodeThatSomebodySkipsCancelsNothing(t *testing.T) {
	p := planOf(1, "a", "b")
	p.over("b", plan.Skipped)
	a := p.attendant(func(context.Context, string) api.NodeOutcome { return api.NodeOutcome{Result: api.OutcomeDone} })
	got, _, err := a.Run(nil)
	if diff := cmp.Diff([]api.NodeResult{api.OutcomeDone, api.OutcomeSkipped}, resultsOf(got)); diff != "" || err != nil || RolloutCode(got) != exit.OK {
		t.Errorf("%v, code %d, want - got +\n%s", err, RolloutCode(got), diff)
	}
	if o := elsewhere(p.nodes[1], api.PlanCancelled, ""); o.Result != api.OutcomeCancelled {
		t.Errorf("of a plan that was cancelled: %+v", o)
	}
}

// TestThePlanSaysWhatBecameOfANodeThatWasGivenUp: who gave it up here, or why, only the plan knows.
func TestThePlanSaysWhatBecameOfANodeThatWasGivenUp(t *testing.T) {
	for state, want := range map[plan.State]api.NodeResult{
		plan.Skipped: api.OutcomeSkipped, plan.Failed: api.OutcomeFailed, plan.Held: api.OutcomeFailed,
	} {
		a := Attendant{outcomes: map[string]api.NodeOutcome{"a": {Node: "a", Result: api.OutcomeSkipped}}}
		status := api.PlanStatus{Phase: api.PlanCompleted, Nodes: []api.PlanNode{{Node: "a", State: string(state)}}}
		if got := a.summary([]string{"a"}, status, ""); got[0].Result != want {
			t.Errorf("%s: %s, want %s", state, got[0].Result, want)
		}
	}
}

func TestAPlanThatWasNeverOneIsAnError(t *testing.T) {
	p := &refusedPlan{}
	a := Attendant{Plan: p, Abandon: context.Background(), GiveUp: context.Background(), Worker: workerFunc(nil)}
	if got, _, err := a.Run([]string{"a"}); !errors.Is(err, client.ErrInvalid) || got[0].Result != api.OutcomeNotStarted {
		t.Errorf("%+v, %v", got, err)
	}
}

type refusedPlan struct{ planned }

func (*refusedPlan) AllNodesIn(context.Context, []string) (api.PlanStatus, error) {
	return api.PlanStatus{}, client.ErrInvalid
}
