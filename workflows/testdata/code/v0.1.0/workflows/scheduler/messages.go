package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	"errors"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"
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
	err = workflow.SetQueryHandlerWithOptions(s.ctx, api.QuerySlotHeld, func(raw converter.RawValue) (api.SlotHeld, error) {
		asked, err := inbox.Decode[api.SlotQuestion](inbox.Payload(raw))
		if err != nil {
			return api.SlotHeld{}, err
		}
		notice := s.controls.notice()
		return api.SlotHeld{
			Held: s.ledger.holds(asked.RequestID), Rebuilding: !s.rebuilt, Frozen: notice.Reasons, Revision: notice.Revision,
		}, nil
	}, workflow.QueryHandlerOptions{Description: "whether a request holds its slot"})
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
		update(s, in, api.UpdateFreeze, s.controls.checkFreeze, s.freeze),
		update(s, in, api.UpdateThaw, func(p api.ThawRequest) error { return s.controls.checkThaw(p, s.rebuilt) }, s.thaw),
	); err != nil {
		return err
	}
	inbox.Receive(in, api.SignalSlotRequest, func(r api.SlotRequest) { s.intake.pass(arrival{request: &r}) })
	inbox.Receive(in, api.SignalSlotRelease, func(r api.SlotRelease) { s.intake.pass(arrival{release: &r}) })
	s.unread = in.Unread
	in.Open(nil)
	return nil
}

// awaitRebuilt waits until it is known who holds a slot: what is changed earlier would be overwritten. It gives up where
// this run ends before that.
func (s *scheduler) awaitRebuilt(ctx workflow.Context) error {
	if err := workflow.Await(ctx, func() bool { return s.rebuilt || s.givenUp }); err != nil || s.rebuilt {
		return err
	}
	s.woken = true
	return errors.New("the scheduler cannot find out who holds a slot: see drydock doctor, and try again")
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

// overQuota turns down the first request of a maintenance only. One that was let in is not turned down later: neither when
// its node was given back, nor when a scheduler begins anew.
func (s *scheduler) overQuota(r api.SlotRequest) string {
	if !s.rebuilt || !api.IsFirstRequest(r.ID) {
		return ""
	}
	waiting := 0
	for _, p := range s.ledger.pending {
		if p.Requestor == r.Requestor {
			waiting++
		}
	}
	return s.controls.limits.Quotas.OverPending(r.Requestor, waiting)
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

// holdOrResume tells all holders which freezes hold them.
func (s *scheduler) holdOrResume() {
	for _, h := range s.ledger.holders {
		s.outbox.hold(h, s.controls.notice())
	}
}
