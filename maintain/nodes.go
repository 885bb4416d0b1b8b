package maintain

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/reset"
)

// PlanInput says which nodes are taken out of service, in which order and how many at a time.
type PlanInput struct {
	// Name is the plan's. If empty, it is made of the workflow's ID, so that the workflow adopts its plan when it begins again. A workflow that
	// calls Nodes more than once gives each call a name of its own: one that was reset cannot tell the ends of plans of one name apart.
	Name string
	// Reason is why, shown everywhere.
	Reason string
	// Fields are further fields of the plan's input, by their names in the reference, such as
	// {"selector": "pool=gpu", "strategy": {"maxParallel": 2}}. The strategy is rolling.
	Fields map[string]any
	// AwaitDecision and GiveBackOnCancel are as in Input, for each node.
	AwaitDecision, GiveBackOnCancel bool
	// Cluster is the cluster of the nodes; its zero value is right where the namespace has one cluster, with the default task queue.
	Cluster Cluster
}

// PlanEndedError says that a plan ended otherwise than completed.
type PlanEndedError struct {
	Plan string
	// Phase is its end; empty if it ended without a report, as one that was terminated does.
	Phase api.PlanPhase
	// Message says why.
	Message string
}

func (e *PlanEndedError) Error() string {
	text := fmt.Sprintf("plan %s ended %s", e.Plan, cmp.Or(string(e.Phase), "without a report"))
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Nodes does the work on each node of a plan, while the plan's maintenance holds that node, as Node does on one. The plan says which node is
// next, how many go at a time, and what a failure means: of a node whose work fails it makes a failed one, and it goes on or pauses as its
// strategy says. Where somebody has such a node tried again, the work is done again. Nodes returns when the plan has ended: nil if it
// completed, and otherwise the errors of the nodes that failed together with a PlanEndedError.
//
// Cancelled, it cancels the plan and the work, deals with each held node as Node does, and returns the context's error when the plan has ended.
//
// A workflow that was reset asks the plan which of its maintenances run, and goes on with these. If the plan has ended since, no node is
// touched any more. A reset that leaves signals out hides the plan's end from Nodes, which then starts the plan again.
func Nodes(ctx workflow.Context, in PlanInput, work Work) error {
	info := workflow.GetInfo(ctx)
	in.Name = cmp.Or(in.Name, PlanOf(info.WorkflowExecution.ID))
	if err := plan.CheckName(in.Name); err != nil {
		return invalid("PlanInput.Name", err)
	}
	r := &rollout{in: in, work: work, nodes: map[string]*node{}, link: newLink(ctx, api.PlanID(in.Cluster.Name, in.Name))}
	r.plan = in.Name
	input, err := inputOf("PlanInput", plan.RequestorOf(in.Name), in.Reason, in.Fields, r.link)
	if err != nil {
		return err
	}
	call := fmt.Sprintf("/plan/%s/%d", in.Name, info.GetCurrentHistoryLength())
	return reset.RunNamed(ctx, call, r.wasReset, func(root workflow.Context) error {
		ctx, cancel := workflow.NewDisconnectedContext(root)
		defer cancel()
		if r.reset && r.endedBefore(ctx) {
			return r.outcome(root)
		}
		return r.proceed(ctx, root, input)
	})
}

// PlanOf is the plan of a workflow that names none.
func PlanOf(workflowID string) string {
	return strings.Trim(strings.ReplaceAll(strings.ToLower(RequestorOf(workflowID)), "_", "-"), ".-")
}

// rollout is the work on the nodes of one plan.
type rollout struct {
	link
	in    PlanInput
	work  Work
	nodes map[string]*node
	// held counts the nodes with a holding.
	held int
	// told is set once the plan was told of the caller's cancellation.
	told bool
	// again is how long the next start waits where the plan ended before it was adopted.
	again time.Duration
}

// node is a node of the plan.
type node struct {
	// holding is the one under way, nil if there is none, and next is the report of another maintenance of the node, to follow it.
	holding *holding
	next    *report
	// last is the maintenance and the hold that were worked on last, and err what came of it.
	last report
	err  error
}

func (r *rollout) listens() bool { return !r.latest.ended() || r.held > 0 } // nodes may be held longer than the plan runs

func (r *rollout) proceed(ctx, root workflow.Context, input map[string]any) error {
	if err := r.start(ctx, root, r, r.in.Cluster.queue(), input); err != nil {
		return err
	}
	r.watchCancellation(ctx, root)
	works, stop := workflow.WithCancel(root)
	for {
		seen := r.changes
		r.begin(ctx, works)
		over := r.gone || r.latest.ended()
		var err error
		switch {
		case over && r.held > 0:
		case over && r.run == "" && !r.endedEarly():
			if err = r.pauseStart(root); err == nil {
				err = r.start(ctx, root, r, r.in.Cluster.queue(), input)
			}
		case over:
			return r.outcome(root)
		case root.Err() != nil && r.run == "" && r.held == 0:
			return root.Err() // the plan may be somebody else's
		case root.Err() != nil && r.run != "" && !r.told:
			r.told = true
			err = r.send(ctx, api.MsgCancel, api.Cancel{Message: api.Message{ID: "cancel-" + r.origin, By: "workflow " + r.caller}, Run: r.run})
		default:
			err = r.askIfDue(ctx)
		}
		if err != nil {
			stop()
			return cmp.Or(workflow.Await(ctx, func() bool { return r.held == 0 }), err)
		}
		if r.changes == seen {
			wake := workflow.Now(ctx).Add(askLast)
			if !over {
				wake = r.askAt()
			}
			r.await(ctx, seen, wake)
		}
	}
}

// take takes a report of the plan, or of one of its maintenances.
func (r *rollout) take(got report) {
	switch {
	case got.Plan == "":
		r.meet(got)
	case r.accept(got):
		r.told = r.told && got.Answers == "" // a plan that was reset may not know of it
		for _, m := range got.Maintenances {
			r.meet(report{MaintenanceReport: api.MaintenanceReport{WorkflowID: r.maintenance(m.Node), Node: m.Node, RunID: m.RunID}})
		}
	}
}

// maintenance is the workflow ID of the maintenance of a node.
func (r *rollout) maintenance(node string) string {
	return api.MaintenanceID(r.in.Cluster.Name, node, plan.RequestorOf(r.in.Name))
}

// meet takes a report of a maintenance to the node's holding, or has one begin. In what the plan says of a maintenance there is no phase.
func (r *rollout) meet(got report) {
	if spec.NodeName(got.Node) != nil || got.WorkflowID != r.maintenance(got.Node) {
		return
	}
	n := r.nodes[got.Node]
	if n == nil {
		n = &node{}
		r.nodes[got.Node] = n
	}
	switch h := n.holding; {
	case h != nil && got.Phase != "" && (h.run == got.RunID || h.asked != "" && h.asked == got.Answers):
		if h.take(got); !h.gone || got.Phase != api.Ready || r.latest.ended() {
			return
		}
	case h != nil && h.run == got.RunID, r.latest.ended():
		return
	case got.Phase != "" && got.Phase != api.Ready:
		return // it is over, or waits for somebody's decision
	case h != nil:
		h.askNow() // another maintenance of the node seems to have begun: what runs says so
		h.changes++
	case n.last.RunID == got.RunID && (got.Phase == "" || n.last.Since.Equal(got.Since)):
		return // it was worked on
	}
	n.next = &got
	r.changes++
}

// begin begins the holdings that are to follow. Works is the context that cancels them.
func (r *rollout) begin(ctx, works workflow.Context) {
	for _, name := range sortedKeys(r.nodes) {
		n := r.nodes[name]
		if n.holding != nil || n.next == nil {
			continue
		}
		h := &holding{
			in:   Input{Node: name, Requestor: plan.RequestorOf(r.in.Name), AwaitDecision: r.in.AwaitDecision, GiveBackOnCancel: r.in.GiveBackOnCancel},
			work: r.work, link: link{
				caller: r.caller, origin: r.origin, signal: r.signal, id: r.maintenance(name), run: n.next.RunID,
				latest: *n.next, adopted: r.adopted || r.reset, reset: r.reset,
			},
		}
		h.askNow()
		n.holding, n.next = h, nil
		r.held++
		workflow.GoNamed(ctx, "hold "+name, func(ctx workflow.Context) {
			ctx, cancel := workflow.WithCancel(ctx)
			defer cancel()
			err := h.hold(ctx, works)
			if _, ended := errors.AsType[*EndedError](err); !ended || h.begun {
				n.err = err // the plan's end counts the others
			}
			n.holding = nil
			n.last.RunID, n.last.Since = h.run, h.tried
			r.held--
			r.changes++
		})
	}
}

// pauseStart waits before the plan is started again, where it ended before it was adopted.
func (r *rollout) pauseStart(root workflow.Context) error {
	r.again = min(max(2*r.again, time.Second), askLast)
	return workflow.Sleep(root, r.again)
}

// endedBefore reports whether the plan ended before the workflow was reset: its reports come to this run too, unless the reset leaves them out.
func (r *rollout) endedBefore(ctx workflow.Context) bool {
	reports := workflow.GetSignalChannel(ctx, r.signal)
	for {
		var got report
		if !reports.ReceiveAsync(&got) {
			return false
		}
		if r.isEnd(got) {
			return true
		}
	}
}

// endedEarly reports whether the plan ended, in a workflow that was reset, before it was asked.
func (r *rollout) endedEarly() bool { return r.reset && slices.ContainsFunc(r.early, r.isEnd) }

// isEnd takes the end of the plan if that is what is reported.
func (r *rollout) isEnd(got report) bool {
	if got.Plan != r.in.Name || !got.ended() {
		return false
	}
	r.latest = got
	return true
}

// maxErrors bounds the nodes that an error names.
const maxErrors = 20

func (r *rollout) outcome(root workflow.Context) error {
	switch {
	case root.Err() != nil:
		return root.Err()
	case api.PlanPhase(r.latest.Phase) == api.PlanCompleted:
		return nil // whose work failed was seen to by somebody
	}
	var all []error
	for _, name := range sortedKeys(r.nodes) {
		if err := r.nodes[name].err; err != nil && len(all) < maxErrors {
			all = append(all, fmt.Errorf("%s: %w", name, err))
		}
	}
	ended := &PlanEndedError{Plan: r.in.Name, Message: r.endedBy}
	if r.latest.ended() {
		ended.Phase, ended.Message = api.PlanPhase(r.latest.Phase), r.latest.Message
	}
	return errors.Join(append(all, ended)...)
}

// wasReset has the plan say which maintenances run, and has each of these confirmed before anything more is done to its node.
func (r *rollout) wasReset(ctx workflow.Context) (run string, err error) {
	if run, err = noticed(ctx); err != nil {
		return "", err
	}
	for _, name := range sortedKeys(r.nodes) {
		if n := r.nodes[name]; n.holding != nil {
			n.holding.noticeReset()
		} else {
			n.last = report{} // the node may be Ready again since
		}
	}
	r.noticeReset()
	return run, nil
}
