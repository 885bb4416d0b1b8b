// Package outofservice is the part of a maintenance that has Kubernetes move the pods and volumes of a node whose work has
// proven that it is off: the node is tainted as out of service until they are gone.
package outofservice

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/drain"
	"drydock/api"
	"drydock/workflows/call"
)

// Host is the maintenance whose node it is.
type Host struct {
	Life workflow.Context
	// Steps is the context of what ends with the maintenance.
	Steps func() workflow.Context
	// Wanted: the specification asks for it. Proven: the latest work has succeeded, which says that the node is off.
	Wanted, Proven func() bool
	// Input is the node as it is held.
	Input func() drain.OutOfServiceInput
	// Own remembers whether the taint is the maintenance's: whoever marks or releases the node goes by that.
	Own func(bool)
	// Proceed waits for a freeze, Enter shows that the requestors are done.
	Proceed func() error
	Enter   func()
	// Again marks a node anew whose mark was lost, and tells whether the step is to be taken again; Gone tells that the node
	// is another one by now and the maintenance goes on with that. Failed is how the step ends otherwise.
	Again         func(error) (bool, error)
	Gone          func(error) bool
	Failed        func(error) error
	Note, Waiting func(string)
	Warn          func(reason, text string) error
}

// State is what the next run of the maintenance has to know: what it was about has been done.
type State struct {
	Over bool `json:"over,omitempty"`
}

// OutOfService is the part of one maintenance.
type OutOfService struct {
	Host
	State
	// waits is set while pods and volumes are waited for.
	waits bool
}

const (
	// silentWithin is how long Kubernetes may take to notice that a node is off: it does after 50 s, or as its
	// node-monitor-grace-period says. goneWithin is how long its pods and volumes may take.
	silentWithin = 5 * time.Minute
	goneWithin   = 15 * time.Minute
)

// Begin forgets what an earlier attempt has done.
func (o *OutOfService) Begin() { o.Over = false }

// Move has the pods and volumes of the node go elsewhere, where that is asked for and the node is proven to be off.
func (o *OutOfService) Move() error {
	if !o.Wanted() || o.Over {
		return nil
	}
	if !o.Proven() {
		o.Note("no work has proven that the node is off: it is not tainted as out of service")
		return nil
	}
	o.Enter()
	for {
		if err := o.Proceed(); err != nil {
			return err
		}
		err := o.move()
		if err == nil {
			break
		}
		if o.Gone(err) {
			o.Note("the node was deleted, and its taint with it")
			break
		}
		if again, err := o.Again(err); !again {
			return o.Failed(err)
		}
	}
	o.Own(false)
	o.Over = true
	o.Waiting("")
	return nil
}

func (o *OutOfService) move() error {
	tainted, err := o.taint()
	if err != nil || !tainted {
		return err
	}
	return o.await()
}

// taint taints the node, and tells whether there is anything to wait for.
func (o *OutOfService) taint() (tainted bool, err error) {
	o.Waiting("Kubernetes to notice that the node is off")
	// From now on it may be there.
	o.Own(true)
	in := o.Input()
	in.Until = workflow.Now(o.Life).Add(silentWithin)
	var taken drain.TakenOutOfService
	ctx := call.In(call.Stoppable(o.Steps(), "taint "+in.Node+" as out of service"), api.LaneDrains)
	if err := workflow.ExecuteActivity(ctx, call.Drains.TakeOutOfService, in).Get(ctx, &taken); err != nil {
		return false, err
	}
	o.Own(taken.Tainted)
	switch {
	case taken.Restarted:
		o.Note("the node has restarted, which has ended its pods: it is not tainted as out of service")
		return false, nil
	case taken.Answers:
		text := fmt.Sprintf("the node still answers %s after its work has proven that it is off: it is not tainted as out of service", silentWithin)
		o.Note(text)
		return false, o.Warn("StillAnswers", text)
	case taken.CameBack:
		return false, o.cameBack("was being tainted")
	case taken.Tainted:
		o.Note("the node is tainted as out of service: its pods and volumes go elsewhere")
	default:
		o.Note("somebody else has tainted the node as out of service, and has to take that off")
	}
	return true, nil
}

func (o *OutOfService) await() error {
	o.Waiting("the node's pods to be deleted, and its volumes to be detached")
	o.waits = true
	defer func() { o.waits = false }()
	in := o.Input()
	in.Until, in.BlockedSignal = workflow.Now(o.Life).Add(goneWithin), api.SignalDrainBlocked
	var left drain.LeftOutOfService
	ctx := call.In(call.Stoppable(o.Steps(), "wait for pods and volumes to leave "+in.Node), api.LaneDrains)
	if err := workflow.ExecuteActivity(ctx, call.Drains.AwaitOutOfService, in).Get(ctx, &left); err != nil {
		return err
	}
	switch {
	case left.CameBack:
		return o.cameBack("was tainted")
	case left.Left != "":
		text := fmt.Sprintf("not all left the node while it was out of service, for %s: %s", goneWithin, left.Left)
		o.Note(text)
		return o.Warn("OutOfServiceExpired", text)
	case left.Untainted:
		o.Note("somebody took the taint out-of-service off the node")
	default:
		o.Note("its pods are gone and its volumes detached: it is not out of service any more")
	}
	return nil
}

// cameBack says that the work's proof did not hold: the node runs.
func (o *OutOfService) cameBack(while string) error {
	text := fmt.Sprintf("the kubelet answered while the node %s as out of service: the taint is taken off", while)
	o.Note(text)
	return o.Warn("CameBack", text)
}

// Waits tells that what the activity says is about what is left on the node.
func (o *OutOfService) Waits() bool { return o.waits }

// Blocked takes what is left.
func (o *OutOfService) Blocked(p api.DrainProgress) {
	if len(p.Blockers) == 0 {
		return
	}
	text := fmt.Sprintf("what is left on the node that is out of service: %s %s", p.Blockers[0].Pod, p.Blockers[0].Message)
	if more := len(p.Blockers) - 1 + p.MoreBlockers; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	o.Waiting(text)
}
