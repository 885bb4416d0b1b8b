package controller

import (
	"slices"
	"time"

	"drydock.dev/drydock/api"
)

// mirrored is the key of the call of the bridge. A bridge that does not run costs a workflow no more than mirrorWithin at its end.
var mirrored = Key{Kind: "mirror"}

const mirrorWithin = 10 * time.Second

// mirror has the bridge show the workflow in the Kubernetes object that asked for it, once for all that has changed since the last call. A
// call that fails is not repeated: the bridge looks at all objects when it starts.
func (e *engine[C]) mirror() {
	calling := slices.ContainsFunc(e.effects, func(r *running) bool { return r.meta().Key == mirrored })
	if e.page.Object == nil || calling || !isNew(&e.base.Mirrored, e.page.Shows) {
		return
	}
	a := Activity{
		Meta: Meta{Key: mirrored, Summary: "show it in " + e.page.Object.String()}, Input: *e.page.Object,
		Call: Call{Func: api.ReconcileObject, Within: mirrorWithin, Attempts: 1, Lane: api.LaneBridge},
	}
	e.effects = append(e.effects, &running{Effect: a, future: a.begin(e.ctx)})
}
