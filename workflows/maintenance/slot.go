package maintenance

import (
	"encoding/json"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/node"
	"drydock/api"
	"drydock/rules/schedule"
)

const (
	// askAgainFirst and askAgainLast bound the backoff of a request that the scheduler has not answered.
	askAgainFirst = 5 * time.Second
	askAgainLast  = time.Minute
	// reassert is how often an answered request is repeated all the same, should everything else have failed.
	reassert = 30 * time.Minute
)

// slot is the request for the node's slot, and the slot.
type slot struct {
	core
	// request is the ID of the present request, empty where there is none; requested is since when it waits, by which it
	// is ranked.
	request   string
	requested time.Time
	answer    *slotAnswer
}

// slotAnswer is what the scheduler last said of the present request.
type slotAnswer struct {
	kind string
	api.SlotAnswer
}

// acquire asks the scheduler for the node's slot and waits for it.
func (s *slot) acquire() error {
	if s.journal.phase() != api.Pending || s.journal.isFresh() {
		s.journal.enter(api.Pending, "")
	}
	status := s.journal.status()
	s.request, s.requested = fmt.Sprintf("%s/%d", s.runID, status.Attempt), status.Since
	s.answer = nil
	// Freezes are told to holders only: what was heard of one with an earlier slot is out of date.
	s.freeze.forget()
	s.journal.change(func(status *api.Status) { status.Slot = &api.SlotStatus{RequestID: s.request} })
	s.journal.waiting("an answer from the scheduler")
	request := s.asked()
	for wait := askAgainFirst; ; wait = min(2*wait, askAgainLast) {
		err := s.toScheduler(s.stop.steps, api.SignalSlotRequest, request)
		if s.stop.stopped() {
			return s.stop.interrupted()
		}
		pause := wait
		switch {
		case err != nil:
			s.journal.waiting("the scheduler, which does not run: every worker starts it within 30 s")
			pause = min(wait, askAgainFirst)
		case s.answer != nil:
			pause = reassert
		}
		if err := s.awaitAnswer(pause); err != nil {
			return err
		}
		if s.answer != nil && s.answer.kind == api.SignalSlotGranted {
			now := s.clock.now()
			s.journal.change(func(status *api.Status) { status.Slot.GrantedAt = &now })
			s.journal.enter(api.Scheduled, "")
			return nil
		}
	}
}

// asked is the present request, as it is sent and as a scheduler that begins anew may ask for it.
func (s *slot) asked() api.SlotRequest {
	return api.SlotRequest{RunID: s.runID, Request: schedule.Request{
		ID: s.request, Node: s.spec.Node, Requestor: s.spec.Requestor, Priority: s.spec.Priority, Created: s.requested,
	}}
}

// wanted is the maintenance's own word on its slot.
func (s *slot) wanted() api.SlotWanted {
	w := api.SlotWanted{Ended: s.journal.phase().Ended()}
	w.RunID = s.runID
	if status := s.journal.status(); status.Slot != nil && s.request != "" {
		w.Wants, w.SlotRequest, w.GrantedAt = true, s.asked(), status.Slot.GrantedAt
	}
	return w
}

// awaitAnswer waits until the slot is granted or refused, or it is time to ask again. That a request is pending is an
// answer too, and stretches the pause.
func (s *slot) awaitAnswer(pause time.Duration) error {
	acknowledged := s.answer != nil
	_, err := s.clock.awaitUpTo(s.stop.steps, pause, "ask the scheduler again", func() bool {
		return s.answer != nil && (s.answer.kind != api.SignalSlotPending || !acknowledged)
	})
	if err != nil {
		return s.stop.interrupted()
	}
	if s.answer == nil {
		return nil
	}
	switch s.answer.kind {
	case api.SignalSlotRefused:
		// The scheduler has forgotten the request: there is no slot to give back.
		s.request = ""
		if s.answer.Code == schedule.Quota {
			return ending{phase: api.Failed, kind: api.ErrorPolicyRefused, message: s.answer.Reason}
		}
		if s.answer.Seen || s.journal.status().CordonedAt != nil {
			return ending{phase: api.NodeGone, message: s.answer.Reason}
		}
		return ending{phase: api.Failed, kind: api.ErrorNodeNotFound, message: s.answer.Reason}
	case api.SignalSlotPending:
		if !acknowledged {
			return s.awaitAnswer(reassert)
		}
	}
	return nil
}

// answered takes the scheduler's word for the present request; answers to earlier ones are late.
func (s *slot) answered(kind string, a api.SlotAnswer) {
	status := s.journal.status()
	if a.RequestID != s.request || status.Slot == nil || status.Slot.GrantedAt != nil {
		return
	}
	s.answer = &slotAnswer{kind: kind, SlotAnswer: a}
	if kind == api.SignalSlotPending {
		s.journal.waiting(a.Reason)
	}
}

// releaseSignal gives the slot back; the activity that releases the node sends it.
func (s *slot) releaseSignal() *node.Signal {
	payload, err := json.Marshal(api.SlotRelease{RequestID: s.request})
	if err != nil {
		workflow.GetLogger(s.clock.life).Error("slot not released", "error", err)
	}
	return &node.Signal{WorkflowID: api.SchedulerID(s.cluster), Name: api.SignalSlotRelease, Payload: payload}
}

// released notes that the slot was given back.
func (s *slot) released() { s.request = "" }

// isAsked tells that there is a request, or a slot, to give back.
func (s *slot) isAsked() bool { return s.request != "" }

// withdraw takes back the request for a slot of a maintenance that did not touch its node.
func (s *slot) withdraw() {
	if !s.isAsked() {
		return
	}
	for wait := time.Second; ; wait = min(2*wait, retryRelease) {
		err := s.toScheduler(s.clock.life, api.SignalSlotRelease, api.SlotRelease{RequestID: s.request})
		if err == nil {
			s.released()
			return
		}
		s.journal.waiting(fmt.Sprintf("the scheduler to take the request back: %v", err))
		s.clock.pause(wait)
	}
}

func (s *slot) toScheduler(ctx workflow.Context, signal string, arg any) error {
	return workflow.SignalExternalWorkflow(ctx, api.SchedulerID(s.cluster), "", signal, arg).Get(ctx, nil)
}
