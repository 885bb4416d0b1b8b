package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/handover"
	"drydock.dev/drydock/workflows/inbox"
)

// reason is why a maintenance stops its steps. A higher one replaces a lower one.
type reason int

const (
	goesOn reason = iota
	// slotLost begins the maintenance again with the slot.
	slotLost
	// cancelled ends it before the node is Ready.
	cancelled
	// released gives the node back, whatever its requestors say.
	released
	nodeGone
)

var (
	// errSlotLost: the maintenance has to begin again with the slot.
	errSlotLost = errors.New("the scheduler knows of no slot that it holds")
	errContinue = errors.New("goes on in a new run")
)

// control has the waits of a maintenance, and the reason that ends it before its time, which every wait checks first. It waits while a
// freeze holds the maintenance (freeze.go), and decides when it goes on in a new run.
type control struct {
	*core
	inbox *inbox.Inbox
	run   *maintenance
	// life is a context that is never cancelled.
	life workflow.Context
	// steps is the context of activities that end with the maintenance; end cancels it.
	steps workflow.Context
	end   workflow.CancelFunc

	reason reason
	why    string

	// unconfirmed is set after a reset, until the scheduler confirms the slot.
	unconfirmed bool
	*freezeState
}

// ending is the error by which a step ends the maintenance in a given phase.
type ending struct {
	Phase   api.Phase `json:"phase"`
	Kind    string    `json:"kind,omitempty"`
	Message string    `json:"message,omitempty"`
}

func (e ending) Error() string { return e.Message }

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

// begin makes the context of the steps, and a new one after the slot was lost.
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

// stepFailed returns what the error of a step means for the maintenance.
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

// await waits for a condition, or until the maintenance is ended: that comes first where both come at once.
func (c *control) await(condition func() bool) error {
	c.awaitAlways(func() bool { return c.stopped() || condition() })
	return c.decided()
}

// awaitOrContinue is await, but returns errContinue where the run has to end first.
func (c *control) awaitOrContinue(condition func() bool) error {
	if err := c.await(func() bool { return condition() || c.shouldContinue() }); err != nil || condition() {
		return err
	}
	return errContinue
}

// awaitUpTo is await for at most limit; ok reports that the condition is met.
func (c *control) awaitUpTo(limit time.Duration, summary string, condition func() bool) (ok bool, err error) {
	ok = c.awaitAlwaysUpTo(c.life, limit, summary, func() bool { return c.stopped() || condition() })
	return ok, c.decided()
}

// awaitUpToOrContinue is awaitUpTo, but returns errContinue where the run has to end first.
func (c *control) awaitUpToOrContinue(limit time.Duration, summary string, condition func() bool) (ok bool, err error) {
	ok, err = c.awaitUpTo(limit, summary, func() bool { return condition() || c.shouldContinue() })
	if err == nil && ok && !condition() {
		err = errContinue
	}
	return ok, err
}

// awaitAlways waits whether or not the maintenance is ended. It cannot fail: life is never cancelled.
func (c *control) awaitAlways(condition func() bool) { _ = workflow.Await(c.life, condition) }

// awaitAlwaysUpTo is awaitAlways for at most limit; ok reports that the condition is met. It cancels its timer, which would wake the workflow
// for nothing. A coroutine passes its own context, and checks itself whether that was cancelled.
func (c *control) awaitAlwaysUpTo(ctx workflow.Context, limit time.Duration, summary string, condition func() bool) (ok bool) {
	waiting, cancel := workflow.WithCancel(ctx)
	defer cancel()
	ok, err := workflow.AwaitWithOptions(waiting, workflow.AwaitOptions{
		Timeout: limit, TimerOptions: workflow.TimerOptions{Summary: summary},
	}, condition)
	if err != nil || ok {
		return ok
	}
	// A message that came before the time was over counts, also where no worker ran to read it. One that was passed to
	// the reader is not pending any more: the reader has its turn first.
	turns := 0
	err = workflow.Await(waiting, func() bool { turns++; return turns > 1 && !c.inbox.Unread() })
	return err == nil && condition()
}

// maxEvents is the length of a history after which the maintenance goes on in a new run, unless the server suggests it earlier. A server
// ends a workflow at 51,200 events.
const maxEvents = 8000

// shouldContinue reports whether the history is long enough for a new run, and nothing would be lost by it.
func (c *control) shouldContinue() bool {
	info := workflow.GetInfo(c.life)
	return (info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxEvents) &&
		c.run.idle() && !c.inbox.Unread() && workflow.AllHandlersFinished(c.life)
}

func run[R any](ctx workflow.Context, activity, in any) (result R, err error) {
	err = workflow.ExecuteActivity(ctx, activity, in).Get(ctx, &result)
	return result, err
}

// attempt runs an activity on which nothing depends, and logs its error as what failed.
func attempt(ctx workflow.Context, failed string, activity, in any) error {
	err := workflow.ExecuteActivity(ctx, activity, in).Get(ctx, nil)
	if err != nil {
		workflow.GetLogger(ctx).Warn(failed, "error", err)
	}
	return err
}

// encode returns the JSON of a payload, whose type always has one.
func encode(payload any) json.RawMessage {
	text, err := json.Marshal(payload)
	handover.Must("a payload", err)
	return text
}

const pauseMost = time.Hour
