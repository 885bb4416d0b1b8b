package maintenance

import (
	"fmt"
	"time"

	"drydock.dev/drydock/activities/drain"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
)

// outOfServiceState has whether the pods and volumes have moved, in this attempt.
type outOfServiceState struct {
	Moved bool `json:"over,omitempty"`
}

const (
	// silentWithin is how long Kubernetes may take to notice that a node is off: it does after 50 s, or as its
	// node-monitor-grace-period says. goneWithin is how long its pods and volumes may take.
	silentWithin = 5 * time.Minute
	goneWithin   = 15 * time.Minute
)

// takeOutOfService has Kubernetes move the pods and volumes of a node elsewhere, if the specification wants that and the latest work has
// proven that the node is off: the node is tainted as out of service until they are gone.
func (h *hold) takeOutOfService(proven bool) error {
	if !h.spec.OutOfService || h.Moved {
		return nil
	}
	if !proven {
		h.journal.note("no work has proven that the node is off: it is not tainted as out of service")
		return nil
	}
	if h.journal.phase() != api.Validating {
		h.journal.enter(api.Validating, "the work has proven that the node is off")
		h.showPhase()
	}
	for {
		if err := h.control.proceed(); err != nil {
			return err
		}
		tainted, err := h.taint()
		if err == nil && tainted {
			err = h.awaitMoved()
		}
		if err == nil {
			break
		}
		if h.spec.OnNodeReplaced == spec.AdoptReplacement && call.IsError(err, api.ErrorNodeGone, api.ErrorNodeReplaced) {
			h.journal.note("the node was deleted, and its taint with it")
			break
		}
		if err := h.retry(err); err != nil {
			return err
		}
	}
	h.ownOutOfService(false)
	h.Moved = true
	h.journal.waiting("")
	return nil
}

func (h *hold) outOfServiceInput(within time.Duration) drain.OutOfServiceInput {
	return drain.OutOfServiceInput{Node: h.spec.Node, UID: h.UID, RunID: h.runID, BootID: h.BootID, Until: h.control.now().Add(within)}
}

// taint taints the node, and reports whether there is anything to wait for.
func (h *hold) taint() (tainted bool, err error) {
	h.journal.waiting("Kubernetes to notice that the node is off")
	// Before the call: the taint may be set although the activity fails.
	h.ownOutOfService(true)
	in := h.outOfServiceInput(silentWithin)
	ctx := call.In(call.Stoppable(h.control.steps, "taint "+in.Node+" as out of service"), api.LaneDrains)
	taken, err := run[drain.TakenOutOfService](ctx, call.Drains.TakeOutOfService, in)
	if err != nil {
		return false, err
	}
	h.ownOutOfService(taken.Tainted)
	switch {
	case taken.Restarted:
		h.journal.note("the node has restarted, which has ended its pods: it is not tainted as out of service")
		return false, nil
	case taken.Answers:
		text := fmt.Sprintf("the node still answers %s after its work has proven that it is off: it is not tainted as out of service", silentWithin)
		h.journal.note(text)
		return false, h.warn(h.control.steps, api.EventStillAnswers, text)
	case taken.CameBack:
		return false, h.cameBack("was being tainted")
	case taken.Tainted:
		h.journal.note("the node is tainted as out of service: its pods and volumes go elsewhere")
	default:
		h.journal.note("somebody else has tainted the node as out of service, and has to take that off")
	}
	return true, nil
}

func (h *hold) awaitMoved() error {
	h.journal.waiting("the node's pods to be deleted, and its volumes to be detached")
	h.moving = true
	defer func() { h.moving = false }()
	in := h.outOfServiceInput(goneWithin)
	in.BlockedSignal = api.SignalDrainBlocked
	ctx := call.In(call.Stoppable(h.control.steps, "wait for pods and volumes to leave "+in.Node), api.LaneDrains)
	left, err := run[drain.LeftOutOfService](ctx, call.Drains.AwaitOutOfService, in)
	if err != nil {
		return err
	}
	switch {
	case left.CameBack:
		return h.cameBack("was tainted")
	case left.Left != "":
		text := fmt.Sprintf("not all left the node while it was out of service, for %s: %s", goneWithin, left.Left)
		h.journal.note(text)
		return h.warn(h.control.steps, api.EventOutOfServiceOver, text)
	case left.Untainted:
		h.journal.note("somebody took the taint out-of-service off the node")
	default:
		h.journal.note("its pods are gone and its volumes detached: it is not out of service any more")
	}
	return nil
}

// cameBack warns that the node runs, despite the work's proof.
func (h *hold) cameBack(while string) error {
	text := fmt.Sprintf("the kubelet answered while the node %s as out of service: the taint is taken off", while)
	h.journal.note(text)
	return h.warn(h.control.steps, api.EventCameBack, text)
}

// leftBehind shows what is left on a node that is out of service.
func (h *hold) leftBehind(p api.DrainProgress) {
	if len(p.Blockers) == 0 {
		return
	}
	text := fmt.Sprintf("what is left on the node that is out of service: %s %s", p.Blockers[0].Pod, p.Blockers[0].Message)
	if more := len(p.Blockers) - 1 + p.MoreBlockers; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	h.journal.waiting(text)
}
