package profile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/activities/profile/facts"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/profile/trigger"
)

// CarryInput is a transition, carried out up to a trigger.
type CarryInput struct {
	api.ProfileTransitionInput
	// RunID is the first run of the transition.
	RunID string `json:"runId"`
	// Next is the index of the first trigger that has not been carried out.
	Next int `json:"next,omitempty"`
	// Held: the node is held for a drain, which is over.
	Held bool `json:"held,omitempty"`
}

// About implements caller.Input.
func (in CarryInput) About() caller.Subject {
	return caller.Subject{Profile: in.Profile, Node: in.Node, RunID: in.RunID}
}

// What a transition does that takes its time.
const (
	DoDrain       = "drain"
	DoJob         = "job"
	DoMaintenance = "maintenance"
)

// Carried is how far a transition came.
type Carried struct {
	// Refused says why it is not carried out, now or at all: what it was decided on is not so any more.
	Refused string `json:"refused,omitempty"`
	// Do is what the trigger at Next does, which takes its time; empty is that the transition is done.
	Next int    `json:"next,omitempty"`
	Do   string `json:"do,omitempty"`
	// Force: the drain deletes pods that are terminating for too long. Cordoned is when the node was made unschedulable for it.
	Force    bool      `json:"force,omitempty"`
	Cordoned time.Time `json:"cordoned,omitzero"`
	// Moved is what the annotation says of when it was done.
	Moved time.Time `json:"moved,omitzero"`
	// LeftTo are the first runs of the maintenances that hold the node and are to uncordon it in the profile's place: their
	// release believes this answer, and not the mark, which anybody may have written.
	LeftTo []string `json:"leftTo,omitempty"`
}

// CarryTransition carries out triggers that only change the node, in one write, up to the first that takes its time, or to the end: then the
// new state is in the same write. Whatever it does it does only while the profile is in the state in which this was decided.
func (a *Activities) CarryTransition(ctx context.Context, in CarryInput) (Carried, error) {
	carried, err := a.carry(ctx, in)
	return carried, failure.Translate(ctx, a.Nodes.Client(), err)
}

func (a *Activities) carry(ctx context.Context, in CarryInput) (Carried, error) {
	config, err := a.config()
	if err != nil {
		return Carried{}, err
	}
	if in.Held {
		if err := a.giveBack(ctx, in); err != nil {
			return Carried{}, err
		}
	}
	if refused, err := newGate(ctx, a.Temporal).mayEnter(ctx, config, in); err != nil || refused != "" {
		return Carried{Refused: refused}, err
	}
	if err := a.removeJob(ctx, config, in, in.Next-1); err != nil {
		return Carried{}, err
	}
	if len(in.Claims) > 0 && in.Next == 0 {
		err := a.Facts.Take(ctx, in.Claims)
		if errors.Is(err, facts.ErrTaken) {
			return Carried{Refused: bounds.Cut(err.Error(), bounds.Text)}, nil
		}
		if err != nil {
			return Carried{}, err
		}
	}
	var step step
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		step, err = a.step(ctx, config, in)
		return err
	})
	if err != nil || step.Refused != "" {
		return step.Carried, err
	}
	if step.Do == DoDrain {
		return step.Carried, a.hold(ctx, in, step.node)
	}
	if step.wrote && !in.Enter && step.Do == "" {
		a.announce(ctx, in, step)
	}
	return step.Carried, nil
}

// config is the configuration in force.
func (a *Activities) config() (*rules.Config, error) {
	if a.File == nil {
		return nil, errors.New("this worker has no profiles (profiles.file)")
	}
	config, problem := a.File.Read()
	if config == nil {
		return nil, fmt.Errorf("no file of profiles was good since the worker started: %s", problem)
	}
	return config, nil
}

// step is one write of a transition.
type step struct {
	Carried
	node  *corev1.Node
	wrote bool
}

// step brings the node as far as the next trigger that takes its time.
func (a *Activities) step(ctx context.Context, config *rules.Config, in CarryInput) (step, error) {
	node, data, refused, err := a.read(ctx, in.ProfileTransitionInput)
	if err != nil || refused != "" {
		return step{Carried: Carried{Refused: refused}}, err
	}
	by := in.cordoner(ctx)
	if at, done := isDone(in.ProfileTransitionInput, data); done {
		return step{Carried: Carried{Moved: at, LeftTo: leftTo(config, in.Triggers, node, by)}, node: node}, nil
	}
	if why := mayNot(in.ProfileTransitionInput, data); why != "" {
		return step{Carried: Carried{Refused: why}}, nil
	}
	should := node.DeepCopy()
	next, done, why := triggers(config, in, should, by)
	if why != "" {
		return step{Carried: Carried{Refused: why}}, nil
	}
	now := time.Now().UTC()
	if done == nil {
		move := func() (state.Data, error) { return data.Move(in.Profile, in.From, in.To, now) }
		if in.Enter {
			move = func() (state.Data, error) { return data.Enter(in.Profile, in.To) }
		}
		after, err := move()
		if err == nil {
			err = show(config, should, after)
		}
		if err != nil {
			return step{}, err
		}
		after2, err := write(ctx, a.Nodes.Client(), node, should)
		return step{Carried: Carried{Next: next, Moved: now, LeftTo: leftTo(config, in.Triggers, should, by)}, node: after2, wrote: true}, err
	}
	if done.Do == DoDrain {
		if err := a.releaseStale(ctx, in, node); err != nil {
			return step{}, err
		}
		cordon(should, true, by)
		done.Cordoned = now
	}
	done.Next, done.LeftTo = next, leftTo(config, in.Triggers[:next], should, by)
	after, err := write(ctx, a.Nodes.Client(), node, should)
	return step{Carried: *done, node: after, wrote: true}, err
}

// read reads the node and the state of its profiles; refused says why the transition cannot go on.
func (a *Activities) read(ctx context.Context, in api.ProfileTransitionInput) (node *corev1.Node, data state.Data, refused string, err error) {
	node, err = a.Nodes.Client().CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, data, "the node is gone", nil
	case err != nil:
		return nil, data, "", fmt.Errorf("reading node %s: %w", in.Node, err)
	case string(node.UID) != in.UID:
		return nil, data, "the node was replaced by another of its name", nil
	}
	data, err = state.Read(node.Annotations[state.DataAnnotation])
	if err != nil {
		return nil, data, bounds.Cut(err.Error(), bounds.Text), nil
	}
	return node, data, "", nil
}

// isDone reports that the annotation shows the transition already: the answer to the write was lost.
func isDone(in api.ProfileTransitionInput, data state.Data) (at time.Time, done bool) {
	is, there := data.Profiles[in.Profile]
	switch {
	case !there:
		return at, false
	case in.Enter:
		return is.Transition, is.Current == in.To && is.Previous == in.To && is.Transition.Equal(in.Since)
	default:
		return is.Transition, is.Current == in.To && is.Previous == in.From && !is.Transition.Equal(in.Since) && in.From != in.To
	}
}

// mayNot says why a transition may not go on: the profile is not in the state in which it was decided.
func mayNot(in api.ProfileTransitionInput, data state.Data) string {
	is, there := data.Profiles[in.Profile]
	switch {
	case !there:
		return "the node has no state of profile " + in.Profile + " any more"
	case is.Current != in.From || !is.Transition.Equal(in.Since):
		return fmt.Sprintf("profile %s is %s since %s, and this was decided for %s since %s",
			in.Profile, is.Current, is.Transition.Format(time.RFC3339), in.From, in.Since.Format(time.RFC3339))
	}
	return ""
}

// triggers carries out those that only change the node. Stopped is the next that takes its time; nil is that there is none.
func triggers(config *rules.Config, in CarryInput, node *corev1.Node, by k8s.CordonedBy) (next int, stopped *Carried, refused string) {
	for i := in.Next; i < len(in.Triggers); i++ {
		found, known := config.Trigger(in.Triggers[i])
		if !known {
			return i, nil, fmt.Sprintf("trigger %.80q is not in the configuration any more", in.Triggers[i])
		}
		switch of := found.Of.(type) {
		case trigger.Change:
			of.Apply(node)
		case trigger.Eviction:
			if of.Action == trigger.Drain {
				return i, &Carried{Do: DoDrain, Force: of.Force}, ""
			}
			cordon(node, of.Action == trigger.Cordon, by)
		case trigger.Job:
			return i, &Carried{Do: DoJob}, ""
		case trigger.Maintenance:
			return i, &Carried{Do: DoMaintenance}, ""
		default:
			return i, nil, fmt.Sprintf("trigger %.80q is of a kind that this worker does not have", in.Triggers[i])
		}
	}
	return len(in.Triggers), nil, ""
}

// announce records the Event of a transition that was carried out, and counts it.
func (a *Activities) announce(ctx context.Context, in CarryInput, s step) {
	a.Events.Record(ctx, in.Node, s.node.UID, nodeevent.Event{
		Reason: api.EventProfileChanged, Message: fmt.Sprintf("The node is now in %s, caused by profile %s", in.To, in.Profile), Key: "moved",
	})
	if in.To == state.Maintenance {
		a.Counts.Entered(ctx, in.Profile, in.Node)
	}
}

// caller is the transition as one who acts on the node.
func (in CarryInput) caller(ctx context.Context) k8s.Caller {
	run := activity.GetInfo(ctx).WorkflowExecution
	return k8s.Caller{WorkflowID: run.ID, RunID: in.RunID, Run: run.RunID}
}

// hold takes the node for a drain: its mark is the fence around the evictions. The cordon is not the mark's.
func (a *Activities) hold(ctx context.Context, in CarryInput, node *corev1.Node) error {
	c := in.caller(ctx)
	phase := string(api.Draining)
	if mark, err := k8s.MarkOf(node); err == nil && len(mark.Holders) > 0 {
		phase = node.Labels[api.PhaseLabel] // that of the maintenance that holds the node
	}
	_, err := k8s.Hold(ctx, a.Nodes.Client(), k8s.HoldInput{
		Node: in.Node, UID: node.UID, Phase: phase, TakeOver: true,
		Holder: k8s.Holder{
			WorkflowID: c.WorkflowID, RunID: c.RunID, Run: c.Run, Namespace: a.Home.ID, Requestor: api.ProfileRequestor(in.Profile), Since: time.Now().UTC(),
		},
	})
	return err
}

// errReleased has a node read anew from which the mark of a transition was taken that does not run.
var errReleased = apierrors.NewConflict(schema.GroupResource{Resource: "nodes"}, "", errors.New("its mark has changed"))

// releaseStale takes the marks of earlier runs of the transition off the node: one that was terminated has left its own.
func (a *Activities) releaseStale(ctx context.Context, in CarryInput, node *corev1.Node) error {
	c := in.caller(ctx)
	mark, err := k8s.MarkOf(node)
	if err != nil {
		return err
	}
	for _, h := range mark.Holders {
		if h.WorkflowID != c.WorkflowID || h.RunID == c.RunID {
			continue
		}
		if _, err := k8s.Release(ctx, a.Nodes.Client(), in.Node, k8s.Caller{WorkflowID: h.WorkflowID, RunID: h.RunID}, k8s.Known{OnlyMarked: true}); err != nil {
			return err
		}
		return errReleased
	}
	return nil
}

// giveBack takes the drain's mark off the node, and nothing else.
func (a *Activities) giveBack(ctx context.Context, in CarryInput) error {
	c := in.caller(ctx)
	c.Run = ""
	_, err := k8s.Release(ctx, a.Nodes.Client(), in.Node, c, k8s.Known{OnlyMarked: true})
	return err
}

// GiveUpInput is a transition that is not carried out.
type GiveUpInput struct {
	CarryInput
	Why string `json:"why"`
}

// GiveUpTransition takes back what a transition holds, and reports that it was not carried out.
func (a *Activities) GiveUpTransition(ctx context.Context, in GiveUpInput) error {
	// Whether it holds the node only a step knows, whose answer may be lost.
	if err := a.giveBack(ctx, in.CarryInput); err != nil {
		return failure.Translate(ctx, a.Nodes.Client(), err)
	}
	if config, err := a.config(); err == nil {
		if err := a.removeJob(ctx, config, in.CarryInput, in.Next); err != nil {
			return failure.Translate(ctx, a.Nodes.Client(), err)
		}
	}
	a.Counts.Failed(in.Profile)
	uid, err := k8s.UIDOf(ctx, a.Nodes.Client(), in.Node)
	if errors.Is(err, k8s.ErrNodeGone) {
		return nil
	}
	if err != nil {
		return failure.Translate(ctx, a.Nodes.Client(), err)
	}
	a.Events.Record(ctx, in.Node, uid, nodeevent.Event{
		Reason: api.EventProfileFailed, Warning: true, Key: "failed",
		Message: fmt.Sprintf("%s for profile %s: Will stay in %s state", in.Why, in.Profile, in.From),
	})
	return nil
}
