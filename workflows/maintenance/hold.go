package maintenance

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
)

// hold marks and cordons the node, restores that where others undo it (guard.go), shows the phase on the node (show.go), and releases it.
type hold struct {
	*core
	*holdState
	*shownState
	*outOfServiceState
	changes []api.NodeChange
	// releasing is set while the node is given back: nothing is set on it again.
	releasing bool
	// saidRestored is set once it is noted that Temporal was restored to an earlier state.
	saidRestored bool
	// moving is set while pods and volumes leave a node that is off.
	moving bool
	// guarding is set while guard reacts to a change of the node, which cancelGuard ends.
	guarding    bool
	cancelGuard workflow.CancelFunc
}

type holdState struct {
	// Touched is set once the node may carry the mark, and has to be released.
	Touched bool   `json:"touched,omitempty"`
	UID     string `json:"uid,omitempty"`
	// BootID is the node's boot ID at the cordon.
	BootID string `json:"bootId,omitempty"`
	// Prior is what the node was like before the maintenance: the mark, which has that too, may be removed.
	Prior *node.Prior `json:"prior,omitempty"`
	// CordonsRestored counts how often a lifted cordon was set again, MarksRestored how often a step found the mark gone.
	CordonsRestored int `json:"cordonsRestored,omitempty"`
	MarksRestored   int `json:"marksRestored,omitempty"`
	// Contested is set where somebody keeps lifting the cordon, and it is not set again.
	Contested bool `json:"contested,omitempty"`
	// CordonDue is when a cordon that was lifted again and again is set again.
	CordonDue time.Time `json:"cordonDue,omitzero"`
}

const (
	// maxCordonsRestored is how often a lifted cordon is set again.
	maxCordonsRestored = 3
	// cordonPause is the first pause before a cordon that plans share is set again after that; it doubles up to pauseMost.
	cordonPause = time.Minute
	// maxMarksRestored is how often a step that lost the mark is taken again.
	maxMarksRestored = 3
	// retryRestored and retryRestoredMost bound the pause before a node is tried again whose release Temporal does not know.
	retryRestored     = 15 * time.Second
	retryRestoredMost = 5 * time.Minute
	// retryRelease is the first pause between two releases, releaseWithin how long one is tried: the history of a maintenance that
	// cannot give its node back for months stays short.
	retryRelease  = 30 * time.Second
	releaseWithin = 6 * time.Hour
)

// cordon marks the node, and makes it unschedulable unless the specification says otherwise.
func (h *hold) cordon() error {
	if err := h.control.proceed(); err != nil {
		return err
	}
	h.journal.enter(api.Cordoning, "")
	h.Touched, h.Contested = true, false
	held, err := h.holdUnlessRestored(h.spec.Cordon, nodeevent.Event{Reason: api.EventStarted, Message: h.summary()})
	if err != nil {
		return h.control.stepFailed(err)
	}
	h.BootID = held.BootID
	h.journal.change(func(s *api.Status) { s.CordonedAt, s.FoundCordoned = new(h.control.now()), held.WasUnschedulable })
	h.journal.announce(notices.MaintenanceStarted, "")
	return nil
}

func (h *hold) holdNode(ctx workflow.Context, cordon bool, event nodeevent.Event) (node.Held, error) {
	event.Key = fmt.Sprintf("%d/%d/%d", h.journal.status().Attempt, h.CordonsRestored, h.MarksRestored)
	ctx = call.Quick(ctx, "mark and cordon "+h.spec.Node)
	held, err := run[node.Held](ctx, call.Nodes.HoldNode, h.input(h.UID, cordon, event))
	if err == nil {
		h.took(held)
	}
	return held, err
}

func (h *hold) holdUnlessRestored(cordon bool, event nodeevent.Event) (held node.Held, err error) {
	err = h.unlessRestored(func() error {
		held, err = h.holdNode(h.control.steps, cordon, event)
		return err
	})
	return held, err
}

func (h *hold) checkReleases() error {
	return h.unlessRestored(func() error {
		ctx := call.Quick(h.control.steps, "check the releases of "+h.spec.Node)
		return workflow.ExecuteActivity(ctx, call.Nodes.CheckReleases, h.input("", h.spec.Cordon, nodeevent.Event{})).Get(ctx, nil)
	})
}

// unlessRestored calls an activity. Where Temporal was restored to a state in which the node was not given back yet, it waits until
// somebody allows the maintenance to go on.
func (h *hold) unlessRestored(try func() error) error {
	for times := 0; ; times++ {
		err := try()
		if !call.IsError(err, api.ErrorRestored) {
			return err
		}
		// No history of v0.1.0 has this error.
		h.journal.waiting("somebody's word: " + call.Cause(err))
		pause := period.Doubled(retryRestored, retryRestoredMost, times)
		_, err = h.control.awaitUpToOrContinue(pause, "see whether it is to go on", func() bool { return false })
		if err == nil {
			err = h.control.proceed()
		}
		if err != nil {
			return err
		}
		h.journal.waiting("")
	}
}

func (h *hold) input(uid string, cordon bool, event nodeevent.Event) node.HoldInput {
	status := h.journal.status()
	in := node.HoldInput{
		Node: h.spec.Node, UID: uid, RunID: h.runID, Slot: h.slot.named(), Requestor: h.spec.Requestor, Since: status.Since,
		Cordon: cordon, TakesCordon: status.CordonedAt == nil && h.spec.Object.LeavesCordon(), Phase: string(status.Phase), Event: event, Prior: h.Prior,
	}
	if status.Phase == api.Cordoning {
		in.Maintenance = h.forPolicy()
	}
	return in
}

func (h *hold) took(held node.Held) {
	h.UID, h.Prior, h.Mark = held.UID, held.Prior, held.Mark
	h.journal.change(func(s *api.Status) { s.NodeUID = held.UID })
}

// ownOutOfService remembers whether the maintenance set the taint out-of-service on the node.
func (h *hold) ownOutOfService(own bool) {
	if h.Prior != nil {
		remembered := *h.Prior
		remembered.OutOfService = own
		h.Prior = &remembered
	}
}

// retry handles the error of a step. Where somebody removed the mark, it sets the mark again, a bounded number of times, and returns nil:
// the step is to be taken again.
func (h *hold) retry(err error) error {
	if !call.IsError(err, api.ErrorNotHolder) || h.MarksRestored >= maxMarksRestored || h.control.stopped() {
		return h.control.stepFailed(err)
	}
	h.MarksRestored++
	_, err = h.holdUnlessRestored(h.wantsCordon(), markRestored)
	if errors.Is(err, errContinue) {
		h.MarksRestored-- // the next run begins with it
	}
	if err != nil {
		return h.control.stepFailed(err)
	}
	return nil
}

var markRestored = nodeevent.Event{Reason: api.EventMarkRestored, Warning: true,
	Message: "somebody removed the mark of a maintenance; it is set again"}

func (h *hold) wantsCordon() bool { return h.spec.Cordon && !h.Contested }

// release removes the mark from the node, which stops every running eviction, and undoes what Drydock changed. The same
// activity then sends the signal that gives the slot back, and the one to the plan. It is retried until it succeeds.
func (h *hold) release(event nodeevent.Event, then, plan *node.Signal) (gone bool, err error) {
	h.releasing = true
	h.stopGuard()
	h.journal.waiting("the node's release")
	event.Key = fmt.Sprint(h.journal.status().Attempt)
	for times := 0; ; times++ {
		ctx := call.Within(call.Quick(h.control.life, "release "+h.spec.Node), releaseWithin)
		released, err := run[node.Released](ctx, call.Nodes.ReleaseNode, node.ReleaseInput{
			Node: h.spec.Node, RunID: h.runID, Event: event, Prior: h.Prior, Then: then, Plan: plan,
			HideConditions: h.ConditionsShown, WithdrawRequests: h.spec.Drain.Via == spec.ViaEvictionRequest,
		})
		if err == nil {
			h.Touched, h.UID, h.Prior, h.releasing, h.ConditionsShown = false, "", nil, false, released.ConditionsLeft
			if released.Stripped {
				h.journal.note("somebody had removed the mark: the node is given back as it was before the maintenance")
			}
			if released.Differs != "" {
				h.journal.note("the mark on the node said otherwise than this maintenance remembers: " + released.Differs)
			}
			if len(released.OtherHolders) > 0 {
				h.journal.note(fmt.Sprintf("the node stays out of service for %s", strings.Join(released.OtherHolders, ", ")))
			}
			return released.Gone, nil
		}
		h.journal.waiting(fmt.Sprintf("the node's release: %s", call.Cause(err)))
		pause := period.Doubled(retryRelease, pauseMost, times)
		if h.control.awaitAlwaysUpTo(h.control.life, pause, "release "+h.spec.Node+" again", h.control.shouldContinue) {
			return false, errContinue
		}
	}
}
