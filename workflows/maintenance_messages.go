package workflows

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/workflows/spec"
)

// handler is one message: decode reads a payload strictly, check tells why it cannot take effect now, apply gives it
// effect and says which.
type handler struct {
	name   string
	decode func(raw []byte) (any, Message, error)
	check  func(m *maintenance, payload any) error
	apply  func(m *maintenance, payload any) string
}

// handlers are the messages in a fixed order, since they are registered by workflow code.
var handlers = []handler{
	on(MsgDone, func(p Done) Message { return p.Message }, (*maintenance).checkDone, (*maintenance).applyDone),
	on(MsgFailed, func(p FailedMessage) Message { return p.Message }, (*maintenance).checkFailed, (*maintenance).applyFailed),
	on(MsgRetry, func(p Simple) Message { return p.Message }, (*maintenance).checkRetry, (*maintenance).applyRetry),
	on(MsgCancel, func(p Cancel) Message { return p.Message }, (*maintenance).checkCancel, (*maintenance).applyCancel),
	on(MsgExtend, func(p Extend) Message { return p.Message }, (*maintenance).checkExtend, (*maintenance).applyExtend),
	on(MsgStarted, func(p Simple) Message { return p.Message }, (*maintenance).checkStarted, (*maintenance).applyStarted),
	on(MsgDrained, func(p Simple) Message { return p.Message }, (*maintenance).checkDrained, (*maintenance).applyDrained),
	on(MsgJoin, func(p Membership) Message { return p.Message }, (*maintenance).checkJoin, (*maintenance).applyJoin),
	on(MsgLeave, func(p Membership) Message { return p.Message }, (*maintenance).checkLeave, (*maintenance).applyLeave),
	on(MsgEscalate, func(p Escalate) Message { return p.Message }, (*maintenance).checkEscalate, (*maintenance).applyEscalate),
	on(MsgSkipPod, func(p SkipPod) Message { return p.Message }, (*maintenance).checkSkipPod, (*maintenance).applySkipPod),
	on(MsgRetryNow, func(p Simple) Message { return p.Message }, (*maintenance).checkRetryNow, (*maintenance).applyRetryNow),
	on(MsgApprove, func(p Simple) Message { return p.Message }, (*maintenance).checkDecision, (*maintenance).applyApprove),
	on(MsgDeny, func(p Simple) Message { return p.Message }, (*maintenance).checkDecision, (*maintenance).applyDeny),
	on(MsgValidated, func(p Simple) Message { return p.Message }, (*maintenance).checkValidated, (*maintenance).applyValidated),
	on(MsgValidationFailed, func(p Simple) Message { return p.Message }, (*maintenance).checkValidationFailed, (*maintenance).applyValidationFailed),
	on(MsgHookDone, func(p HookMessage) Message { return p.Message }, (*maintenance).checkHookDone, (*maintenance).applyHookDone),
	on(MsgSkipHook, func(p HookMessage) Message { return p.Message }, (*maintenance).checkSkipHook, (*maintenance).applySkipHook),
}

func on[T any](name string, common func(T) Message, check func(*maintenance, T) error, apply func(*maintenance, T) string) handler {
	return handler{
		name: name,
		decode: func(raw []byte) (any, Message, error) {
			var payload T
			if len(raw) > 0 {
				if err := spec.DecodeStrict(raw, &payload); err != nil {
					return nil, Message{}, err
				}
			}
			return payload, common(payload), nil
		},
		check: func(m *maintenance, payload any) error { return check(m, payload.(T)) },
		apply: func(m *maintenance, payload any) string { return apply(m, payload.(T)) },
	}
}

// maxMessages bounds the messages kept in the status; the history has them all.
const maxMessages = 30

// listen takes every message from the first moment on: each as a signal and as an update, the status as a query, and
// the cancellation of the workflow.
func (m *maintenance) listen(root workflow.Context) error {
	if err := workflow.SetQueryHandlerWithOptions(root, QueryStatus, func() (Status, error) { return m.status, nil },
		workflow.QueryHandlerOptions{Description: "phase, what it waits for, progress, transitions, messages"}); err != nil {
		return err
	}
	if err := workflow.SetQueryHandlerWithOptions(root, QuerySlot, func() (SlotWanted, error) { return m.slotWanted(), nil },
		workflow.QueryHandlerOptions{Description: "the slot it asks for or holds, for a scheduler that begins anew"}); err != nil {
		return err
	}
	selector := workflow.NewSelector(m.life)
	for _, h := range handlers {
		if err := m.takeUpdates(h); err != nil {
			return err
		}
		m.takeSignals(selector, h)
	}
	for _, kind := range []string{SignalSlotGranted, SignalSlotPending, SignalSlotRefused} {
		receive(m, selector, kind, func(a SlotAnswer) { m.answered(kind, a) })
	}
	receive(m, selector, SignalNodeChanged, func(c NodeChange) { m.changes = append(m.changes, c) })
	receive(m, selector, SignalHold, func(h Hold) { m.holdReasons = h.Reasons })
	receive(m, selector, SignalDrainBlocked, m.blocked)
	m.unread = selector.HasPending
	workflow.GoNamed(m.life, "signals", func(ctx workflow.Context) {
		for {
			selector.Select(ctx)
		}
	})
	workflow.GoNamed(m.life, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		m.record("cancellation of the workflow", Message{}, m.applyCancel(Cancel{}))
	})
	return nil
}

func (m *maintenance) takeUpdates(h handler) error {
	return workflow.SetUpdateHandlerWithOptions(m.life, h.name,
		func(_ workflow.Context, raw converter.RawValue) (string, error) {
			payload, common, err := h.decode(payloadOf(raw))
			if err == nil {
				err = h.check(m, payload)
			}
			if err != nil {
				return "", err
			}
			effect := h.apply(m, payload)
			m.record(h.name, common, effect)
			return effect, nil
		},
		workflow.UpdateHandlerOptions{Validator: func(raw converter.RawValue) error {
			payload, _, err := h.decode(payloadOf(raw))
			if err != nil {
				return err
			}
			return h.check(m, payload)
		}})
}

// takeSignals decodes by itself: a typed Receive would drop a bad payload silently.
func (m *maintenance) takeSignals(selector workflow.Selector, h handler) {
	selector.AddReceive(workflow.GetSignalChannel(m.life, h.name), func(c workflow.ReceiveChannel, _ bool) {
		var raw converter.RawValue
		c.Receive(m.life, &raw)
		payload, common, err := h.decode(payloadOf(raw))
		if err == nil {
			err = h.check(m, payload)
		}
		if err != nil {
			m.record(h.name, common, "ignored: "+err.Error())
			return
		}
		m.record(h.name, common, h.apply(m, payload))
	})
}

// receive takes a signal of Drydock's own; a payload that does not decode is nobody's that matters.
func receive[T any](m *maintenance, selector workflow.Selector, name string, take func(T)) {
	selector.AddReceive(workflow.GetSignalChannel(m.life, name), func(c workflow.ReceiveChannel, _ bool) {
		var raw converter.RawValue
		c.Receive(m.life, &raw)
		var payload T
		if err := spec.DecodeStrict(payloadOf(raw), &payload); err != nil {
			m.record(name, Message{}, "ignored: "+err.Error())
			return
		}
		take(payload)
	})
}

func (m *maintenance) record(name string, common Message, effect string) {
	m.status.Messages = append(m.status.Messages, Received{
		At: workflow.Now(m.life), Name: name, By: common.By, Comment: common.Comment, Effect: effect,
	})
	if extra := len(m.status.Messages) - maxMessages; extra > 0 {
		m.status.Messages = m.status.Messages[extra:]
	}
	workflow.GetLogger(m.life).Info("message", "name", name, "by", common.By, "effect", effect)
}

// thisRun refuses a message that was meant for an earlier maintenance of the node.
func (m *maintenance) thisRun(run string) error {
	if run != "" && run != m.status.RunID {
		return fmt.Errorf("it is meant for run %s, and this is run %s", run, m.status.RunID)
	}
	return nil
}

func (m *maintenance) inPhase(allowed ...Phase) error {
	for _, phase := range allowed {
		if m.status.Phase == phase {
			return nil
		}
	}
	return fmt.Errorf("the maintenance is %s, and not %v", m.status.Phase, allowed)
}

func (m *maintenance) ended() error {
	if m.status.Phase == Releasing || m.status.Phase.Ended() {
		return errors.New("the maintenance is ending")
	}
	return nil
}
