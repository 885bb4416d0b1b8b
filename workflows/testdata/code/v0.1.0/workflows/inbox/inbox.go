package inbox

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"errors"
	"fmt"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
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
			payload, err := Decode[T](raw)
			if err != nil {
				return nil, api.Message{}, err
			}
			return payload, payload.Said(), nil
		},
		check: func(payload any) error { return check(payload.(T)) },
		apply: func(payload any) string { return apply(payload.(T)) },
	}
}

// Ears are told what comes in.
type Ears struct {
	// Arrived hears of every signal, before it is read; nil does not.
	Arrived func()
	// Known tells that a message with this ID was received before; nil knows none.
	Known func(id string) bool
	// Applied hears of a message that took effect, and of which; Refused of one that did not, and why.
	Applied func(name string, who api.Message, effect string)
	Refused func(name string, who api.Message, outcome api.Outcome, why error)
}

// Inbox takes the messages to one workflow run in one coroutine.
type Inbox struct {
	ctx     workflow.Context
	arrived *arrivals
	take    map[string]func(raw []byte)
	ears    Ears
	// unrested is how much was read in one go, in bytes.
	unrested int
}

// New is an inbox that takes nothing yet.
func New(ctx workflow.Context, ears Ears) *Inbox {
	return &Inbox{ctx: ctx, arrived: arrivalsOf(ctx), take: map[string]func(raw []byte){}, ears: ears}
}

// Take takes messages, each as a signal and as an update of the same name. A bad signal changes nothing, a bad update is
// refused.
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
			if i.knows(who) {
				return "", errTwice
			}
			effect := h.apply(payload)
			i.ears.Applied(h.name, who, effect)
			return effect, nil
		},
		workflow.UpdateHandlerOptions{Validator: func(raw converter.RawValue) error {
			payload, who, err := h.decode(Payload(raw))
			if err != nil {
				return err
			}
			if i.knows(who) {
				return errTwice
			}
			return h.check(payload)
		}})
}

// errTwice refuses what was received before: its outcome stands under its ID.
var errTwice = errors.New("a message with this id was received already")

func (i *Inbox) knows(who api.Message) bool {
	return who.ID != "" && i.ears.Known != nil && i.ears.Known(who.ID)
}

// takeSignals decodes by itself: a typed Receive would drop a bad payload silently.
func (i *Inbox) takeSignals(h Handler) {
	i.receive(h.name, func(raw []byte) {
		payload, who, err := h.decode(raw)
		switch {
		case err != nil:
			i.ears.Refused(h.name, who, api.Refused, err)
			return
		case i.knows(who):
			return // it was sent twice, and has had its effect
		}
		if err := h.check(payload); err != nil {
			i.ears.Refused(h.name, who, api.Ignored, err)
			return
		}
		i.ears.Applied(h.name, who, h.apply(payload))
	})
}

// maxPayload bounds a message, in bytes. A longer one is refused unread: to decode it takes time in which nothing else of
// the workflow runs, a workflow task that takes a second of it fails, and so does every later one and every query. What a
// drain tells of its pods is well below.
const maxPayload = 512 << 10

// decodeStrict reads a payload that must be there.
func decodeStrict(raw []byte, payload any) error {
	if len(raw) > maxPayload {
		return fmt.Errorf("the payload has %d bytes: at most %d are taken", len(raw), maxPayload)
	}
	return spec.DecodeStrict(raw, payload)
}

// Receive takes a signal that workflows and activities send each other, whose payload must be there.
func Receive[T any](i *Inbox, name string, take func(T)) {
	i.receive(name, func(raw []byte) {
		var payload T
		if err := decodeStrict(raw, &payload); err != nil {
			i.ears.Refused(name, api.Message{}, api.Refused, err)
			return
		}
		take(payload)
	})
}

func (i *Inbox) receive(name string, take func(raw []byte)) { i.take[name] = take }

// read takes the message that came first.
func (i *Inbox) read() {
	if i.ears.Arrived != nil {
		i.ears.Arrived()
	}
	name := i.arrived.next()
	var raw converter.RawValue
	take, known := i.take[name]
	switch {
	case !workflow.GetSignalChannel(i.ctx, name).ReceiveAsync(&raw):
		i.ears.Refused(name, api.Message{}, api.Refused, errors.New("its payload cannot be read"))
	case !known:
		i.ears.Refused(name, api.Message{}, api.Refused, errors.New("there is no such message"))
	default:
		payload := Payload(raw)
		i.unrested += len(payload)
		take(payload)
	}
}

// Update takes an update whose payload must be there, and whose answer is an R. Check is its validator, and is asked
// again when handle reads the payload: handle may wait before that.
func Update[T, R any](i *Inbox, name string, check func(T) error, handle func(ctx workflow.Context, read func() (T, error)) (R, error)) error {
	decode := func(raw converter.RawValue) (payload T, err error) {
		if err := decodeStrict(Payload(raw), &payload); err != nil {
			return payload, err
		}
		return payload, check(payload)
	}
	return workflow.SetUpdateHandlerWithOptions(i.ctx, name, func(ctx workflow.Context, raw converter.RawValue) (R, error) {
		return handle(ctx, func() (T, error) { return decode(raw) })
	}, workflow.UpdateHandlerOptions{Validator: func(raw converter.RawValue) error {
		_, err := decode(raw)
		return err
	}})
}

// Unread tells whether there are messages that were not looked at yet.
func (i *Inbox) Unread() bool { return len(i.arrived.names) > 0 }

// Open reads signals, in a coroutine of its own, each once ready says nothing against it; nil is at once.
func (i *Inbox) Open(ready func(workflow.Context) error) {
	workflow.GoNamed(i.ctx, "signals", func(ctx workflow.Context) {
		for {
			if err := workflow.Await(ctx, i.Unread); err != nil {
				return
			}
			if ready != nil && ready(ctx) != nil {
				return
			}
			i.read()
			if i.unrested > maxUnrested {
				i.rest(ctx)
			}
		}
	})
}

// maxUnrested is how much is read, in bytes, before everybody else has a turn: the SDK takes a coroutine that runs for a
// second for one that hangs, and fails the workflow task.
const maxUnrested = 256 << 10

// rest lets the other coroutines run.
func (i *Inbox) rest(ctx workflow.Context) {
	i.unrested = 0
	rested := false
	_ = workflow.Await(ctx, func() bool { // a workflow that is cancelled goes on reading
		defer func() { rested = true }()
		return rested
	})
}

// Decode reads a payload strictly; one that is absent is the zero value.
func Decode[T any](raw []byte) (payload T, err error) {
	if len(raw) > 0 {
		err = decodeStrict(raw, &payload)
	}
	return payload, err
}

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

// IsContinued tells whether a run was given its input by the run before it, which continued as new. The server names an
// earlier run also where one is repeated by a cron schedule or a retry policy, with the input that somebody gave the first.
func IsContinued(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.ContinuedExecutionRunID != "" && info.CronSchedule == "" && info.RetryPolicy == nil
}
