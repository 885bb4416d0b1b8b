package nodework

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
)

// attendEvery is how often a plan is looked at for nodes whose turn it is.
const attendEvery = 300 * time.Millisecond

type planClient interface {
	AllNodesIn(ctx context.Context, states []string) (api.PlanStatus, error)
	Send(ctx context.Context, name string, payload any, comment string) (client.Sent, error)
}

// Worker works on nodes.
type Worker interface {
	// Work does one node in the name of the plan's requestor; its context is abandon, or ends earlier because another node has failed.
	Work(abandon context.Context, requestor string, node api.PlanNode) api.NodeOutcome
	Note(format string, args ...any)
}

// Attendant works on the nodes of a plan as it becomes their turn. The plan decides which and how many those are, and goes
// on without an attendant: its nodes then wait, Ready, for the next one.
type Attendant struct {
	Plan planClient
	// ContinueOnError: a node that failed ends nothing.
	ContinueOnError bool
	// Leaves: what ends is this attendance, and not the plan.
	Leaves bool
	// Abandon ends when no further node is to be begun and those that are not Ready are to be given up; GiveUp ends the
	// attempts to reach Temporal.
	Abandon, GiveUp context.Context
	// Worker works on each node.
	Worker Worker
	// every is how often the plan is looked at; 0 is the usual.
	every time.Duration

	mu       sync.Mutex
	outcomes map[string]api.NodeOutcome
	attended map[string]bool
}

// Run works until the plan has ended, and returns an outcome for every node of it, in the order of names, which may name
// only some. The status is the plan's last.
func (a *Attendant) Run(names []string) ([]api.NodeOutcome, api.PlanStatus, error) {
	ctx, stop := context.WithCancelCause(a.Abandon)
	defer stop(nil)
	// The plan has to know first: otherwise it would begin other nodes in place of those that are cancelled.
	work, stopWork := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stopWork(nil)
	a.outcomes, a.attended = map[string]api.NodeOutcome{}, map[string]bool{}
	var all sync.WaitGroup
	said, cancelled := false, false
	for {
		status, err := a.Plan.AllNodesIn(a.GiveUp, []string{plan.Running.Word()})
		switch {
		case a.GiveUp.Err() != nil, exit.Has[*client.NoneError](err), errors.Is(err, client.ErrInvalid):
			stop(err)
			stopWork(context.Cause(ctx))
			all.Wait()
			return a.summary(names, status, whyAbandoned(ctx)), status, err
		case err != nil && !said:
			said = true
			a.Worker.Note("looking at the plan: %s; trying again", firstLine(err))
		case err == nil:
			said = false
		}
		if ctx.Err() != nil && a.Leaves {
			stopWork(context.Cause(ctx))
			all.Wait()
			return a.end(names, whyAbandoned(ctx))
		}
		if ctx.Err() != nil && !cancelled && err == nil && !status.Phase.Ended() {
			if _, err := a.Plan.Send(a.GiveUp, api.MsgCancel, api.Cancel{}, whyAbandoned(ctx)); err == nil || refused(err) || taken(err) {
				cancelled = true
				stopWork(context.Cause(ctx))
			}
		}
		if err == nil && (ctx.Err() == nil || cancelled) {
			a.attend(work, stop, status, &all)
		}
		if err == nil && status.Phase.Ended() {
			unbind := context.AfterFunc(ctx, func() { stopWork(context.Cause(ctx)) })
			all.Wait()
			unbind()
			return a.end(names, whyAbandoned(ctx))
		}
		sleep(a.GiveUp, cmp.Or(a.every, attendEvery))
	}
}

func refused(err error) bool {
	return exit.Has[*client.RefusedError](err) || errors.Is(err, client.ErrEnded)
}

// taken reports whether the plan has a message that it has not answered: it reads it before it learns of what becomes of nodes later.
func taken(err error) bool {
	var unsettled *client.UnsettledError
	return errors.As(err, &unsettled) && unsettled.Taken
}

func (a *Attendant) attend(ctx context.Context, stop context.CancelCauseFunc, status api.PlanStatus, all *sync.WaitGroup) {
	for _, node := range status.Nodes {
		key := node.Node + "/" + node.RunID
		if node.RunID == "" || a.attended[key] {
			continue
		}
		a.attended[key] = true
		all.Go(func() {
			outcome := a.Worker.Work(ctx, cmp.Or(status.Plan.Requestor, plan.RequestorOf(status.Name)), node)
			a.mu.Lock()
			a.outcomes[node.Node] = outcome
			a.mu.Unlock()
			if a.tooManyFailed(status) {
				stop(errSiblingFailed)
			}
		})
	}
}

// tooManyFailed reports whether the plan is to end with what failed here.
func (a *Attendant) tooManyFailed(status api.PlanStatus) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	failed := 0
	for _, outcome := range a.outcomes {
		if outcome.Result == api.OutcomeFailed {
			failed++
		}
	}
	return !a.ContinueOnError && failed > status.Plan.Strategy.MaxFailures.Of(status.Counts.Total)
}

func (a *Attendant) end(names []string, why string) ([]api.NodeOutcome, api.PlanStatus, error) {
	status, err := a.Plan.AllNodesIn(a.GiveUp, nil)
	if err != nil {
		a.Worker.Note("the nodes that were not worked on here are not known: %s", firstLine(err))
	}
	return a.summary(names, status, why), status, err
}

// summary is the outcome of every node: what came of it here, or else what the plan says.
func (a *Attendant) summary(names []string, status api.PlanStatus, why string) []api.NodeOutcome {
	byName := map[string]api.PlanNode{}
	for _, n := range status.Nodes {
		byName[n.Node] = n
		if !slices.Contains(names, n.Node) {
			names = append(names, n.Node)
		}
	}
	var outcomes []api.NodeOutcome
	for _, name := range names {
		a.mu.Lock()
		outcome, worked := a.outcomes[name]
		a.mu.Unlock()
		if !worked || outcome.Result == api.OutcomeSkipped && slices.Contains([]plan.State{plan.Skipped, plan.Failed, plan.Held}, plan.State(byName[name].State)) {
			outcome = elsewhere(byName[name], status.Phase, why)
			outcome.Node = name
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}

// elsewhere is the outcome of a node that was not worked on here. A plan that is ended gives its nodes back; another one leaves out those that
// somebody skips, and completes.
func elsewhere(n api.PlanNode, phase api.PlanPhase, why string) api.NodeOutcome {
	state := plan.State(n.State)
	switch {
	case state == plan.Done:
		return api.NodeOutcome{Result: api.OutcomeDone, Note: "not worked on by this command"}
	case state == plan.Failed, state == plan.Held:
		return api.NodeOutcome{Result: api.OutcomeFailed, Note: n.Note}
	case state == plan.Skipped && (phase == api.PlanCancelled || phase == api.PlanAborted):
		return api.NodeOutcome{Result: api.OutcomeCancelled, Note: n.Note}
	case state == plan.Skipped, state == plan.Gone:
		return api.NodeOutcome{Result: api.OutcomeSkipped, Note: n.Note}
	case state == plan.Running:
		return api.NodeOutcome{Result: api.OutcomeNotStarted, Note: "its maintenance goes on"}
	default:
		return api.NodeOutcome{Result: api.OutcomeNotStarted, Note: why}
	}
}
