// Package profiletransition is the workflow that carries out one transition of a profile of a node: its triggers one after the other,
// and with the last the new state on the node.
package profiletransition

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/drain"
	activity "drydock.dev/drydock/activities/profile"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

// tellWithin bounds the attempts to send a maintenance that it is done: the evaluation of nodes sends it too.
const tellWithin = 10 * time.Minute

type transition struct {
	ctx workflow.Context
	in  activity.CarryInput
	// doing is what is under way, blocked what keeps a drain from ending.
	doing   string
	blocked api.DrainProgress
	// maintains: it has had the node maintained.
	maintains bool
	slot      slot
}

// ProfileTransition carries out what Profiles has decided, and nothing else: its input is an api.ProfileTransitionInput. It ends with
// what it came to, and fails only where it was started by somebody else.
func ProfileTransition(ctx workflow.Context, input converter.RawValue) (api.ProfileTransitionEnded, error) {
	t, err := begin(ctx, inbox.Payload(input))
	if err != nil {
		return api.ProfileTransitionEnded{}, inbox.InvalidSpec(err)
	}
	defer t.giveBackSlot()
	if t.in.NeedsSlot() {
		if why := t.acquire(); why != "" {
			return api.ProfileTransitionEnded{Error: bounds.Cut(why, bounds.Text), Waits: true, OpensAt: t.slot.opensAt}, nil
		}
	}
	moved, why := t.run()
	if why == "" {
		return api.ProfileTransitionEnded{Moved: moved}, nil
	}
	if t.maintains {
		t.end("", why) // it was begun for what does not happen
	}
	t.giveUp(why)
	return api.ProfileTransitionEnded{Error: bounds.Cut(why, bounds.Text)}, nil
}

// begin reads the input, and refuses one that Profiles has not sent.
func begin(ctx workflow.Context, input []byte) (*transition, error) {
	info := workflow.GetInfo(ctx)
	cluster, profile, node, err := api.ParseProfileTransitionID(info.WorkflowExecution.ID)
	if err != nil {
		return nil, err
	}
	if cluster != api.ClusterOf(info.TaskQueueName) {
		return nil, fmt.Errorf("workflow ID %q is of cluster %q, and its task queue is of cluster %q",
			info.WorkflowExecution.ID, cluster, api.ClusterOf(info.TaskQueueName))
	}
	if parent := info.ParentWorkflowExecution; parent == nil || parent.ID != api.ProfilesID(cluster) {
		return nil, errors.New("only workflow " + api.ProfilesID(cluster) + " begins transitions: a profile's checks say when")
	}
	in, err := inbox.Decode[api.ProfileTransitionInput](input)
	if err == nil {
		err = in.Validate()
	}
	if err == nil && (in.Profile != profile || in.Node != node) {
		err = fmt.Errorf("profile, node: %q, %q are not those of workflow ID %q", in.Profile, in.Node, info.WorkflowExecution.ID)
	}
	if err != nil {
		return nil, err
	}
	t := &transition{ctx: ctx, in: activity.CarryInput{
		ProfileTransitionInput: in, RunID: cmp.Or(info.FirstRunID, info.OriginalRunID, info.WorkflowExecution.RunID),
	}}
	box := inbox.New(ctx, t)
	inbox.Receive(box, api.SignalDrainBlocked, func(p api.DrainProgress) {
		t.blocked = p
		t.describe()
	})
	if err := t.listenForSlot(box); err != nil {
		return nil, err
	}
	box.Open()
	return t, nil
}

// Refused records a signal that cannot be read.
func (t *transition) Refused(name string, _ api.Message, _ api.Outcome, why error) {
	workflow.GetLogger(t.ctx).Info("ignored a signal", "name", name, "why", why)
}

// run carries out the triggers. It returns when the node was in its new state, or why it is not.
func (t *transition) run() (moved time.Time, why string) {
	for {
		t.does("change " + t.in.Node)
		var carried activity.Carried
		if err := t.carry(&carried); err != nil {
			return moved, t.cause(err)
		}
		t.in.Held = false
		switch {
		case carried.Refused != "":
			return moved, carried.Refused
		case carried.Do == "":
			if t.in.Maintained != "" && !t.in.Enter { // the maintenance of the state that the profile leaves
				t.end(t.in.Maintained, fmt.Sprintf("profile %s is %s", t.in.Profile, t.in.To))
			}
			return carried.Moved, ""
		}
		t.in.Next = carried.Next
		if why := t.work(carried); why != "" {
			return moved, why
		}
		t.in.Next++
	}
}

// carry brings the node as far as the next trigger that takes its time. A cancellation does not end it: what it has taken would not be
// known, and could not be given back.
func (t *transition) carry(carried *activity.Carried) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := workflow.NewDisconnectedContext(t.ctx)
	defer cancel()
	return workflow.ExecuteActivity(call.Quick(ctx, t.doing), call.Profiles.CarryTransition, t.in).Get(ctx, carried)
}

// work carries out a trigger that takes its time, and says why it was not.
func (t *transition) work(c activity.Carried) (why string) {
	var worked activity.Worked
	var err error
	switch c.Do {
	case activity.DoDrain:
		t.in.Held = true
		t.does("drain " + t.in.Node)
		err = workflow.ExecuteActivity(call.In(call.Stoppable(t.ctx, t.doing), api.LaneDrains), call.Drains.Drain, t.drain(c)).Get(t.ctx, nil)
	case activity.DoJob:
		t.does("run a Job on " + t.in.Node)
		err = workflow.ExecuteActivity(call.Stoppable(t.ctx, t.doing), call.Profiles.RunTriggerJob, activity.WorkInput{CarryInput: t.in}).Get(t.ctx, &worked)
	case activity.DoMaintenance:
		t.does("have " + t.in.Node + " maintained")
		t.maintains = true
		err = workflow.ExecuteActivity(call.Stoppable(t.ctx, t.doing), call.Profiles.MaintainForProfile, activity.WorkInput{CarryInput: t.in}).Get(t.ctx, &worked)
	default:
		return fmt.Sprintf("%.40q is nothing that this worker does", c.Do)
	}
	if err != nil {
		return t.cause(err)
	}
	return worked.Failed
}

// drain is how maintenance-controller empties a node: everything leaves but DaemonSets' and static pods, budgets are kept, and it goes
// on until the node is empty.
func (t *transition) drain(c activity.Carried) drain.Input {
	return drain.Input{
		Node: t.in.Node, UID: t.in.UID, RunID: t.in.RunID, Why: fmt.Sprintf("profile %s goes to %s", t.in.Profile, t.in.To),
		Drain:     spec.Drain{Mode: spec.ModeEvict, Force: true, DeleteEmptyDir: true, Via: spec.ViaEviction, OnNodeNotReady: spec.WaitForKubelet},
		EndsStuck: c.Force, Began: c.Cordoned, Cordoned: c.Cordoned, BlockedSignal: api.SignalDrainBlocked,
	}
}

// end ends a maintenance of the profile; without a run, the one that runs.
func (t *transition) end(run, why string) {
	t.does("end the maintenance of " + t.in.Node)
	in := activity.EndMaintenanceInput{
		Left: activity.Left{Node: t.in.Node, Requestor: api.ProfileRequestor(t.in.Profile), RunID: run, Done: true}, Why: why,
	}
	t.tidyUp(call.Profiles.EndProfileMaintenance, in, "the end of the maintenance is requested later")
}

// giveUp takes back what the transition holds.
func (t *transition) giveUp(why string) {
	t.does("give up: " + why)
	in := activity.GiveUpInput{CarryInput: t.in, Why: bounds.Cut(why, bounds.Text)}
	t.tidyUp(call.Profiles.GiveUpTransition, in, "a transition that was not carried out could not be tidied up after")
}

// tidyUp calls an activity also where the transition was cancelled, and goes on where the activity fails.
func (t *transition) tidyUp(does, in any, failed string) {
	ctx, cancel := workflow.NewDisconnectedContext(t.ctx)
	defer cancel()
	if err := workflow.ExecuteActivity(call.Within(call.Quick(ctx, t.doing), tellWithin), does, in).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn(failed, "node", t.in.Node, "error", err)
	}
}

func (t *transition) cause(err error) string {
	if t.ctx.Err() != nil {
		return "it was cancelled"
	}
	return bounds.Cut(call.Cause(err), bounds.Text)
}

func (t *transition) does(what string) {
	t.doing = bounds.Cut(what, bounds.Text)
	t.describe()
}

// describe shows the transition in the Temporal UI.
func (t *transition) describe() {
	text := fmt.Sprintf("profile %s: %s to %s", t.in.Profile, t.in.From, t.in.To)
	if t.in.Enter {
		text = fmt.Sprintf("profile %s: on entering %s", t.in.Profile, t.in.To)
	}
	text += "; " + t.doing
	if t.slot.wants && t.slot.grantedAt == nil && t.slot.answer != "" {
		text += ": " + t.slot.answer
	}
	if t.blocked.Remaining > 0 {
		text += "; " + number.Of(t.blocked.Remaining, "pod") + " left"
		for _, b := range t.blocked.Blockers {
			text += fmt.Sprintf("; %s: %s", b.Pod, b.Reason)
		}
	}
	workflow.SetCurrentDetails(t.ctx, markdown.Text(bounds.Cut(text, bounds.Text)))
}
