package maintenance

import (
	"strings"
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/call"
)

// askFirst is the first pause before the scheduler is asked whether a freeze still holds: its notice may be lost, or forged.
const askFirst = time.Minute

// freezeState has the freezes that hold the maintenance, and the revision of the latest notice.
type freezeState struct {
	Freezes        []string `json:"reasons,omitempty"`
	FreezeRevision int      `json:"revision,omitempty"`
}

// maxReasons bounds the freezes that are shown to hold a maintenance.
const maxReasons = 20

// takeFreeze takes the scheduler's notice of the freezes that hold this maintenance. One for an earlier slot, or older than the latest,
// does not count.
func (c *control) takeFreeze(n api.FreezeNotice) {
	if n.RequestID != c.slot.Request || n.Revision < c.FreezeRevision {
		return
	}
	bounds.Fit(&n)
	c.Freezes, c.FreezeRevision = n.Reasons[:min(len(n.Reasons), maxReasons)], n.Revision
}

func (c *control) isFrozen() bool { return len(c.Freezes) > 0 || c.unconfirmed }

// proceed waits while a freeze holds running maintenances. Every side effect follows it. It returns an error where the maintenance is ended
// before.
func (c *control) proceed() error {
	if !c.isFrozen() {
		return c.decided()
	}
	return c.awaitThaw(c.decided)
}

// awaitThaw waits while a freeze holds running maintenances, unless the maintenance is ended before.
func (c *control) awaitThaw(ended func() error) error {
	for times := 0; c.isFrozen(); times++ {
		if c.unconfirmed {
			c.journal.waiting("the scheduler to confirm the slot")
		} else {
			c.journal.waiting(api.WaitsForThaw + strings.Join(c.Freezes, "; "))
		}
		pause := period.Doubled(askFirst, pauseMost, times)
		thawed := c.awaitAlwaysUpTo(c.life, pause, "ask whether the freeze still holds", func() bool { return ended() != nil || !c.isFrozen() })
		if err := ended(); err != nil {
			return err
		}
		if !thawed {
			c.askFreezes()
		}
	}
	c.journal.waiting("")
	return nil
}

// askFreezes asks the scheduler which freezes hold. Without an answer nothing changes.
func (c *control) askFreezes() {
	ctx := call.Within(call.Quick(c.life, "ask which freezes hold"), call.TidyWithin)
	held, err := run[api.SlotHeld](ctx, call.Nodes.AskSlot, c.slot.named())
	if err != nil {
		workflow.GetLogger(c.life).Warn("the scheduler was not asked about freezes", "error", err)
		return
	}
	if !held.Rebuilding {
		*c.freezeState = freezeState{Freezes: held.Frozen, FreezeRevision: held.Revision}
	}
}

// unlessHeld runs an activity, and cancels it when a freeze holds running maintenances.
func (c *control) unlessHeld(ctx workflow.Context, activity, in any) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	future := workflow.ExecuteActivity(ctx, activity, in)
	if err := c.await(func() bool { return future.IsReady() || c.isFrozen() }); err != nil {
		return err
	}
	if !future.IsReady() {
		return errAgain
	}
	return future.Get(ctx, nil)
}
