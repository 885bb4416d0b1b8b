package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	planactivity "drydock/activities/plan"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/number"
	"drydock/rules/rollout"
	"drydock/workflows/call"
)

// flights are the maintenances of a plan that run. The server tells this run of the ends of those that it began; an
// activity waits for the ends of the others.
type flights struct {
	*core
	// ours are the nodes whose maintenance this run began, starting counts those of them whose start is not confirmed.
	ours     map[string]bool
	starting int
	// telling counts messages to maintenances that are under way.
	telling int
	// stopWaiting ends the activity that waits for others, nil while there is none; waitsFor are those.
	stopWaiting workflow.CancelFunc
	waitsFor    []string
	// size is about how many bytes the start of a maintenance takes, 0 while that is not known.
	size int
}

const (
	// maxStarting bounds the starts that a server is asked for in one go, and maxStartBytes what they take: it takes 4 MB.
	maxStarting   = 100
	maxStartBytes = 1 << 20
	// maxChildren are as many maintenances as a run keeps as its children, of which a server takes 2,000: it continues as new.
	maxChildren = 1000
)

// room is how many maintenances may be begun at once; the next ones are when the starts of those are confirmed.
func (f *flights) room() int {
	if f.size == 0 {
		const around = 1024
		input, _ := f.spec.InputOf("any", f.now()) // begin says what is wrong with it
		f.size = len(input) + around
	}
	return max(0, min(maxStarting, maxStartBytes/f.size)-f.starting)
}

// none tells that no maintenance runs; those that wait for somebody's decision are not the plan's to wait for.
func (f *flights) none() bool {
	for i := range f.state.Nodes {
		if n := &f.state.Nodes[i]; n.State == rollout.Running || n.Ending() {
			return false
		}
	}
	return f.settled()
}

// settled tells that nothing is under way that a next run could not find out about.
func (f *flights) settled() bool { return f.starting == 0 && f.telling == 0 }

func (f *flights) maintenanceID(node string) string {
	return api.MaintenanceID(f.cluster, node, f.spec.Requestor)
}

// begin starts the maintenance of a node.
func (f *flights) begin(i int) {
	n := &f.state.Nodes[i]
	name := n.Name
	n.State, n.Since, n.RunID, n.Note, n.NotBefore = rollout.Running, f.now().Unix(), "", "", 0
	n.Tries++
	f.ours[name] = true
	f.starting++
	f.dirty = true
	input, err := f.spec.InputOf(name, f.now())
	if err != nil {
		f.starting--
		f.ended(name, planactivity.Ended{Phase: api.Failed, Message: err.Error()})
		return
	}
	ctx := workflow.WithChildOptions(f.ctx, call.Child(f.maintenanceID(name), fmt.Sprintf("maintenance of %s by plan %s", name, f.name)))
	child := workflow.ExecuteChildWorkflow(ctx, api.NodeMaintenanceType, json.RawMessage(input))
	workflow.GoNamed(f.ctx, "maintenance of "+name, func(ctx workflow.Context) { f.follow(ctx, name, child) })
}

// follow waits for the start and for the end of a maintenance that this run began.
func (f *flights) follow(ctx workflow.Context, name string, child workflow.ChildWorkflowFuture) {
	var run workflow.Execution
	err := child.GetChildWorkflowExecution().Get(ctx, &run)
	f.starting--
	f.dirty = true
	if err != nil {
		delete(f.ours, name)
		if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
			f.ended(name, planactivity.Ended{Phase: api.Failed, Message: "it could not be started: " + call.Cause(err)})
		}
		return // one that runs already is waited for like those that an earlier run began
	}
	f.change(name, func(n *rollout.Node) { n.RunID = run.RunID })
	var result api.Result
	err = child.Get(ctx, &result)
	delete(f.ours, name)
	f.dirty = true
	var terminated *temporal.TerminatedError
	if errors.As(err, &terminated) {
		return // a reset terminates too, and goes on: who asks the server finds out
	}
	f.ended(name, planactivity.EndOf(planactivity.Flight{RunID: run.RunID}, result, err))
}

// attend has an activity wait for the ends of the maintenances that this run did not begin.
func (f *flights) attend() {
	var wanted []string
	var flights api.List[planactivity.Flight]
	// Who is told something may have to be found first.
	if !f.leaving() || f.telling > 0 {
		// Those that run come first: of very many, the first are told of at once.
		for _, first := range []bool{true, false} {
			for i := range f.state.Nodes {
				n := &f.state.Nodes[i]
				runs := n.State == rollout.Running
				if (runs || n.State == rollout.Held || n.Ending()) && runs == first && !f.ours[n.Name] {
					wanted = append(wanted, n.Name)
					flights = append(flights, planactivity.Flight{WorkflowID: f.maintenanceID(n.Name), RunID: n.RunID})
				}
			}
		}
	}
	if slices.Equal(wanted, f.waitsFor) {
		return
	}
	if f.stopWaiting != nil {
		f.stopWaiting()
		f.stopWaiting = nil
	}
	if f.waitsFor = wanted; len(wanted) == 0 {
		return
	}
	ctx, cancel := workflow.WithCancel(f.ctx)
	f.stopWaiting = cancel
	f.wait(ctx, flights)
}

// wait takes what the activity says.
func (f *flights) wait(ctx workflow.Context, flights api.List[planactivity.Flight]) {
	future := workflow.ExecuteActivity(call.Long(ctx, "wait for the ends of "+number.Of(len(flights), "maintenance")), call.Plans.AwaitEnds, flights)
	workflow.GoNamed(f.ctx, "ends", func(gctx workflow.Context) {
		var ended []planactivity.Ended
		err := future.Get(gctx, &ended)
		if ctx.Err() != nil {
			return // another one waits by now
		}
		f.waitsFor, f.stopWaiting, f.dirty = nil, nil, true
		if err != nil {
			workflow.GetLogger(gctx).Error("waiting for the ends of maintenances", "error", err)
			return
		}
		for _, one := range ended {
			_, node, _, err := api.ParseMaintenanceID(one.WorkflowID)
			switch {
			case err != nil:
			case one.Going:
				f.found(node, one)
			default:
				f.ended(node, one)
			}
		}
	})
}

// found takes which run a node's maintenance is, which the plan has begun and not heard of.
func (f *flights) found(name string, how planactivity.Ended) {
	f.change(name, func(n *rollout.Node) {
		if n.State != rollout.Running || n.RunID != "" {
			return
		}
		n.RunID = how.RunID
		if how.Held {
			f.heard(api.NodeNews{Node: name, RunID: how.RunID, Held: true, Why: how.Message})
		}
	})
}

// triesOfBusy is how often a node is tried that somebody else's maintenance has, where the strategy does not say.
const (
	triesOfBusy  = 3
	busyComeBack = 10 * time.Minute
)

// ended takes the end of a node's maintenance.
func (f *flights) ended(name string, how planactivity.Ended) {
	f.dirty = true
	now := f.now()
	blocked := how.Foreign || (how.Phase == api.Failed && how.Kind == api.ErrorNotDrained && f.spec.Strategy.OnBlocked != rollout.WaitBlocked)
	f.change(name, func(n *rollout.Node) {
		if n.State != rollout.Running && n.State != rollout.Held && !n.Ending() {
			return
		}
		if n.RunID != "" && how.RunID != "" && n.RunID != how.RunID {
			return
		}
		if n.Ending() && how.Phase == api.Completed {
			n.RunID = ""
			return // since the node was back, it is over
		}
		n.Since, n.RunID, n.Note = now.Unix(), "", how.Message
		if n.State != rollout.Held && how.Phase != api.Cancelled {
			n.Forgiven = false // what somebody forgave was repaired meanwhile: this is another failure
		}
		if blocked && !how.Unknown {
			f.blocked(n, now)
		} else {
			f.settle(n, how)
		}
		delete(f.state.Skipping, n.Name)
		f.state.Progress.LastEnd = now
	})
}

// settle gives a node the state that follows from the end of its maintenance.
func (f *flights) settle(n *rollout.Node, how planactivity.Ended) {
	switch {
	case how.Unknown:
		n.State, n.Note = rollout.Failed, "nothing is known of its maintenance"
	case how.Phase == api.Completed:
		n.State, n.Note = rollout.Done, ""
	case how.Phase == api.NodeGone, how.Kind == api.ErrorNodeNotFound:
		n.State = rollout.Gone
	case how.Phase == api.Cancelled && (f.state.Stop != "" || f.state.Skipping[n.Name]):
		n.State = rollout.Skipped
	default:
		n.State = rollout.Failed
	}
}

// blocked is what becomes of a node that could not be emptied.
func (f *flights) blocked(n *rollout.Node, now time.Time) {
	s := f.spec.Strategy
	if s.OnBlocked == rollout.AbortBlocked {
		n.State = rollout.Failed
		f.stop(api.PlanAborted, bounds.Cut(fmt.Sprintf("node %s was blocked: %s", n.Name, n.Note), bounds.Text))
		return
	}
	tries, pause := s.Tries, s.ComeBackAfter.Std()
	if s.OnBlocked == rollout.WaitBlocked {
		tries, pause = triesOfBusy, busyComeBack
	}
	if n.Tries >= tries {
		n.State = rollout.Failed
		return
	}
	n.State, n.NotBefore, n.Forgiven = rollout.Waiting, now.Add(pause).Unix(), false
	f.state.Digest = matchAgain
}

// heard takes what a maintenance says of itself.
func (f *flights) heard(news api.NodeNews) {
	n := f.node(news.Node)
	if n == nil || n.RunID == "" || n.RunID != news.RunID {
		return
	}
	switch {
	case news.Back && n.State == rollout.Running:
		n.State, n.Since, n.Note = rollout.Done, f.now().Unix(), ""
		f.state.Progress.LastEnd = f.now()
	case news.Held && n.State == rollout.Running:
		n.State, n.Since, n.Note, n.Forgiven = rollout.Held, f.now().Unix(), bounds.Cut(news.Why, maxNote), false
		f.state.Progress.LastEnd = f.now()
	case !news.Held && n.State == rollout.Held:
		// It stays forgiven: who releases it, or has it cancelled, gives up what has failed already.
		n.State, n.Since, n.Note = rollout.Running, f.now().Unix(), ""
	}
	f.dirty = true
}

// tell sends a message to the maintenance of a node, once it is there and known to be the plan's own.
func (f *flights) tell(name, message string, payload any) {
	f.telling++
	f.dirty = true
	workflow.GoNamed(f.ctx, message+" to "+name, func(ctx workflow.Context) {
		defer func() { f.telling--; f.dirty = true }()
		if err := workflow.Await(ctx, func() bool { return !f.sought(name) }); err != nil {
			return
		}
		if n := f.node(name); n == nil || n.RunID == "" {
			return // it has ended, or never was
		}
		if err := workflow.SignalExternalWorkflow(ctx, f.maintenanceID(name), "", message, payload).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Warn("a maintenance was not told", "node", name, "message", message, "error", err)
		}
	})
}

// sought tells that a node's maintenance was begun, and that nothing is known of its run yet.
func (f *flights) sought(name string) bool {
	n := f.node(name)
	return n != nil && n.State == rollout.Running && n.RunID == ""
}

// stop begins nothing more, and takes back the maintenances whose nodes are not Ready yet.
func (f *flights) stop(phase api.PlanPhase, why string) {
	if f.state.Stop != "" {
		return
	}
	f.state.Stop, f.state.StoppedWhy, f.dirty = phase, why, true
	for i := range f.state.Nodes {
		if n := &f.state.Nodes[i]; n.State == rollout.Running {
			f.tell(n.Name, api.MsgCancel, api.Cancel{Message: f.said(why), Run: n.RunID, BeforeReady: true})
		}
	}
}
