package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/bounds"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/schedule"
	"encoding/json"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"time"
)

const (
	// askAgainFirst and askAgainLast bound the backoff of a request that the scheduler has not answered, unheardLast that
	// of one that nobody took so many times: every worker starts the scheduler within 30 s.
	askAgainFirst = 5 * time.Second
	askAgainLast  = time.Minute
	unheardLast   = 10 * time.Minute
	unheardTimes  = 24
	// reassert is how often an answered request is repeated all the same, should everything else have failed.
	reassert = 30 * time.Minute
)

// slot is the request for the node's slot, and the slot.
type slot struct {
	core
	slotState
	answer *slotAnswer
}

// slotState is what the next run has to know. Request is the ID of the present request, empty where there is none;
// Requested is since when it waits, by which it is ranked.
type slotState struct {
	Request   string    `json:"request,omitempty"`
	Requested time.Time `json:"requested,omitzero"`
}

// slotAnswer is what the scheduler last said of the present request.
type slotAnswer struct {
	kind string
	api.SlotAnswer
}

// acquire asks the scheduler for the node's slot and waits for it.
func (s *slot) acquire() error {
	s.begin()
	request := s.asked()
	answered, unheard := backoff{first: askAgainFirst, last: askAgainLast}, backoff{first: askAgainFirst, last: unheardLast}
	for times := 0; ; times++ {
		err := s.toScheduler(s.stop.steps, api.SignalSlotRequest, request)
		if over := s.stop.decided(); over != nil {
			return over
		}
		pause := answered.pause()
		switch {
		case err != nil:
			s.journal.waiting("the scheduler, which does not run: every worker starts it within 30 s")
			if pause = askAgainFirst; times >= unheardTimes {
				pause = unheard.pause()
			}
		case s.answer != nil:
			pause = reassert
		}
		if err := s.awaitAnswer(pause); err != nil {
			return err
		}
		if s.isGranted() {
			now := s.clock.now()
			s.journal.change(func(status *api.Status) { status.Slot.GrantedAt = &now })
			s.journal.enter(api.Scheduled, "")
			return nil
		}
		if s.leave.due() {
			return errContinue
		}
	}
}

// begin begins a request, unless a run before this one did.
func (s *slot) begin() {
	s.answer = nil
	if s.Request != "" {
		return
	}
	if s.journal.phase() != api.Pending || s.journal.isFresh() {
		s.journal.enter(api.Pending, "")
	}
	status := s.journal.status()
	s.Request, s.Requested = fmt.Sprintf("%s/%d", s.runID, status.Attempt), status.Since
	// Freezes are told to holders only: what was heard of one with an earlier slot is out of date.
	s.freeze.forget()
	s.journal.change(func(status *api.Status) { status.Slot = &api.SlotStatus{RequestID: s.Request} })
	s.journal.waiting("an answer from the scheduler")
}

func (s *slot) isGranted() bool { return s.answer != nil && s.answer.kind == api.SignalSlotGranted }

// isHeld tells that the scheduler granted the slot.
func (s *slot) isHeld() bool {
	slot := s.journal.status().Slot
	return s.Request != "" && slot != nil && slot.GrantedAt != nil
}

// named is the slot as activities ask the scheduler for it.
func (s *slot) named() node.Slot {
	return node.Slot{Scheduler: api.SchedulerID(s.cluster), RequestID: s.Request}
}

// asked is the present request, as it is sent and as a scheduler that begins anew may ask for it.
func (s *slot) asked() api.SlotRequest {
	return api.SlotRequest{RunID: s.runID, Request: schedule.Request{
		ID: s.Request, Node: s.spec.Node, Requestor: s.spec.Requestor, Priority: s.spec.Priority, Created: s.Requested,
	}}
}

// wanted is the maintenance's own word on its slot.
func (s *slot) wanted() api.SlotWanted {
	w := api.SlotWanted{Ended: s.journal.phase().Ended()}
	w.RunID = s.runID
	if status := s.journal.status(); status.Slot != nil && s.Request != "" {
		w.Wants, w.SlotRequest, w.GrantedAt = true, s.asked(), status.Slot.GrantedAt
	}
	return w
}

// awaitAnswer waits until the slot is granted or refused, or it is time to ask again. That a request is pending is an
// answer too, and stretches the pause.
func (s *slot) awaitAnswer(pause time.Duration) error {
	acknowledged := s.answer != nil
	_, err := s.stop.awaitUpTo(pause, "ask the scheduler again", func() bool {
		return s.leave.due() || s.answer != nil && (s.answer.kind != api.SignalSlotPending || !acknowledged)
	})
	if err != nil {
		return err
	}
	if s.answer == nil {
		return nil
	}
	switch s.answer.kind {
	case api.SignalSlotRefused:
		// The scheduler has forgotten the request: there is no slot to give back.
		s.Request = ""
		if s.answer.Code == schedule.Quota {
			return ending{Phase: api.Failed, Kind: api.ErrorPolicyRefused, Message: s.answer.Reason}
		}
		if s.answer.Seen || s.journal.status().CordonedAt != nil {
			return ending{Phase: api.NodeGone, Message: s.answer.Reason}
		}
		return ending{Phase: api.Failed, Kind: api.ErrorNodeNotFound, Message: s.answer.Reason}
	case api.SignalSlotPending:
		if !acknowledged && !s.leave.due() {
			return s.awaitAnswer(reassert)
		}
	}
	return nil
}

// answered takes the scheduler's word for the present request; answers to earlier ones are late. A grant is the last
// word: what was said before it may come after it.
func (s *slot) answered(kind string, a api.SlotAnswer) {
	status := s.journal.status()
	if a.RequestID != s.Request || status.Slot == nil || status.Slot.GrantedAt != nil || s.isGranted() {
		return
	}
	bounds.Fit(&a)
	s.answer = &slotAnswer{kind: kind, SlotAnswer: a}
	if kind == api.SignalSlotPending {
		s.journal.waiting(a.Reason)
	}
}

// releaseSignal gives the slot back; the activity that releases the node sends it.
func (s *slot) releaseSignal() *node.Signal {
	payload, err := json.Marshal(api.SlotRelease{RequestID: s.Request})
	if err != nil {
		workflow.GetLogger(s.clock.life).Error("slot not released", "error", err)
	}
	return &node.Signal{WorkflowID: api.SchedulerID(s.cluster), Name: api.SignalSlotRelease, Payload: payload}
}

// released notes that the slot was given back.
func (s *slot) released() { s.Request = "" }

// isAsked tells that there is a request, or a slot, to give back.
func (s *slot) isAsked() bool { return s.Request != "" }

// withdraw takes back the request for a slot of a maintenance that did not touch its node.
func (s *slot) withdraw() error {
	if !s.isAsked() {
		return nil
	}
	again := backoff{first: time.Second, last: pauseMost}
	for {
		err := s.toScheduler(s.clock.life, api.SignalSlotRelease, api.SlotRelease{RequestID: s.Request})
		if err == nil {
			s.released()
			return nil
		}
		s.journal.waiting(fmt.Sprintf("the scheduler to take the request back: %v", err))
		if err := s.clock.pauseOrLeave(again.pause(), "take the request back again", s.leave); err != nil {
			return err
		}
	}
}

func (s *slot) toScheduler(ctx workflow.Context, signal string, arg any) error {
	return workflow.SignalExternalWorkflow(ctx, api.SchedulerID(s.cluster), "", signal, arg).Get(ctx, nil)
}
