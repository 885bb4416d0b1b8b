// Package inbox is how workflows take messages: strictly decoded, recorded, each name a signal and an update.
package inbox

import (
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/spec"
)

// Handler is one message: decode reads a payload strictly, check tells why it cannot take effect now, apply gives it
// effect and says which.
type Handler struct {
	name   string
	decode func(raw []byte) (any, api.Message, error)
	check  func(payload any) error
	apply  func(payload any) string
}

// Said is a payload that tells who sent it and why.
type Said interface{ Said() api.Message }

// On is the handler of a message whose payload is a T. The payload may be absent.
func On[T Said](name string, check func(T) error, apply func(T) string) Handler {
	return Handler{
		name: name,
		decode: func(raw []byte) (any, api.Message, error) {
			var payload T
			if len(raw) > 0 {
				if err := spec.DecodeStrict(raw, &payload); err != nil {
					return nil, api.Message{}, err
				}
			}
			return payload, payload.Said(), nil
		},
		check: func(payload any) error { return check(payload.(T)) },
		apply: func(payload any) string { return apply(payload.(T)) },
	}
}

// Record keeps account of a message and of what became of it.
type Record func(name string, who api.Message, effect string)

// Inbox takes the messages to one workflow run in one coroutine.
type Inbox struct {
	ctx      workflow.Context
	selector workflow.Selector
	record   Record
}

// New is an inbox that takes nothing yet.
func New(ctx workflow.Context, record Record) *Inbox {
	return &Inbox{ctx: ctx, selector: workflow.NewSelector(ctx), record: record}
}

// Take takes messages, each as a signal and as an update of the same name. A bad signal is recorded and changes nothing,
// a bad update is refused.
func (i *Inbox) Take(handlers ...Handler) error {
	for _, h := range handlers {
		if err := i.takeUpdates(h); err != nil {
			return err
		}
		i.takeSignals(h)
	}
	return nil
}

func (i *Inbox) takeUpdates(h Handler) error {
	return workflow.SetUpdateHandlerWithOptions(i.ctx, h.name,
		func(_ workflow.Context, raw converter.RawValue) (string, error) {
			payload, who, err := h.decode(Payload(raw))
			if err == nil {
				err = h.check(payload)
			}
			if err != nil {
				return "", err
			}
			effect := h.apply(payload)
			i.record(h.name, who, effect)
			return effect, nil
		},
		workflow.UpdateHandlerOptions{Validator: func(raw converter.RawValue) error {
			payload, _, err := h.decode(Payload(raw))
			if err != nil {
				return err
			}
			return h.check(payload)
		}})
}

// takeSignals decodes by itself: a typed Receive would drop a bad payload silently.
func (i *Inbox) takeSignals(h Handler) {
	i.receive(h.name, func(raw []byte) {
		payload, who, err := h.decode(raw)
		if err == nil {
			err = h.check(payload)
		}
		if err != nil {
			i.record(h.name, who, Ignored(err))
			return
		}
		i.record(h.name, who, h.apply(payload))
	})
}

// Receive takes a signal that workflows and activities send each other. One whose payload does not decode is recorded.
func Receive[T any](i *Inbox, name string, take func(T)) {
	i.receive(name, func(raw []byte) {
		var payload T
		if err := spec.DecodeStrict(raw, &payload); err != nil {
			i.record(name, api.Message{}, Ignored(err))
			return
		}
		take(payload)
	})
}

func (i *Inbox) receive(name string, take func(raw []byte)) {
	i.selector.AddReceive(workflow.GetSignalChannel(i.ctx, name), func(c workflow.ReceiveChannel, _ bool) {
		var raw converter.RawValue
		c.Receive(i.ctx, &raw)
		take(Payload(raw))
	})
}

// Unread tells whether there are messages that were not looked at yet.
func (i *Inbox) Unread() bool { return i.selector.HasPending() }

// Open begins to read, in a coroutine of its own.
func (i *Inbox) Open() {
	workflow.GoNamed(i.ctx, "signals", func(ctx workflow.Context) {
		for {
			i.selector.Select(ctx)
		}
	})
}

// Ignored is the effect of a message that has none.
func Ignored(why error) string { return "ignored: " + why.Error() }

// InvalidSpec is the error of a workflow whose input is wrong.
func InvalidSpec(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorInvalidSpec, nil)
}

// Payload is the JSON of an input, nil where there is none.
func Payload(raw converter.RawValue) []byte {
	if raw.Payload() == nil {
		return nil
	}
	return raw.Payload().GetData()
}
