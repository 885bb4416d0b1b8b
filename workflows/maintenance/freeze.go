package maintenance

import (
	"errors"
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
	"drydock/rules/bounds"
	"drydock/workflows/call"
)

// errHeld: a freeze holds running maintenances.
var errHeld = errors.New("held by a freeze")

// askFirst is when the scheduler is asked whether a freeze still holds: its word may be lost, or somebody else's.
const askFirst = time.Minute

// freezeState is what the next run has to know. FreezeRevision is that of the latest notice.
type freezeState struct {
	Freezes        []string `json:"reasons,omitempty"`
	FreezeRevision int      `json:"revision,omitempty"`
}

// maxReasons bounds the freezes that are shown to hold a maintenance.
const maxReasons = 20

// takeFreeze takes the scheduler's word on which freezes hold this maintenance. A notice to an earlier one, or one that a later
// one has overtaken, says nothing.
func (c *control) takeFreeze(n api.FreezeNotice) {
	if n.RequestID != c.slot.Request || n.Revision < c.FreezeRevision {
		return
	}
	bounds.Fit(&n)
	c.Freezes, c.FreezeRevision = n.Reasons[:min(len(n.Reasons), maxReasons)], n.Revision
}

// forgetFreezes drops what came with an earlier slot: only holders are told of freezes.
func (c *control) forgetFreezes() { *c.freezeState = freezeState{} }

func (c *control) isFrozen() bool { return len(c.Freezes) > 0 || c.unconfirmed }

func (c *control) showFreeze() {
	if c.unconfirmed {
		c.journal.waiting("the scheduler to confirm the slot")
		return
	}
	c.journal.waiting("a thaw: " + strings.Join(c.Freezes, "; "))
}

// proceed is the gate before every side effect: it waits while somebody's freeze holds running maintenances, unless the maintenance is ended before.
func (c *control) proceed() error {
	if !c.isFrozen() {
		return c.decided()
	}
	ask := backoff{first: askFirst, last: pauseMost}
	for c.isFrozen() {
		c.showFreeze()
		thawed, err := c.awaitUpTo(ask.pause(), "ask whether the freeze still holds", func() bool { return !c.isFrozen() })
		if err != nil {
			return err
		}
		if !thawed {
			c.askFreezes()
		}
	}
	c.journal.waiting("")
	return nil
}

// awaitThaw keeps a frozen maintenance as it is: to give a node back is a side effect too.
func (c *control) awaitThaw() {
	ask := backoff{first: askFirst, last: pauseMost}
	for c.isFrozen() {
		c.showFreeze()
		thawed, err := c.awaitAlwaysUpTo(c.life, ask.pause(), "ask whether the freeze still holds", func() bool { return !c.isFrozen() })
		if err == nil && !thawed {
			c.askFreezes()
		}
	}
	c.journal.waiting("")
}

// askFreezes asks the scheduler which freezes hold. No answer leaves what is known.
func (c *control) askFreezes() {
	ctx := call.Within(call.Quick(c.life, "ask which freezes hold"), call.TidyWithin)
	var held api.SlotHeld
	if err := workflow.ExecuteActivity(ctx, call.Nodes.AskSlot, c.slot.named()).Get(c.life, &held); err != nil {
		workflow.GetLogger(c.life).Warn("the scheduler was not asked about freezes", "error", err)
		return
	}
	if !held.Rebuilding {
		*c.freezeState = freezeState{Freezes: held.Frozen, FreezeRevision: held.Revision}
	}
}

// unlessHeld runs an activity, and takes it back when a freeze holds running maintenances.
func (c *control) unlessHeld(ctx workflow.Context, start func(workflow.Context) workflow.Future, result any) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	future := start(ctx)
	if err := c.await(func() bool { return future.IsReady() || c.isFrozen() }); err != nil {
		return err
	}
	if !future.IsReady() {
		return errHeld
	}
	return future.Get(ctx, result)
}
