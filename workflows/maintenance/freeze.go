package maintenance

import (
	"errors"
	"strings"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
)

// errHeld: a freeze holds running maintenances.
var errHeld = errors.New("held by a freeze")

// freeze is the gate before every side effect: it is shut while somebody's freeze holds running maintenances.
type freeze struct {
	journal *journal
	stop    *stop
	clock   *clock
	reasons []string
}

// told takes the scheduler's word on which freezes hold this maintenance.
func (f *freeze) told(h api.FreezeNotice) { f.reasons = h.Reasons }

// forget drops what was heard with an earlier slot: freezes are told to holders only.
func (f *freeze) forget() { f.reasons = nil }

func (f *freeze) holds() bool { return len(f.reasons) > 0 }

func (f *freeze) waiting() { f.journal.waiting("a thaw: " + strings.Join(f.reasons, "; ")) }

// proceed passes the gate in the steps until the node is Ready.
func (f *freeze) proceed() error {
	if !f.holds() {
		return nil
	}
	f.waiting()
	if err := workflow.Await(f.stop.steps, func() bool { return !f.holds() }); err != nil {
		return f.stop.interrupted()
	}
	f.journal.waiting("")
	return nil
}

// thawed passes the gate once the node is Ready.
func (f *freeze) thawed() error {
	if f.holds() {
		f.waiting()
		f.clock.await(func() bool { return !f.holds() || f.stop.decided() != nil })
		f.journal.waiting("")
	}
	return f.stop.decided()
}

// awaitThaw keeps a frozen maintenance as it is: to give a node back is a side effect too.
func (f *freeze) awaitThaw() {
	if f.holds() {
		f.waiting()
		f.clock.await(func() bool { return !f.holds() })
		f.journal.waiting("")
	}
}

// unlessHeld runs an activity, and takes it back when a freeze holds running maintenances.
func (f *freeze) unlessHeld(ctx workflow.Context, start func(workflow.Context) workflow.Future, result any) error {
	ctx, cancel := workflow.WithCancel(ctx)
	defer cancel()
	future := start(ctx)
	if err := workflow.Await(f.stop.steps, func() bool { return future.IsReady() || f.holds() }); err != nil {
		return f.stop.interrupted()
	}
	if !future.IsReady() {
		return errHeld
	}
	return future.Get(ctx, result)
}
