// Package inbox is how workflows take messages: in the order of their arrival, strictly decoded and recorded, each as a signal and as an
// update of the same name.
package inbox

import (
	"errors"
	"fmt"
	"reflect"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
)

// Handler is one message of people. On makes it.
type Handler struct {
	name string
	// since is the change ID from which on workflows know the message; empty if they always did.
	since string
	// payload is a prototype: each message is decoded strictly into a new one.
	payload Said
	// check returns why a payload cannot take effect now, apply carries it out and describes the effect.
	check func(Said) error
	apply func(Said) string
	// Take sets the others.
	ctx     workflow.Context
	account Account
	idle    Idle
}

// Idle knows which messages have nothing left to do. It is asked about updates only, and before they are accepted: such an update leaves
// nothing in the history, so that a replay never asks.
type Idle interface {
	// NothingToDo says why a message has nothing left to do; empty if it has, or is refused.
	NothingToDo(name string, payload any) (why string)
}

// Said is a payload that has its sender and a comment.
type Said interface{ Said() api.Message }

// On is the handler of a message whose payload is a T. The payload may be absent.
func On[T Said](name string, check func(T) error, apply func(T) string) Handler {
	var prototype T
	return Handler{
		name: name, payload: prototype,
		check: func(payload Said) error { return check(payload.(T)) },
		apply: func(payload Said) string { return apply(payload.(T)) },
	}
}

// Since names the change ID from which on workflows know the message: a workflow that refused it before refuses it in a replay.
func (h Handler) Since(change string) Handler {
	h.since = change
	return h
}

// Recorder records signals that had no effect, and why. Where it has a method Arrived, that is called for every signal before it is read.
type Recorder interface {
	Refused(name string, who api.Message, outcome api.Outcome, why error)
}

// Account is a Recorder that also records messages that took effect, and answers updates.
type Account interface {
	Recorder
	// Known reports whether a message with this ID was received before.
	Known(id string) bool
	Applied(name string, who api.Message, effect string)
	// Answer waits for what follows from an update that had an effect, and returns the answer. It has to end.
	Answer(ctx workflow.Context, effect string) (string, error)
}

// Inbox takes the messages to one workflow run in one coroutine.
type Inbox struct {
	ctx    workflow.Context
	queue  *Queue
	take   map[string]func(raw []byte)
	record Recorder
	// unrested counts the bytes read since the last Rest.
	unrested int
}

// New returns an inbox that takes nothing yet.
func New(ctx workflow.Context, record Recorder) *Inbox {
	return &Inbox{ctx: ctx, queue: QueueOf(ctx), take: map[string]func([]byte){}, record: record}
}

// Take takes messages, each as a signal and as an update of the same name. A bad signal changes nothing, a bad update is
// refused.
func (i *Inbox) Take(account Account, idle Idle, handlers ...Handler) error {
	own := workflow.GetInfo(i.ctx).WorkflowType.Name
	for _, h := range handlers {
		declared, is := api.MessageOf(own, h.name)
		if is && reflect.TypeOf(h.payload) != reflect.TypeOf(declared.Payload) {
			return fmt.Errorf("message %s to a %s: its handler takes a %T, and package api declares a %T", h.name, own, h.payload, declared.Payload)
		}
		h.ctx, h.account, h.idle = i.ctx, account, idle
		i.take[h.name] = h.take
		err := workflow.SetUpdateHandlerWithOptions(i.ctx, h.name, h.update, workflow.UpdateHandlerOptions{
			Validator: h.validate, Description: api.EffectOf(own, h.name),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Errors of messages that no workflow takes.
var (
	ErrUnknown = errors.New("there is no such message")
	// ErrTwice refuses what was received before: its outcome stands under its ID.
	ErrTwice error = temporal.NewNonRetryableApplicationError("a message with this id was received already", api.ErrorReceived, nil)
)

func (h Handler) knows(who api.Message) bool { return who.ID != "" && h.account.Known(who.ID) }

func (h Handler) validate(raw converter.RawValue) error {
	m, err := h.read(raw)
	if err != nil {
		return err
	}
	if why := h.idle.NothingToDo(h.name, m); why != "" {
		return temporal.NewNonRetryableApplicationError(why, api.ErrorNothingToDo, nil)
	}
	return h.check(m)
}

// read returns the payload of an update that was not received before.
func (h Handler) read(raw converter.RawValue) (Said, error) {
	m, err := DecodeAs(h.payload, Payload(raw), true, MaxPayload)
	switch {
	case err != nil:
		return nil, err
	case h.knows(m.Said()):
		return nil, ErrTwice
	}
	return m, nil
}

func (h Handler) update(ctx workflow.Context, raw converter.RawValue) (string, error) {
	m, err := h.read(raw)
	if err == nil {
		err = h.check(m)
	}
	if err != nil {
		return "", err
	}
	effect := h.apply(m)
	h.account.Applied(h.name, m.Said(), effect)
	return h.account.Answer(ctx, effect)
}

// take decodes a signal by itself: a typed Receive would drop a bad payload silently.
func (h Handler) take(raw []byte) {
	m, err := DecodeAs(h.payload, raw, true, MaxPayload)
	if err == nil {
		err = Days(h.ctx, raw, h.payload)
	}
	switch {
	case err != nil:
		h.account.Refused(h.name, m.Said(), api.Refused, err)
		return
	case h.knows(m.Said()):
		return // it was sent twice, and has had its effect
	case h.since != "" && workflow.GetVersion(h.ctx, h.since, workflow.DefaultVersion, 1) == workflow.DefaultVersion:
		h.account.Refused(h.name, api.Message{}, api.Refused, ErrUnknown)
		return
	}
	if err := h.check(m); err != nil {
		h.account.Refused(h.name, m.Said(), api.Ignored, err)
		return
	}
	h.account.Applied(h.name, m.Said(), h.apply(m))
}

// MaxPayload bounds a message, in bytes. A longer one is refused unread: while it is decoded nothing else of the workflow runs, and a
// workflow task in which that takes a second fails, as do all later ones and all queries. What a drain reports of its pods is well below.
const MaxPayload = 512 << 10

// DecodeStrict reads a payload, at most this many bytes, that must be there.
func DecodeStrict(raw []byte, payload any, most int) error {
	if len(raw) > most {
		return fmt.Errorf("the payload has %d bytes: at most %d are taken", len(raw), most)
	}
	return spec.DecodeStrict(raw, payload)
}

// DecodeAs reads a payload, at most this many bytes, into a new value of the prototype's type; one that is absent is the zero value where it
// is optional. With an error it returns the prototype.
func DecodeAs[P any](prototype P, raw []byte, optional bool, most int) (P, error) {
	into := reflect.New(reflect.TypeOf(prototype))
	if len(raw) > 0 || !optional {
		if err := DecodeStrict(raw, into.Interface(), most); err != nil {
			return prototype, err
		}
	}
	return into.Elem().Interface().(P), nil
}

// Receive takes a signal that workflows and activities send each other, whose payload must be there.
func Receive[T any](i *Inbox, name string, take func(T)) {
	i.take[name] = func(raw []byte) {
		var payload T
		if err := DecodeStrict(raw, &payload, MaxPayload); err != nil {
			i.record.Refused(name, api.Message{}, api.Refused, err)
			return
		}
		take(payload)
	}
}

// read takes the message that came first.
func (i *Inbox) read() {
	if counter, ok := i.record.(interface{ Arrived() }); ok {
		counter.Arrived()
	}
	name, payload, err := i.queue.Next(i.ctx)
	take, known := i.take[name]
	if err == nil && !known {
		err = ErrUnknown
	}
	if err != nil {
		i.record.Refused(name, api.Message{}, api.Refused, err)
		return
	}
	i.unrested += len(payload)
	take(payload)
}

// Update takes an update whose payload must be there, and whose answer is an R. Check is its validator, and is called again when handle reads
// the payload: handle may wait before that.
func Update[T, R any](i *Inbox, name string, check func(T) error, handle func(ctx workflow.Context, read func() (T, error)) (R, error)) error {
	decode := func(raw converter.RawValue) (payload T, err error) {
		if err := DecodeStrict(Payload(raw), &payload, MaxPayload); err != nil {
			return payload, err
		}
		return payload, check(payload)
	}
	return workflow.SetUpdateHandlerWithOptions(i.ctx, name, func(ctx workflow.Context, raw converter.RawValue) (R, error) {
		return handle(ctx, func() (T, error) { return decode(raw) })
	}, workflow.UpdateHandlerOptions{Description: api.EffectOf(workflow.GetInfo(i.ctx).WorkflowType.Name, name), Validator: func(raw converter.RawValue) error {
		_, err := decode(raw)
		return err
	}})
}

// Unread reports whether there are unread signals.
func (i *Inbox) Unread() bool { return i.queue.Unread() }

// Open reads signals in a coroutine of its own.
func (i *Inbox) Open() {
	workflow.GoNamed(i.ctx, "signals", func(ctx workflow.Context) {
		for {
			if err := workflow.Await(ctx, i.Unread); err != nil {
				return
			}
			i.read()
			if i.unrested > MaxUnrested {
				i.unrested = 0
				Rest(ctx)
			}
		}
	})
}

// Decode reads a payload strictly; one that is absent is the zero value.
func Decode[T any](raw []byte) (payload T, err error) {
	return DecodeAs(payload, raw, true, MaxPayload)
}

// changeDays is the change ID from which on durations may be written with days. Workflows without it refused them.
const changeDays = "durations-with-days"

// Days returns an error where a payload, of the prototype's type, writes a duration with days and the history is of a worker that refused
// that. Updates need no such check: one that a worker refused is in no history.
func Days(ctx workflow.Context, raw []byte, prototype any) error {
	if !spec.HasDays(raw, prototype) || workflow.GetVersion(ctx, changeDays, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return nil
	}
	return errors.New("a duration with days is not taken here: write it in hours")
}

// InvalidSpec returns the error of a workflow whose input is wrong.
func InvalidSpec(err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorInvalidSpec, nil)
}

// Payload returns the JSON of an input, nil if there is none.
func Payload(raw converter.RawValue) []byte { return raw.Payload().GetData() }

// IsContinued reports whether a run has its input from the run before it, which continued as new. The server also names an earlier run where a
// cron schedule or a retry policy has started this one, with the input that somebody gave to the first.
func IsContinued(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.ContinuedExecutionRunID != "" && info.CronSchedule == "" && info.RetryPolicy == nil
}
