package maintenance

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/node"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"errors"
	"go.temporal.io/sdk/workflow"
	"strings"
	"time"
)

// errHeld: a freeze holds running maintenances.
var errHeld = errors.New("held by a freeze")

// askFirst is when the scheduler is asked whether a freeze still holds: its word may be lost, or somebody else's.
const askFirst = time.Minute

// freeze is the gate before every side effect: it is shut while somebody's freeze holds running maintenances.
type freeze struct {
	journal *journal
	stop    *stop
	clock   *clock
	// slot is the one by which the maintenance is told.
	slot func() node.Slot
	// unconfirmed: the workflow was reset, and the scheduler has not said yet that it still holds its slot.
	unconfirmed bool
	freezeState
}

// freezeState is what the next run has to know. Revision is that of the latest notice.
type freezeState struct {
	Reasons  []string `json:"reasons,omitempty"`
	Revision int      `json:"revision,omitempty"`
}

// maxReasons bounds the freezes that are shown to hold a maintenance.
const maxReasons = 20

// told takes the scheduler's word on which freezes hold this maintenance. A notice to an earlier one, or one that a later
// one has overtaken, says nothing.
func (f *freeze) told(n api.FreezeNotice) {
	if n.RequestID != f.slot().RequestID || n.Revision < f.Revision {
		return
	}
	f.Reasons, f.Revision = n.Reasons[:min(len(n.Reasons), maxReasons)], n.Revision
}

// forget drops what was heard with an earlier slot: freezes are told to holders only.
func (f *freeze) forget() { f.freezeState = freezeState{} }

func (f *freeze) holds() bool { return len(f.Reasons) > 0 || f.unconfirmed }

func (f *freeze) waiting() {
	if f.unconfirmed {
		f.journal.waiting("the scheduler's word that it still holds its slot")
		return
	}
	f.journal.waiting("a thaw: " + strings.Join(f.Reasons, "; "))
}

// proceed passes the gate, unless the maintenance is ended before.
func (f *freeze) proceed() error {
	if !f.holds() {
		return f.stop.decided()
	}
	ask := backoff{first: askFirst, last: pauseMost}
	for f.holds() {
		f.waiting()
		thawed, err := f.stop.awaitUpTo(ask.pause(), "ask whether the freeze still holds", func() bool { return !f.holds() })
		if err != nil {
			return err
		}
		if !thawed {
			f.ask()
		}
	}
	f.journal.waiting("")
	return nil
}

// awaitThaw keeps a frozen maintenance as it is: to give a node back is a side effect too.
func (f *freeze) awaitThaw() {
	ask := backoff{first: askFirst, last: pauseMost}
	for f.holds() {
		f.waiting()
		thawed, err := f.clock.awaitUpTo(f.clock.life, ask.pause(), "ask whether the freeze still holds", func() bool { return !f.holds() })
		if err == nil && !thawed {
			f.ask()
		}
	}
	f.journal.waiting("")
}

// ask asks the scheduler which freezes hold. No answer leaves what was heard.
func (f *freeze) ask() {
	ctx := call.Within(call.Quick(f.clock.life, "ask which freezes hold"), call.TidyWithin)
	var held api.SlotHeld
	if err := workflow.ExecuteActivity(ctx, call.Nodes.AskSlot, f.slot()).Get(f.clock.life, &held); err != nil {
		workflow.GetLogger(f.clock.life).Warn("the scheduler was not asked about freezes", "error", err)
		return
	}
	if !held.Rebuilding {
		f.freezeState = freezeState{Reasons: held.Frozen, Revision: held.Revision}
	}
}

// unlessHeld runs an activity, and takes it back when a freeze holds running maintenances.
func (f *freeze) unlessHeld(ctx workflow.Context, start func(workflow.Context) workflow.Future, result any) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	future := start(ctx)
	if err := f.stop.await(func() bool { return future.IsReady() || f.holds() }); err != nil {
		return err
	}
	if !future.IsReady() {
		return errHeld
	}
	return future.Get(ctx, result)
}
