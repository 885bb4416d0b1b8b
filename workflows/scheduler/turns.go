package scheduler

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"drydock/api"
)

// turns are the updates that wait until it is known who holds a slot, in the order in which they take effect.
type turns struct {
	waiting []*turn
	// began is how long the history was in the run's first workflow task.
	began int
	since since
}

// turn is that of one update.
type turn struct {
	name string
	// early: it came with the first workflow task. ordered: it waits for those before it.
	early, ordered bool
}

// changeTurns: updates that wait take effect in the order of their arrival. Before, it was the SDK's, which has the handler
// of a later update go on before those of earlier ones.
const changeTurns = "updates-in-turn"

func newTurns(ctx workflow.Context) turns {
	return turns{began: workflow.GetInfo(ctx).GetCurrentHistoryLength(), since: since{change: changeTurns}}
}

// take puts an update behind those that wait. Those of the first workflow task come by name, not by time: so are all that a
// workflow had taken that is reset to its beginning. Of these a freeze is the last, so that none is lost.
func (w *turns) take(ctx workflow.Context, name string) *turn {
	t := &turn{name: name, early: workflow.GetInfo(ctx).GetCurrentHistoryLength() == w.began}
	t.ordered = len(w.waiting) > 0 && w.since.known(ctx)
	at := len(w.waiting)
	for t.early && name != api.UpdateFreeze && at > 0 && w.waiting[at-1].name == api.UpdateFreeze {
		at--
	}
	w.waiting = slices.Insert(w.waiting, at, t)
	return t
}

// first tells whether it is an update's turn.
func (w *turns) first(t *turn) bool { return !w.waiting[0].ordered && !t.ordered || w.waiting[0] == t }

func (w *turns) leave(t *turn) {
	w.waiting = slices.DeleteFunc(w.waiting, func(other *turn) bool { return other == t })
}
