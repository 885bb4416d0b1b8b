package scheduler

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/schedule"
	"drydock/rules/spec"
	"drydock/workflows/inbox"
)

func (s *scheduler) listen() error {
	err := workflow.SetQueryHandlerWithOptions(s.ctx, api.QueryState, func(raw converter.RawValue) (api.State, error) {
		asked, err := inbox.Decode[api.StateRequest](inbox.Payload(raw))
		if err != nil {
			return api.State{}, err
		}
		return s.page(asked), nil
	}, workflow.QueryHandlerOptions{Description: "limits, freezes, holders and a page of the pending requests"})
	if err != nil {
		return err
	}
	in := inbox.New(s.ctx, inbox.Ears{
		Arrived: func() { s.signals++; s.dirty = true },
		Refused: func(name string, _ api.Message, _ api.Outcome, why error) {
			s.decisions.record("", "ignored a signal "+name, why.Error())
		},
	})
	if err := errors.Join(
		update(s, in, api.UpdateSetLimits, func(p api.SetLimits) error { return s.controls.checkLimits(p, s.rebuilt) }, s.setLimits),
		update(s, in, api.UpdateFreeze, checkFreeze, s.freeze),
		update(s, in, api.UpdateThaw, func(p api.ThawRequest) error { return s.controls.checkThaw(p, s.rebuilt) }, s.thaw),
	); err != nil {
		return err
	}
	inbox.Receive(in, api.SignalSlotRequest, s.request)
	inbox.Receive(in, api.SignalSlotRelease, s.release)
	// A slot that is given back before its holder is known would be held for ever.
	in.Open(s.awaitRebuilt)
	return nil
}

// awaitRebuilt waits until the state of the scheduler that ran before is taken over: what is changed earlier would be
// overwritten.
func (s *scheduler) awaitRebuilt(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return s.rebuilt })
}

// update takes an update that changes what people decide, and answers with the state.
func update[T any](s *scheduler, in *inbox.Inbox, name string, check func(T) error, apply func(T)) error {
	return inbox.Update(in, name, check, func(ctx workflow.Context, read func() (T, error)) (api.State, error) {
		if err := s.awaitRebuilt(ctx); err != nil {
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

// request queues a request, once: a repeated one is answered again.
func (s *scheduler) request(r api.SlotRequest) {
	if err := errors.Join(spec.NodeName(r.Node), spec.RequestorName(r.Requestor)); err != nil || r.ID == "" || r.RunID == "" {
		s.decisions.record("", "ignored a slot request that names no node, requestor or run", fmt.Sprint(err))
		return
	}
	if h, ok := s.ledger.holder(r.ID); ok {
		s.outbox.granted(h)
		return
	}
	if s.ledger.knows(r.ID) {
		s.ledger.tellOnceMore(r.ID)
		return
	}
	s.supersede(r.RunID)
	if p, over := s.overQuota(r); over {
		s.outbox.refuse(p, false)
		return
	}
	s.ledger.enqueue(r)
}

// overQuota turns down the first request of a maintenance whose requestor has too many that wait. One that was let in is
// not turned down later: neither when its node was given back, nor when a scheduler begins anew.
func (s *scheduler) overQuota(r api.SlotRequest) (api.PendingRequest, bool) {
	if !s.rebuilt || !api.IsFirstRequest(r.ID) {
		return api.PendingRequest{}, false
	}
	reason := s.controls.limits.Quotas.OverPending(r.Requestor, s.ledger.waiting(r.Requestor))
	return api.PendingRequest{SlotRequest: r, Code: schedule.Quota, Reason: reason}, reason != ""
}

// release takes a slot back, and records who did that where it was not the holder.
func (s *scheduler) release(r api.SlotRelease) {
	if r.By != "" {
		s.decisions.record(r.By, "gave slot request "+r.RequestID+" back", r.Why)
	}
	s.free(r.RequestID)
}

// supersede frees what a run had asked for before: it asks again only after it gave that back, so that a release that
// was lost with an earlier scheduler never makes a maintenance wait for its own slot.
func (s *scheduler) supersede(runID string) {
	for _, id := range s.ledger.requestsOf(runID) {
		s.free(id)
	}
}

func (s *scheduler) setLimits(p api.SetLimits) {
	s.decisions.record(p.By, s.controls.setLimits(p, s.now()), p.Comment)
}

func (s *scheduler) freeze(p api.FreezeRequest) {
	s.decisions.record(p.By, s.controls.freeze(p, s.now()), p.Reason)
	s.holdOrResume()
}

func (s *scheduler) thaw(p api.ThawRequest) {
	s.controls.thaw(p)
	s.decisions.record(p.By, "thawed", p.Comment)
	s.holdOrResume()
}

// holdOrResume tells all holders which freezes hold them.
func (s *scheduler) holdOrResume() {
	for _, h := range s.ledger.holders {
		s.outbox.toHolder(h, api.SignalHold, api.FreezeNotice{Reasons: s.controls.holdReasons()})
	}
}
