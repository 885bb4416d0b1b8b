package plan

import (
	"errors"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/inbox"
)

// office takes the messages of people and scripts.
type office struct {
	*core
	course course
}

// listen takes every message from the first moment on.
func (o *office) listen(root workflow.Context) error {
	err := workflow.SetQueryHandlerWithOptions(root, api.QueryStatus, func(raw converter.RawValue) (api.PlanStatus, error) {
		asked, err := inbox.Decode[api.PlanStatusRequest](inbox.Payload(raw))
		if err != nil {
			return api.PlanStatus{}, err
		}
		return o.page(asked)
	}, workflow.QueryHandlerOptions{Description: "phase, counts, what it waits for, and a page of the nodes"})
	if err != nil {
		return err
	}
	in := inbox.New(o.ctx, o)
	if err := in.Take(o, append(o.course.handlers(), inbox.On(api.MsgCancel, o.checkCancel, o.applyCancel))...); err != nil {
		return err
	}
	o.course.listen(in)
	o.unread = in.Unread
	in.Open(nil)
	workflow.GoNamed(o.ctx, "cancellation", func(ctx workflow.Context) {
		root.Done().Receive(ctx, nil)
		if o.checkCancel(api.Cancel{}) == nil {
			o.received("cancellation of the workflow", api.Message{}, api.Applied, o.applyCancel(api.Cancel{}))
		}
	})
	return nil
}

// Arrived counts a signal.
func (o *office) Arrived() { o.signals++; o.dirty = true }

// Known reports whether a message was received before.
func (o *office) Known(id string) bool { return o.knows(id) }

// Applied records a message that had an effect.
func (o *office) Applied(name string, who api.Message, effect string) {
	o.received(name, who, api.Applied, effect)
}

// Refused records a message that had none.
func (o *office) Refused(name string, who api.Message, outcome api.Outcome, why error) {
	o.received(name, who, outcome, "ignored: "+why.Error())
}

func (o *office) checkCancel(m api.Cancel) error {
	if m.Release || m.BeforeReady {
		return errors.New("release, beforeReady: are a maintenance's: a plan never gives back nodes that are worked on")
	}
	return o.open(m.Run)
}

func (o *office) applyCancel(m api.Cancel) string {
	effect := o.course.stopping()
	o.course.stop(api.PlanCancelled, sentence("cancelled", m.By, m.Comment))
	return effect
}

// sentence says who did something, and why.
func sentence(what, by, why string) string {
	if by != "" {
		what += " by " + by
	}
	if why != "" {
		what += ": " + why
	}
	return bounds.Cut(what, bounds.Text)
}

// refusing is a message that no plan of this strategy takes: why says what to do instead. Histories without the change do
// not know it.
func refusing[T inbox.Said](name, why string) inbox.Handler {
	return inbox.On(name, func(T) error { return errors.New(why) }, func(T) string { return "" })
}
