package scheduler

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/inbox"
)

func (s *scheduler) listen() error {
	s.messages = inbox.New(s.ctx, s)
	if err := errors.Join(
		query(s, api.QueryState, "limits, freezes, holders and a page of the pending requests",
			func(q api.StateRequest) (api.State, error) { return s.page(q), nil }),
		query(s, api.QuerySlotsHeld, "which of some requests hold their slots, and which wait for them", s.slotsHeld),
		workflow.SetQueryHandlerWithOptions(s.ctx, api.QuerySummary, s.summary,
			workflow.QueryHandlerOptions{Description: "counts of slots, of pending requests and of stray marks"}),
		update(s, api.UpdateSetLimits, s.controls.checkLimits, s.setLimits),
		update(s, api.UpdateFreeze, s.controls.checkFreeze, s.freeze),
		update(s, api.UpdateThaw, s.controls.checkThaw, s.thaw),
	); err != nil {
		return err
	}
	inbox.Receive(s.messages, api.SignalSlotRequest, func(r api.SlotRequest) { s.intake.accept(arrival{request: &r}) })
	inbox.Receive(s.messages, api.SignalSlotRelease, func(r api.SlotRelease) { s.intake.accept(arrival{release: &r}) })
	inbox.Receive(s.messages, api.SignalWindowsChanged, s.hours.changed)
	s.messages.Open()
	return nil
}

func query[T, R any](s *scheduler, name, description string, answer func(T) (R, error)) error {
	return workflow.SetQueryHandlerWithOptions(s.ctx, name, func(raw converter.RawValue) (none R, err error) {
		asked, err := inbox.Decode[T](inbox.Payload(raw))
		if err != nil {
			return none, err
		}
		return answer(asked)
	}, workflow.QueryHandlerOptions{Description: description})
}

func (s *scheduler) slotsHeld(asked api.SlotQuestion) (api.SlotsHeld, error) {
	if asks := len(asked.RequestIDs); asks > api.MaxSlotsAsked {
		return api.SlotsHeld{}, fmt.Errorf("requestIds: %d; ask for at most %d at once", asks, api.MaxSlotsAsked)
	}
	notice := s.controls.notice()
	answer := api.SlotsHeld{Held: []string{}, Rebuilding: !s.Rebuilt, Frozen: notice.Reasons, Revision: notice.Revision}
	for _, id := range asked.RequestIDs {
		h, held := s.slots.holder(id)
		switch {
		case h.Assumed:
			answer.Rebuilding = true
		case held:
			answer.Held = append(answer.Held, id)
		case s.slots.knows(id):
			answer.Waiting = append(answer.Waiting, id)
		}
	}
	return answer, nil
}

// update takes an update that changes what people decide, and answers with the state.
func update[T any](s *scheduler, name string, check func(T) error, apply func(T)) error {
	return inbox.Update(s.messages, name, check, func(ctx workflow.Context, read func() (T, error)) (api.State, error) {
		if err := s.awaitRebuilt(ctx, name); err != nil {
			return api.State{}, err
		}
		payload, err := read()
		if err == nil {
			apply(payload)
		}
		s.dirty = true
		return s.page(api.StateRequest{Limit: 1}), err
	})
}

// awaitRebuilt waits until it is known who holds a slot: what is changed earlier would be overwritten. Waiting updates go on one after the
// other. It fails where this run ends before that.
func (s *scheduler) awaitRebuilt(ctx workflow.Context, name string) error {
	if s.Rebuilt {
		return nil
	}
	u := s.queueUpdate(name)
	defer func() {
		s.updates = slices.DeleteFunc(s.updates, func(other *waitingUpdate) bool { return other == u })
	}()
	isNext := func() bool { return !s.updates[0].ordered && !u.ordered || s.updates[0] == u }
	if err := workflow.Await(ctx, func() bool { return s.Rebuilt && isNext() || s.givenUp }); err != nil || s.Rebuilt {
		return err
	}
	s.woken = true
	return errors.New("the scheduler cannot find out who holds a slot: see drydock doctor, and try again")
}

type waitingUpdate struct {
	name string
	// ordered: it waits for those before it. 0.1.0 leaves the order to the SDK, by which a later update goes on before an earlier one.
	ordered bool
}

// queueUpdate puts an update behind those that wait. Those of the first workflow task come by name, not by time: so do all that a workflow
// had taken that is reset to its beginning. Of these a freeze is the last, so that none is lost.
func (s *scheduler) queueUpdate(name string) *waitingUpdate {
	u := &waitingUpdate{name: name, ordered: len(s.updates) > 0 && s.isUpgraded(updateTurns)}
	at, early := len(s.updates), workflow.GetInfo(s.ctx).GetCurrentHistoryLength() == s.firstTask
	for early && name != api.UpdateFreeze && at > 0 && s.updates[at-1].name == api.UpdateFreeze {
		at--
	}
	s.updates = slices.Insert(s.updates, at, u)
	return u
}

func (s *scheduler) setLimits(p api.SetLimits) {
	s.decisions.record(p.By, s.controls.setLimits(p, s.now()), p.Comment)
}

func (s *scheduler) freeze(p api.FreezeRequest) {
	s.decisions.record(p.By, s.controls.freeze(p, s.now()), p.Reason)
	s.holdOrResume()
}

func (s *scheduler) thaw(p api.ThawRequest) {
	s.controls.thaw(p, s.now())
	s.decisions.record(p.By, "thawed", p.Comment)
	s.holdOrResume()
}

// holdOrResume sends all maintenances that hold a slot which freezes hold them. A remediation that has begun goes on.
func (s *scheduler) holdOrResume() {
	for _, h := range s.Holders {
		if h.IsMarked() {
			s.outbox.sendHold(h, s.controls.notice())
		}
	}
}

func (s *scheduler) Arrived() { s.signals++; s.dirty = true }

// Refused records a signal that cannot be read.
func (s *scheduler) Refused(name string, _ api.Message, _ api.Outcome, why error) {
	s.decisions.record("", "ignored a signal "+name, why.Error())
}
