package controller

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/inbox"
)

// Message is a row of a workflow's table of messages. Payload is a prototype: each message is decoded strictly into a new one.
type Message[C Controller] struct {
	Name    string
	Payload Payload[C]
	// FromWorkflows: workflows send it, as a signal, and a refused one is noted. Others are those of people, who send them as signals and as
	// updates: their outcomes are recorded, and the payload may be absent.
	FromWorkflows bool
	// Max bounds the payload in bytes, 512 KiB where it is 0. A longer one is refused undecoded.
	Max int
}

// Payload is a message, which usually embeds a type of package api. Where it has the method Said, that returns its sender.
type Payload[C Controller] interface {
	// Check returns why the message cannot take effect. It changes nothing.
	Check(c C, now time.Time) error
	// Apply carries out a message that Check has accepted, and describes the effect.
	Apply(c C, now time.Time) (effect string)
}

// CancelAs takes a cancellation of the workflow as if somebody had sent a message.
func CancelAs[C Controller](c C, message Payload[C], now time.Time) {
	const name = "cancellation of the workflow"
	if err := message.Check(c, now); err != nil {
		c.base().record(now, name, api.Message{}, api.Ignored, "ignored: "+err.Error())
		return
	}
	c.base().record(now, name, api.Message{}, api.Applied, message.Apply(c, now))
}

// Settling is a payload of an update that is answered once it is known what followed from the message.
type Settling[C Controller] interface {
	// Settled reports whether that is known, with an error where the message was undone.
	Settled(c C) (done bool, err error)
}

// Query is a row of a workflow's table of queries; Question is a prototype.
type Query[C Controller] struct {
	Name, Doc string
	Question  Question[C]
}

// Question is a query's payload, which may be absent.
type Question[C Controller] interface {
	Answer(c C, now time.Time) (any, error)
}

// settleWithin bounds how long an update waits until it is settled.
const settleWithin = 10 * time.Second

type intake[C Controller] struct {
	ctx   workflow.Context // disconnected, of the coroutine that calls take
	c     C
	queue *inbox.Queue
	rows  []Message[C]
	// arrived are updates that were not processed yet, settling those that were and are not settled.
	arrived  []*update[C]
	settling []*update[C]
}

type update[C Controller] struct {
	row    Message[C]
	raw    []byte
	effect string
	err    error
	done   bool
	settle Settling[C]
	until  time.Time
}

func (i *intake[C]) open(root workflow.Context) error {
	own := workflow.GetInfo(root).WorkflowType.Name
	for _, row := range i.rows {
		if row.FromWorkflows {
			continue
		}
		if err := workflow.SetUpdateHandlerWithOptions(root, row.Name, func(ctx workflow.Context, raw converter.RawValue) (string, error) {
			ctx, cancel := workflow.NewDisconnectedContext(ctx)
			defer cancel()
			u := &update[C]{row: row, raw: inbox.Payload(raw)}
			i.arrived = append(i.arrived, u)
			_ = workflow.Await(ctx, func() bool { return u.done }) // the workflow does not end before that
			return u.effect, u.err
		}, workflow.UpdateHandlerOptions{Description: api.EffectOf(own, row.Name), Validator: func(raw converter.RawValue) error {
			_, _, err := i.read(row, inbox.Payload(raw))
			return err
		}}); err != nil {
			return err
		}
	}
	return nil
}

// read decodes a message, and returns why it has no effect. The payload is nil where it cannot be decoded.
func (i *intake[C]) read(row Message[C], raw []byte) (payload Payload[C], who api.Message, err error) {
	payload, err = inbox.DecodeAs(row.Payload, raw, !row.FromWorkflows, cmp.Or(row.Max, inbox.MaxPayload))
	if err != nil {
		return nil, who, err
	}
	if said, ok := payload.(inbox.Said); ok {
		who = said.Said()
	}
	if who.ID != "" && slices.Contains(i.c.base().Seen, who.ID) {
		return payload, who, inbox.ErrTwice
	}
	return payload, who, payload.Check(i.c, workflow.Now(i.ctx))
}

func (i *intake[C]) unread() bool { return i.queue.Unread() || len(i.arrived) > 0 }

// take processes all messages that have arrived: the signals in their order, then the updates. The SDK delivers the signals of a workflow
// task before it runs handlers of updates.
func (i *intake[C]) take() (taken int) {
	for unrested := 0; i.unread(); taken++ {
		if i.queue.Unread() {
			unrested += i.takeSignal()
		} else {
			unrested += i.takeUpdate()
		}
		if unrested > inbox.MaxUnrested {
			inbox.Rest(i.ctx)
			unrested = 0
		}
	}
	return taken
}

func (i *intake[C]) takeSignal() (size int) {
	name, raw, err := i.queue.Next(i.ctx)
	known := slices.IndexFunc(i.rows, func(m Message[C]) bool { return m.Name == name })
	if err == nil && known < 0 {
		err = inbox.ErrUnknown
	}
	if err != nil {
		i.refuse(Message[C]{Name: name}, api.Message{}, api.Refused, err)
		return len(raw)
	}
	row := i.rows[known]
	switch payload, who, err := i.read(row, raw); {
	case payload == nil:
		i.refuse(row, who, api.Refused, err)
	case errors.Is(err, inbox.ErrTwice): // it was sent twice, and has had its effect
	case err != nil:
		i.refuse(row, who, api.Ignored, err)
	default:
		i.apply(row, payload, who)
	}
	return len(raw)
}

func (i *intake[C]) takeUpdate() (size int) {
	u := i.arrived[0]
	i.arrived = i.arrived[1:]
	payload, who, err := i.read(u.row, u.raw)
	if u.err = err; err == nil {
		u.effect = i.apply(u.row, payload, who)
	}
	settling, settles := payload.(Settling[C])
	if u.done = u.err != nil || !settles; !u.done {
		u.settle, u.until = settling, workflow.Now(i.ctx).Add(settleWithin)
		i.settling = append(i.settling, u)
	}
	return len(u.raw)
}

func (i *intake[C]) apply(row Message[C], payload Payload[C], who api.Message) (effect string) {
	now := workflow.Now(i.ctx)
	effect = payload.Apply(i.c, now)
	if !row.FromWorkflows {
		i.c.base().record(now, row.Name, who, api.Applied, effect)
	} else {
		i.c.base().see(who.ID)
	}
	return effect
}

// refuse records, or notes, a message that changes nothing.
func (i *intake[C]) refuse(row Message[C], who api.Message, outcome api.Outcome, why error) {
	now := workflow.Now(i.ctx)
	if !row.FromWorkflows && row.Payload != nil {
		i.c.base().record(now, row.Name, who, outcome, why.Error())
		return
	}
	i.c.base().Note(now, "ignored a signal "+row.Name, why.Error())
}

// settle answers the updates that are settled, and those that have waited for settleWithin; all of them where now is zero. It returns when
// the next of the others has waited that long.
func (i *intake[C]) settle(now time.Time) (next time.Time) {
	i.settling = slices.DeleteFunc(i.settling, func(u *update[C]) bool {
		u.done, u.err = u.settle.Settled(i.c)
		u.done = u.done || now.IsZero() || !now.Before(u.until)
		if !u.done && (next.IsZero() || u.until.Before(next)) {
			next = u.until
		}
		return u.done
	})
	return next
}

func (q Query[C]) serve(ctx workflow.Context, c C) error {
	return workflow.SetQueryHandlerWithOptions(ctx, q.Name, func(raw converter.RawValue) (any, error) {
		question, err := inbox.DecodeAs(q.Question, inbox.Payload(raw), true, inbox.MaxPayload)
		if err != nil {
			return nil, err
		}
		return question.Answer(c, workflow.Now(ctx))
	}, workflow.QueryHandlerOptions{Description: q.Doc})
}
