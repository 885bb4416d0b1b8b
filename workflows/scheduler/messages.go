package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/schedule"
	"drydock/rules/spec"
	"drydock/workflows/inbox"
)

// pageSize, maxPageSize and maxPageText bound a page of the state query, which has to fit into one payload.
const (
	pageSize    = 100
	maxPageSize = 2000
	maxPageText = 768 << 10
	// maxName and maxWords are in bytes: what people say is shown by everything that waits for them.
	maxName  = 253
	maxWords = 1000
)

func (s *scheduler) listen() error {
	err := workflow.SetQueryHandlerWithOptions(s.ctx, api.QueryState, func(raw converter.RawValue) (api.State, error) {
		var page api.StateRequest
		if data := inbox.Payload(raw); len(data) > 0 {
			if err := spec.DecodeStrict(data, &page); err != nil {
				return api.State{}, err
			}
		}
		return s.state(page), nil
	}, workflow.QueryHandlerOptions{Description: "limits, freezes, holders and a page of the pending requests"})
	if err != nil {
		return err
	}
	if err := errors.Join(
		update(s, api.UpdateSetLimits, s.checkLimits, s.setLimits),
		update(s, api.UpdateFreeze, checkFreeze, s.freeze),
		update(s, api.UpdateThaw, s.checkThaw, s.thaw),
	); err != nil {
		return err
	}
	selector := workflow.NewSelector(s.ctx)
	take(s, selector, api.SignalSlotRequest, s.request)
	take(s, selector, api.SignalSlotRelease, s.released)
	workflow.GoNamed(s.ctx, "signals", func(ctx workflow.Context) {
		// A slot that is given back before its holder is known would be held for ever.
		if err := s.awaitRebuilt(ctx); err != nil {
			return
		}
		for {
			selector.Select(ctx)
		}
	})
	return nil
}

// take handles a signal; one whose payload does not decode is recorded, and changes nothing.
func take[T any](s *scheduler, selector workflow.Selector, name string, handle func(T)) {
	selector.AddReceive(workflow.GetSignalChannel(s.ctx, name), func(c workflow.ReceiveChannel, _ bool) {
		var raw converter.RawValue
		c.Receive(s.ctx, &raw)
		s.signals++
		s.dirty = true
		var payload T
		if err := spec.DecodeStrict(inbox.Payload(raw), &payload); err != nil {
			s.decided("", "ignored a signal "+name, err.Error())
			return
		}
		handle(payload)
	})
}

// awaitRebuilt waits until the state of the scheduler that ran before is taken over: what is changed earlier would be
// overwritten.
func (s *scheduler) awaitRebuilt(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return s.Rebuilt })
}

// update handles an update: check is its validator, and is asked again before apply.
func update[T any](s *scheduler, name string, check func(T) error, apply func(T) error) error {
	decode := func(raw converter.RawValue) (T, error) {
		var payload T
		if err := spec.DecodeStrict(inbox.Payload(raw), &payload); err != nil {
			return payload, err
		}
		return payload, check(payload)
	}
	return workflow.SetUpdateHandlerWithOptions(s.ctx, name, func(ctx workflow.Context, raw converter.RawValue) (api.State, error) {
		if err := s.awaitRebuilt(ctx); err != nil {
			return api.State{}, err
		}
		payload, err := decode(raw)
		if err == nil {
			err = apply(payload)
		}
		s.dirty = true
		return s.state(api.StateRequest{Limit: 1}), err
	}, workflow.UpdateHandlerOptions{Validator: func(raw converter.RawValue) error {
		_, err := decode(raw)
		return err
	}})
}

// request queues a request, once: a repeated one is answered again.
func (s *scheduler) request(r api.SlotRequest) {
	if err := errors.Join(spec.NodeName(r.Node), spec.RequestorName(r.Requestor)); err != nil || r.ID == "" || r.RunID == "" {
		s.decided("", "ignored a slot request that names no node, requestor or run", fmt.Sprint(err))
		return
	}
	if h, ok := s.holder(r.ID); ok {
		s.signalHolder(h, api.SignalSlotGranted, api.SlotAnswer{RequestID: r.ID})
		return
	}
	if _, waits := s.index.byID[r.ID]; waits {
		s.forgetTold(r.ID)
		return
	}
	s.supersede(r.RunID)
	s.wait(r)
}

// released takes a slot back, and records who did that where it was not the holder.
func (s *scheduler) released(r api.SlotRelease) {
	if r.By != "" {
		s.decided(r.By, "gave slot request "+r.RequestID+" back", r.Why)
	}
	s.free(r.RequestID)
}

// supersede frees what a run had asked for before: it asks anew only after it gave that back, so that a release that was
// lost with an earlier scheduler never makes a maintenance wait for its own slot.
func (s *scheduler) supersede(runID string) {
	for _, id := range slices.Clone(s.index.byRun[runID]) {
		s.free(id)
	}
}

func (s *scheduler) forgetTold(requestID string) { delete(s.Told, requestID) }

func (s *scheduler) checkLimits(p api.SetLimits) error {
	if p.By == "" {
		return errors.New("by: say who sets the limits")
	}
	if err := errors.Join(short("by", p.By, maxName), short("comment", p.Comment, maxWords)); err != nil {
		return err
	}
	// Before the rebuild the revision is not known; it is asked again when that is over.
	if p.IfRevision != nil && s.Rebuilt && *p.IfRevision != s.Revision {
		return temporal.NewNonRetryableApplicationError(
			fmt.Sprintf("ifRevision: the limits are at revision %d, set by %s, and no longer at %d", s.Revision, s.Limits.SetBy, *p.IfRevision),
			api.ErrorLimitsChanged, nil)
	}
	return p.Limits.WithDefaults().Validate()
}

func short(field, text string, most int) error {
	if len(text) > most {
		return fmt.Errorf("%s: %d bytes are more than %d", field, len(text), most)
	}
	return nil
}

func (s *scheduler) setLimits(p api.SetLimits) error {
	before := s.Limits.Limits
	s.Limits = api.LimitsInForce{Limits: p.Limits.WithDefaults(), SetBy: p.By, Comment: p.Comment, SetAt: workflow.Now(s.ctx)}
	s.Revision++
	s.decided(p.By, fmt.Sprintf("limits changed from %s to %s", text(before), text(s.Limits.Limits)), p.Comment)
	return nil
}

func text(value any) string {
	data, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func checkFreeze(p api.FreezeRequest) error {
	if p.By == "" {
		return errors.New("by: say who freezes; the same name thaws")
	}
	return errors.Join(short("by", p.By, maxName), short("reason", p.Reason, maxWords))
}

// freeze is keyed by who asked: a second freeze of the same person replaces the first.
func (s *scheduler) freeze(p api.FreezeRequest) error {
	s.Freezes = slices.DeleteFunc(s.Freezes, func(f schedule.Freeze) bool { return f.By == p.By })
	s.Freezes = append(s.Freezes, schedule.Freeze{By: p.By, Reason: p.Reason, At: workflow.Now(s.ctx), Running: p.Running})
	what := "grants frozen"
	if p.Running {
		what = "grants and running maintenances frozen"
	}
	s.decided(p.By, what, p.Reason)
	s.holdOrResume()
	return nil
}

func (s *scheduler) checkThaw(p api.ThawRequest) error {
	if p.By == "" {
		return errors.New("by: say who thaws")
	}
	if p.All || !s.Rebuilt || slices.ContainsFunc(s.Freezes, func(f schedule.Freeze) bool { return f.By == p.By }) {
		return nil
	}
	var by []string
	for _, f := range s.Freezes {
		by = append(by, f.By)
	}
	if len(by) == 0 {
		return errors.New("nothing is frozen")
	}
	return fmt.Errorf("there is no freeze by %s; frozen by %s (use all to lift every freeze)", p.By, strings.Join(by, ", "))
}

func (s *scheduler) thaw(p api.ThawRequest) error {
	s.Freezes = slices.DeleteFunc(s.Freezes, func(f schedule.Freeze) bool { return p.All || f.By == p.By })
	s.decided(p.By, "thawed", p.Comment)
	s.holdOrResume()
	return nil
}

// holdOrResume tells all holders which freezes hold them.
func (s *scheduler) holdOrResume() {
	for _, h := range s.Holders {
		s.signalHolder(h, api.SignalHold, api.Hold{Reasons: s.runningFreezes()})
	}
}

func (s *scheduler) runningFreezes() []string {
	var reasons []string
	for _, f := range s.Freezes {
		if f.Running {
			reasons = append(reasons, strings.TrimSuffix("frozen by "+f.By+": "+f.Reason, ": "))
		}
	}
	return reasons
}

// state answers the query: all of what is bounded, and a page of the rest.
func (s *scheduler) state(page api.StateRequest) api.State {
	if page.Limit <= 0 {
		page.Limit = pageSize
	}
	page.Limit = min(page.Limit, maxPageSize)
	page.Offset = min(max(page.Offset, 0), len(s.Pending))
	end := page.Offset
	for size := 0; end < len(s.Pending) && end-page.Offset < page.Limit && size < maxPageText; end++ {
		size += len(text(s.Pending[end]))
	}
	state := api.State{
		Limits: s.Limits, Revision: s.Revision, Rebuilding: !s.Rebuilt, PreviousRun: s.PreviousRun, Freezes: s.Freezes, Holders: s.Holders,
		PendingAll: len(s.Pending), Pending: s.Pending[page.Offset:end], Decisions: s.Decisions,
	}
	if end < len(s.Pending) {
		state.NextOffset = end
	}
	if s.Observed != nil {
		at := s.Observed.Observation.At
		state.Nodes, state.Unavailable, state.ObservedAt = s.Observed.Observation.Nodes, s.Observed.Observation.Unavailable, &at
	}
	return state
}
