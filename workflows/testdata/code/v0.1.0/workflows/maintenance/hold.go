package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/nodeevent"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/notices"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"time"
)

// hold is the node in the maintenance's hands: marked, cordoned, and guarded against what others do to it.
type hold struct {
	core
	holdState
	// slot is the one by which the node is held.
	slot    func() node.Slot
	changes []api.NodeChange
	// releasing: the node is given back, and nothing is set on it again.
	releasing bool
	// guarding is set while guard reacts to a change of the node, which cancelGuard ends.
	guarding    bool
	cancelGuard workflow.CancelFunc
}

// holdState is what the next run has to know.
type holdState struct {
	// Touched: the node may carry the mark, and has to be released.
	Touched bool `json:"touched,omitempty"`
	// UID is that of the node that is held.
	UID string `json:"uid,omitempty"`
	// BootID is the node's at the cordon.
	BootID string `json:"bootId,omitempty"`
	// Prior is what the node was like before Drydock came: a node whose mark was taken off does not tell any more.
	Prior *node.Prior `json:"prior,omitempty"`
	// CordonsRestored counts how often a lifted cordon was set again, MarksRestored how often a step found the mark gone.
	CordonsRestored int `json:"cordonsRestored,omitempty"`
	MarksRestored   int `json:"marksRestored,omitempty"`
	// Contested: somebody keeps lifting the cordon, and it is not set again.
	Contested bool `json:"contested,omitempty"`
}

const (
	// maxCordonsRestored is how often a cordon that somebody lifts is set again, before the maintenance stops fighting.
	maxCordonsRestored = 3
	// maxMarksRestored is how often a step that lost the mark is taken again.
	maxMarksRestored = 3
)

// retryRelease is the first pause between attempts to give something back.
const retryRelease = 30 * time.Second

// releaseWithin is how long one release is tried before a new one is begun: the history of a maintenance that cannot give
// its node back for months stays short either way, and it says why.
const releaseWithin = 6 * time.Hour

// cordon marks the node as held, and makes it unschedulable unless the specification says otherwise.
func (h *hold) cordon() error {
	if err := h.freeze.proceed(); err != nil {
		return err
	}
	h.journal.enter(api.Cordoning, "")
	h.Touched, h.Contested = true, false
	held, err := h.holdNode(h.stop.steps, h.spec.Cordon, nodeevent.Event{Reason: "MaintenanceStarted", Message: h.summary()})
	if err != nil {
		return h.stop.stepFailed(err)
	}
	now := h.clock.now()
	h.BootID = held.BootID
	h.journal.change(func(s *api.Status) { s.CordonedAt = &now })
	h.journal.tell(notices.MaintenanceStarted, "")
	return nil
}

func (h *hold) holdNode(ctx workflow.Context, cordon bool, event nodeevent.Event) (node.Held, error) {
	event.Key = fmt.Sprintf("%d/%d/%d", h.journal.status().Attempt, h.CordonsRestored, h.MarksRestored)
	var held node.Held
	ctx = call.Quick(ctx, "mark and cordon "+h.spec.Node)
	err := workflow.ExecuteActivity(ctx, call.Nodes.HoldNode, h.input(h.UID, cordon, event)).Get(ctx, &held)
	if err == nil {
		h.took(held)
	}
	return held, err
}

func (h *hold) input(uid string, cordon bool, event nodeevent.Event) node.HoldInput {
	status := h.journal.status()
	in := node.HoldInput{
		Node: h.spec.Node, UID: uid, RunID: h.runID, Slot: h.slot(), Requestor: h.spec.Requestor,
		Since: status.Since, Cordon: cordon, Phase: string(status.Phase), Event: event, Prior: h.Prior,
	}
	if status.Phase == api.Cordoning {
		in.Maintenance = h.forPolicy()
	}
	return in
}

func (h *hold) took(held node.Held) {
	h.UID, h.Prior, h.announcer.Mark = held.UID, held.Prior, held.Mark
	h.journal.change(func(s *api.Status) { s.NodeUID = held.UID })
}

// nodeUID is that of the node that is held.
func (h *hold) nodeUID() string { return h.UID }

// markLost tells that somebody removed the mark from the node under a step, and that it is to be set again: a bounded
// number of times.
func (h *hold) markLost(err error) bool {
	var cause *temporal.ApplicationError
	return errors.As(err, &cause) && cause.Type() == api.ErrorNotHolder && h.MarksRestored < maxMarksRestored && !h.stop.stopped()
}

func (h *hold) restoreMark() error {
	h.MarksRestored++
	_, err := h.holdNode(h.stop.steps, h.wantsCordon(), markRestored)
	return err
}

var markRestored = nodeevent.Event{Reason: "MarkRestored", Warning: true,
	Message: "somebody removed the mark of a maintenance; it is set again"}

// wantsCordon tells whether the node is to be unschedulable: as was asked, unless that was given up.
func (h *hold) wantsCordon() bool { return h.spec.Cordon && !h.Contested }

// release takes the mark off the node, which fences every eviction in flight, and with it what Drydock changed; the same
// activity then sends the signal that gives the slot back.
// It tries until it has succeeded, or goes on trying in a new run.
func (h *hold) release(event nodeevent.Event, then *node.Signal) (gone bool, err error) {
	h.releasing = true
	h.stopGuard()
	h.journal.waiting("the node and its slot to be released")
	event.Key = fmt.Sprint(h.journal.status().Attempt)
	again := backoff{first: retryRelease, last: pauseMost}
	for {
		ctx := call.Within(call.Quick(h.clock.life, "release "+h.spec.Node), releaseWithin)
		var released node.Released
		err := workflow.ExecuteActivity(ctx, call.Nodes.ReleaseNode, node.ReleaseInput{
			Node: h.spec.Node, RunID: h.runID, Event: event,
			HideConditions:   h.announcer.ConditionsShown,
			WithdrawRequests: h.spec.Drain.Via == spec.ViaEvictionRequest,
			Prior:            h.Prior,
			Then:             then,
		}).Get(ctx, &released)
		if err == nil {
			h.Touched, h.UID, h.Prior, h.releasing, h.announcer.ConditionsShown = false, "", nil, false, false
			if released.Stripped {
				h.journal.note("somebody had removed the mark: the node is given back as it was before the maintenance")
			}
			if len(released.OtherHolders) > 0 {
				h.journal.note(fmt.Sprintf("the node stays out of service for %v", released.OtherHolders))
			}
			return released.Gone, nil
		}
		h.journal.waiting(fmt.Sprintf("the node to be released: %s", call.Cause(err)))
		if err := h.clock.pauseOrLeave(again.pause(), "release "+h.spec.Node+" again", h.leave); err != nil {
			return false, err
		}
	}
}
