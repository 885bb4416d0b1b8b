package maintenance

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
)

// mirrorWithin bounds a call of the bridge. One that does not run costs a maintenance no more than that at its end.
const mirrorWithin = 10 * time.Second

// mirror has the bridge show the maintenance in the Kubernetes object that asked for it: it calls the bridge after each change, for
// several at once where they come faster than it answers. The bridge reads the status then, and reads all of them when it starts.
func (o *outbox) mirror(ctx workflow.Context) {
	for workflow.Await(ctx, o.isBehind) == nil {
		o.shown, o.calling = o.journal.mirrored(), true
		calling := call.Within(call.Quick(ctx, "show it in "+o.spec.Object.String()), mirrorWithin)
		_ = attempt(call.Times(call.In(calling, api.LaneBridge), 1), "the bridge did not answer", api.ReconcileObject, *o.spec.Object)
		o.calling = false
	}
}

func (o *outbox) isBehind() bool { return o.spec.Object != nil && o.shown != o.journal.mirrored() }

// mirrored changes with whatever has the bridge called. It holds no text: to word one otherwise would change what running maintenances do.
type mirrored struct {
	phase                                     api.Phase
	moment, done, evicted, remaining, blocked int
	waits                                     bool
}

func (j *journal) mirrored() mirrored {
	m := mirrored{phase: j.s.Phase, moment: j.moment(), waits: j.s.WaitingFor != ""}
	for _, r := range j.s.Requestors {
		if r.DoneAt != nil {
			m.done++
		}
	}
	if d := j.s.Drain; d != nil {
		m.evicted, m.remaining, m.blocked = d.Ended(), d.Remaining, len(d.Blockers)+d.MoreBlockers
	}
	return m
}
