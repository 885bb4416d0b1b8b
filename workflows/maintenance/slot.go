package maintenance

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/schedule"
	"drydock.dev/drydock/workflows/call"
)

const (
	// requestAgainFirst and requestAgainLast bound the backoff of a request without an answer, which the scheduler of a thousand others may be
	// too busy to give; undeliveredLast that of one that no scheduler received undeliveredTimes: every worker starts one within 30 s.
	requestAgainFirst = 5 * time.Second
	requestAgainLast  = 5 * time.Minute
	undeliveredLast   = 10 * time.Minute
	undeliveredTimes  = 24
	// reassert is how often an answered request is repeated, in case an answer was lost.
	reassert = 30 * time.Minute
	// opensLast is further ahead than a scheduler knows when windows open.
	opensLast = 14 * 24 * time.Hour
)

type slot struct {
	*core
	*slotState
	answer *slotAnswer
	// changed is set while the request differs from the one that was sent.
	changed bool
}

type slotState struct {
	// Request is the ID of the present request, empty if there is none. Requested is since when it waits, by which it is ranked.
	Request   string    `json:"request,omitempty"`
	Requested time.Time `json:"requested,omitzero"`
	// Gang is the gang of the maintenance, nil if it has none. Taken is set once a slot was granted to the gang: from then on the
	// maintenance requests slots alone, since the others may have given their nodes back.
	Gang  *schedule.Gang `json:"gang,omitempty"`
	Taken bool           `json:"taken,omitempty"`
}

// slotAnswer is the scheduler's latest answer to the present request.
type slotAnswer struct {
	kind string
	api.SlotAnswer
}

func (s *slot) acquire() error {
	s.begin()
	undelivered := 0
	for times := 0; ; times++ {
		s.changed = false
		err := s.toScheduler(s.control.steps, api.SignalSlotRequest, s.asked())
		if over := s.control.decided(); over != nil {
			return over
		}
		pause := period.Doubled(requestAgainFirst, requestAgainLast, times)
		switch {
		case err != nil:
			s.journal.waiting("the scheduler, which is not running: a worker starts it within 30s")
			if pause = requestAgainFirst; times >= undeliveredTimes {
				pause = period.Doubled(requestAgainFirst, undeliveredLast, undelivered)
				undelivered++
			}
		case s.answer != nil:
			pause = s.untilReasserted()
		}
		if err := s.awaitAnswer(pause); err != nil {
			return err
		}
		if s.isGranted() {
			s.Taken = s.Gang != nil
			s.journal.change(func(status *api.Status) { status.Slot.GrantedAt = new(s.control.now()) })
			s.journal.enter(api.Scheduled, "")
			return nil
		}
		if s.control.shouldContinue() {
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
	s.journal.ensure(api.Pending, "")
	status := s.journal.status()
	s.Request, s.Requested = fmt.Sprintf("%s/%d", s.runID, status.Attempt), status.Since
	*s.control.freezeState = freezeState{} // of an earlier slot: the scheduler notifies holders only
	s.journal.change(func(status *api.Status) { status.Slot = &api.SlotStatus{RequestID: s.Request} })
	s.journal.waiting("the scheduler")
}

func (s *slot) isGranted() bool { return s.answer != nil && s.answer.kind == api.SignalSlotGranted }

func (s *slot) isHeld() bool {
	slot := s.journal.status().Slot
	return s.Request != "" && slot != nil && slot.GrantedAt != nil
}

func (s *slot) named() node.Slot {
	return node.Slot{Scheduler: api.SchedulerID(s.cluster), RequestID: s.Request}
}

// asked is the present request, as it is sent, and as a scheduler that begins anew queries it.
func (s *slot) asked() api.SlotRequest {
	return api.SlotRequest{RunID: s.runID, Request: schedule.Request{
		ID: s.Request, Node: s.spec.Node, Requestor: s.spec.Requestor, Priority: s.spec.Priority, Created: s.Requested,
		Windows: s.spec.Windows, ExpectedDuration: s.spec.ExpectedDuration, IgnoreWindows: s.spec.WindowsIgnored(),
		Gang: s.gang(), Remediation: s.spec.Remediation != nil,
	}}
}

// gang is the gang of the request. Its name stays after it was taken: the scheduler knows the other members by it.
func (s *slot) gang() *schedule.Gang {
	if s.Gang == nil || !s.Taken {
		return s.Gang
	}
	return &schedule.Gang{Name: s.Gang.Name, Size: 1}
}

// join makes the maintenance a member of a valid gang, or of none where it is nil. A pending request is sent again with it at once.
func (s *slot) join(gang *schedule.Gang) {
	before := s.gang()
	s.Gang, s.Taken = gang, gang != nil && (s.isHeld() || s.Taken && s.Gang.Name == gang.Name)
	if now := s.gang(); before != now && (before == nil || now == nil || *before != *now) {
		s.changed = true
	}
}

// wanted answers the query of a scheduler that begins anew.
func (s *slot) wanted() api.SlotWanted {
	w := api.SlotWanted{Ended: s.journal.phase().Ended()}
	w.RunID = s.runID
	if status := s.journal.status(); status.Slot != nil && s.Request != "" {
		w.Wants, w.SlotRequest, w.GrantedAt = true, s.asked(), status.Slot.GrantedAt
	}
	return w
}

// awaitAnswer waits until the slot is granted or refused, or it is time to send the request again: later where the scheduler answers that
// the request is pending.
func (s *slot) awaitAnswer(pause time.Duration) error {
	acknowledged := s.answer != nil
	_, err := s.control.awaitUpTo(pause, "ask the scheduler again", func() bool {
		return s.control.shouldContinue() || s.changed || s.answer != nil && (s.answer.kind != api.SignalSlotPending || !acknowledged)
	})
	if err != nil {
		return err
	}
	if s.answer == nil {
		return nil
	}
	switch s.answer.kind {
	case api.SignalSlotRefused:
		if confirmed, err := s.confirmRefusal(); err != nil || !confirmed {
			return err
		}
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
		if !acknowledged && !s.control.shouldContinue() && !s.changed {
			return s.awaitAnswer(s.untilReasserted())
		}
	}
	return nil
}

// confirmRefusal asks the scheduler whether it refused the request: the signal may be forged. Without confirmation the slot is requested
// again.
func (s *slot) confirmRefusal() (confirmed bool, err error) {
	refusal := s.answer
	if !changed(s.control.steps, changeConfirm+"refused-slot") {
		return true, nil
	}
	ctx := call.Within(call.Quick(s.control.steps, "ask whether the slot is refused"), call.TidyWithin)
	known, err := run[api.SlotHeld](ctx, call.Nodes.AskSlot, s.named())
	if over := s.control.decided(); over != nil {
		return false, over
	}
	switch {
	case s.answer != refusal:
		return false, nil // another answer came meanwhile
	case err == nil && !known.Held && !known.Waiting && !known.Rebuilding:
		return true, nil
	}
	s.answer = nil
	note := "ignored a message that the slot is refused: the scheduler does not confirm it"
	if err != nil {
		note += ": " + call.Cause(err)
	}
	s.journal.note(note)
	return false, nil
}

// untilReasserted is how long an answer holds. Until a window opens, a request is useless.
func (s *slot) untilReasserted() time.Duration {
	if opens := s.answer.OpensAt; s.answer.Code == schedule.Window && opens != nil {
		return reassert + max(0, min(opens.Sub(s.control.now()), opensLast))
	}
	return reassert
}

// answered takes the scheduler's answer to the present request. A grant is final: an earlier answer may come after it.
func (s *slot) answered(kind string, a api.SlotAnswer) {
	status := s.journal.status()
	if a.RequestID != s.Request || status.Slot == nil || status.Slot.GrantedAt != nil || s.isGranted() {
		return
	}
	bounds.Fit(&a)
	s.answer = &slotAnswer{kind: kind, SlotAnswer: a}
	if kind == api.SignalSlotPending {
		s.journal.waiting(api.WaitsForSlot + a.Reason)
	}
}

// withdraw withdraws the request of a maintenance that did not touch its node.
func (s *slot) withdraw() error {
	for times := 0; s.Request != ""; times++ {
		err := s.toScheduler(s.control.life, api.SignalSlotRelease, api.SlotRelease{RequestID: s.Request})
		if err == nil {
			s.Request = ""
			return nil
		}
		s.journal.waiting(fmt.Sprintf("the scheduler to take the request back: %v", err))
		pause := period.Doubled(time.Second, pauseMost, times)
		if s.control.awaitAlwaysUpTo(s.control.life, pause, "take the request back again", s.control.shouldContinue) {
			return errContinue
		}
	}
	return nil
}

func (s *slot) toScheduler(ctx workflow.Context, signal string, arg any) error {
	return workflow.SignalExternalWorkflow(ctx, api.SchedulerID(s.cluster), "", signal, arg).Get(ctx, nil)
}
