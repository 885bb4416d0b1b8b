package maintenance

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/spec"
	"drydock/workflows/inbox"
)

// handler is one message: decode reads a payload strictly, check tells why it cannot take effect now, apply gives it
// effect and says which.
type handler struct {
	name   string
	decode func(raw []byte) (any, api.Message, error)
	check  func(m *maintenance, payload any) error
	apply  func(m *maintenance, payload any) string
}

// handlers are the messages in a fixed order, since they are registered by workflow code.
var handlers = []handler{
	on(api.MsgDone, func(p api.Done) api.Message { return p.Message }, (*maintenance).checkDone, (*maintenance).applyDone),
	on(api.MsgFailed, func(p api.FailedMessage) api.Message { return p.Message }, (*maintenance).checkFailed, (*maintenance).applyFailed),
	on(api.MsgRetry, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkRetry, (*maintenance).applyRetry),
	on(api.MsgCancel, func(p api.Cancel) api.Message { return p.Message }, (*maintenance).checkCancel, (*maintenance).applyCancel),
	on(api.MsgExtend, func(p api.Extend) api.Message { return p.Message }, (*maintenance).checkExtend, (*maintenance).applyExtend),
	on(api.MsgStarted, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkStarted, (*maintenance).applyStarted),
	on(api.MsgDrained, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkDrained, (*maintenance).applyDrained),
	on(api.MsgJoin, func(p api.Membership) api.Message { return p.Message }, (*maintenance).checkJoin, (*maintenance).applyJoin),
	on(api.MsgLeave, func(p api.Membership) api.Message { return p.Message }, (*maintenance).checkLeave, (*maintenance).applyLeave),
	on(api.MsgEscalate, func(p api.Escalate) api.Message { return p.Message }, (*maintenance).checkEscalate, (*maintenance).applyEscalate),
	on(api.MsgSkipPod, func(p api.SkipPod) api.Message { return p.Message }, (*maintenance).checkSkipPod, (*maintenance).applySkipPod),
	on(api.MsgRetryNow, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkRetryNow, (*maintenance).applyRetryNow),
	on(api.MsgApprove, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkDecision, (*maintenance).applyApprove),
	on(api.MsgDeny, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkDecision, (*maintenance).applyDeny),
	on(api.MsgValidated, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkValidated, (*maintenance).applyValidated),
	on(api.MsgValidationFailed, func(p api.Simple) api.Message { return p.Message }, (*maintenance).checkValidationFailed, (*maintenance).applyValidationFailed),
	on(api.MsgHookDone, func(p api.HookMessage) api.Message { return p.Message }, (*maintenance).checkHookDone, (*maintenance).applyHookDone),
	on(api.MsgSkipHook, func(p api.HookMessage) api.Message { return p.Message }, (*maintenance).checkSkipHook, (*maintenance).applySkipHook),
}

func on[T any](name string, common func(T) api.Message, check func(*maintenance, T) error, apply func(*maintenance, T) string) handler {
	return handler{
		name: name,
		decode: func(raw []byte) (any, api.Message, error) {
			var payload T
			if len(raw) > 0 {
				if err := spec.DecodeStrict(raw, &payload); err != nil {
					return nil, api.Message{}, err
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
	if err := workflow.SetQueryHandlerWithOptions(root, api.QueryStatus, func() (api.Status, error) { return m.status, nil },
		workflow.QueryHandlerOptions{Description: "phase, what it waits for, progress, transitions, messages"}); err != nil {
		return err
	}
	if err := workflow.SetQueryHandlerWithOptions(root, api.QuerySlot, func() (api.SlotWanted, error) { return m.slotWanted(), nil },
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
	for _, kind := range []string{api.SignalSlotGranted, api.SignalSlotPending, api.SignalSlotRefused} {
		receive(m, selector, kind, func(a api.SlotAnswer) { m.answered(kind, a) })
	}
	receive(m, selector, api.SignalNodeChanged, func(c api.NodeChange) { m.changes = append(m.changes, c) })
	receive(m, selector, api.SignalHold, func(h api.Hold) { m.holdReasons = h.Reasons })
	receive(m, selector, api.SignalDrainBlocked, m.blocked)
	m.unread = selector.HasPending
	workflow.GoNamed(m.life, "signals", func(ctx workflow.Context) {
		for {
			selector.Select(ctx)
		}
	})
	workflow.GoNamed(m.life, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		m.record("cancellation of the workflow", api.Message{}, m.applyCancel(api.Cancel{}))
	})
	return nil
}

func (m *maintenance) takeUpdates(h handler) error {
	return workflow.SetUpdateHandlerWithOptions(m.life, h.name,
		func(_ workflow.Context, raw converter.RawValue) (string, error) {
			payload, common, err := h.decode(inbox.Payload(raw))
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
			payload, _, err := h.decode(inbox.Payload(raw))
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
		payload, common, err := h.decode(inbox.Payload(raw))
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
		if err := spec.DecodeStrict(inbox.Payload(raw), &payload); err != nil {
			m.record(name, api.Message{}, "ignored: "+err.Error())
			return
		}
		take(payload)
	})
}

func (m *maintenance) record(name string, common api.Message, effect string) {
	m.status.Messages = append(m.status.Messages, api.Received{
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

func (m *maintenance) inPhase(allowed ...api.Phase) error {
	for _, phase := range allowed {
		if m.status.Phase == phase {
			return nil
		}
	}
	return fmt.Errorf("the maintenance is %s, and not %v", m.status.Phase, allowed)
}

func (m *maintenance) ended() error {
	if m.status.Phase == api.Releasing || m.status.Phase.Ended() {
		return errors.New("the maintenance is ending")
	}
	return nil
}
