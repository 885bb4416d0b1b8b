package maintenance

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// reason is why a maintenance does not go on as it would. A higher one comes before a lower one.
type reason int

const (
	goesOn reason = iota
	// slotLost: the scheduler knows of no slot that it holds, and it begins again with the slot.
	slotLost
	// cancelled: somebody took it back before the node was Ready.
	cancelled
	// released: the node is to be given back, whatever its requestors say.
	released
	// nodeGone: there is nothing left to maintain.
	nodeGone
)

var (
	// errSlotLost: the maintenance has to begin again with the slot.
	errSlotLost = errors.New("the scheduler knows of no slot that it holds")
	// errContinue: the maintenance goes on in a new run.
	errContinue = errors.New("goes on in a new run")
)

// control is how a maintenance waits, and the one value that ends it before its time: every wait looks at that first. It
// holds the maintenance while a freeze does (freeze.go), and says when it goes on in a new run.
type control struct {
	*identity
	journal *journal
	slot    *slot
	inbox   *inbox.Inbox
	// run is the maintenance: it continues in a new run where it is idle.
	run idler
	// life is the context that no cancellation reaches.
	life workflow.Context
	// steps is the context of activities that end when the maintenance does; end ends them.
	steps workflow.Context
	end   workflow.CancelFunc

	reason reason
	why    string

	// unconfirmed: the workflow was reset, and the scheduler has not said yet that it still holds its slot.
	unconfirmed bool
	*freezeState
}

type idler interface{ idle() bool }

// ending is the error by which a step ends the maintenance in a given phase.
type ending struct {
	Phase   api.Phase `json:"phase"`
	Kind    string    `json:"kind,omitempty"`
	Message string    `json:"message,omitempty"`
}

func (e ending) Error() string { return e.Message }

// endingOf is how a procedure that returned err ends.
func endingOf(err error) ending {
	end := ending{Phase: api.Completed}
	if err != nil && !errors.As(err, &end) {
		end = ending{Phase: api.Failed, Message: call.Cause(err)}
	}
	return end
}

func (c *control) cancel(why string) { c.set(cancelled, why) }

// releaseNode ends the wait for requestors, and for what failed.
func (c *control) releaseNode(why string) { c.set(released, why) }

func (c *control) loseNode(message string) {
	c.set(nodeGone, fmt.Sprintf("node %s: %s", c.spec.Node, message))
}

func (c *control) loseSlot() { c.set(slotLost, "") }

func (c *control) set(r reason, why string) {
	if r <= c.reason {
		return
	}
	c.reason, c.why = r, why
	c.end()
}

// begin begins the context of the steps, and begins it anew once the slot was lost.
func (c *control) begin() {
	c.reason = goesOn
	c.steps, c.end = workflow.WithCancel(c.life)
}

func (c *control) stopped() bool { return c.reason != goesOn }

func (c *control) refuse() error {
	if c.reason > slotLost {
		return errEnding
	}
	return nil
}

// decided is why the steps were ended, nil while they go on.
func (c *control) decided() error {
	switch c.reason {
	case goesOn:
		return nil
	case slotLost:
		return errSlotLost
	case nodeGone:
		return ending{Phase: api.NodeGone, Message: c.why}
	default:
		return ending{Phase: api.Cancelled, Message: c.why}
	}
}

// stepFailed sorts what went wrong in a step: the maintenance was ended, its slot is not its own, the node is gone, or it
// failed.
func (c *control) stepFailed(err error) error {
	if over := c.decided(); over != nil {
		return over
	}
	var end ending
	if errors.As(err, &end) || errors.Is(err, errContinue) {
		return err
	}
	var cause *temporal.ApplicationError
	if !errors.As(err, &cause) {
		return ending{Phase: api.Failed, Message: call.Cause(err)}
	}
	switch cause.Type() {
	case api.ErrorSlotNotHeld:
		return errSlotLost
	case api.ErrorNodeGone, api.ErrorNodeReplaced:
		return ending{Phase: api.NodeGone, Message: cause.Message()}
	default:
		return ending{Phase: api.Failed, Kind: cause.Type(), Message: cause.Message()}
	}
}

func (c *control) now() time.Time { return workflow.Now(c.life) }

// await waits for a condition. What ends the maintenance comes first, also where both come at once.
func (c *control) await(condition func() bool) error {
	c.awaitAlways(func() bool { return c.stopped() || condition() })
	return c.decided()
}

// awaitOrContinue is await for a condition that may take long: the error is errContinue where the run is to end first.
func (c *control) awaitOrContinue(condition func() bool) error {
	if err := c.await(func() bool { return condition() || c.shouldContinue() }); err != nil || condition() {
		return err
	}
	return errContinue
}

// awaitUpTo waits for a condition, at most for a time; ok tells that it came true. What ends the maintenance comes first.
func (c *control) awaitUpTo(limit time.Duration, summary string, condition func() bool) (ok bool, err error) {
	ok, err = c.awaitAlwaysUpTo(c.life, limit, summary, func() bool { return c.stopped() || condition() })
	if err == nil {
		err = c.decided()
	}
	return ok, err
}

// awaitAlways waits where no cancellation reaches, so there is no error to handle.
func (c *control) awaitAlways(condition func() bool) {
	if err := workflow.Await(c.life, condition); err != nil {
		workflow.GetLogger(c.life).Error("wait interrupted", "error", err)
	}
}

// awaitAlwaysUpTo waits for a condition, whatever ends the maintenance. The timer goes when the wait is over: one left
// behind would wake the workflow for nothing. A coroutine waits on its own context.
func (c *control) awaitAlwaysUpTo(ctx workflow.Context, limit time.Duration, summary string, condition func() bool) (ok bool, err error) {
	waiting, cancel := workflow.WithCancel(ctx)
	defer cancel()
	ok, err = workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: limit, TimerOptions: workflow.TimerOptions{Summary: summary},
	}, condition)
	if err != nil || ok {
		return ok, err
	}
	// A message that came before the time was over counts, also where no worker ran to read it. One that was handed to
	// the reader is not pending any more: the reader has its turn first.
	turns := 0
	if err := workflow.Await(waiting, func() bool { turns++; return turns > 1 && !c.inbox.Unread() }); err != nil {
		return false, err
	}
	return condition(), nil
}

// pauseOrContinue pauses between two tries, where no cancellation reaches, unless the run is to end.
func (c *control) pauseOrContinue(d time.Duration, summary string) error {
	if _, err := c.awaitAlwaysUpTo(c.life, d, summary, c.shouldContinue); err != nil {
		return err
	}
	if c.shouldContinue() {
		return errContinue
	}
	return nil
}

// maxEvents is how long a history gets before the maintenance goes on in a new run, where the server does not suggest it
// earlier. A server ends what has 51,200.
const maxEvents = 8000

// shouldContinue reports that the history is long enough and that nothing would be lost: the maintenance waits, and nothing
// of it is under way.
func (c *control) shouldContinue() bool {
	info := workflow.GetInfo(c.life)
	return (info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxEvents) &&
		c.run.idle() && !c.inbox.Unread() && workflow.AllHandlersFinished(c.life)
}

// backoff is a pause that doubles with every try. What fails again and again is tried once an hour.
type backoff struct{ first, last, next time.Duration }

func (b *backoff) pause() time.Duration {
	b.next = max(b.first, min(2*b.next, b.last))
	return b.next
}

const pauseMost = time.Hour
