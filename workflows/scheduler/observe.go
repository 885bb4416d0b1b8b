package scheduler

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/cluster"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/workflows/call"
)

const (
	// actWithin bounds an activity of the scheduler's own, and so the time for which it keeps the scheduler from continuing as new. What
	// fails for this long is shown as trouble, and tried again.
	actWithin = time.Minute
	// glanceWithin bounds an observation by the worker that decides.
	glanceWithin = time.Second
	// notObserved and notWatched are the troubles shown when observing or watching fails.
	notObserved = "the cluster could not be observed"
	notWatched  = "the cluster could not be watched"
)

// observer knows what was last seen of the cluster.
type observer struct {
	*scheduler
	// busy: an observation is under way, or is to be tried again.
	busy bool
}

// observe observes the cluster where requests wait whose nodes' state is not known. A grant may wait for it: first the worker that decides
// is asked, without the server between them.
func (o *observer) observe() {
	if o.busy || !o.slots.waitsUnobserved() {
		return
	}
	o.busy = true
	all, ours := o.slots.nodes()
	in := cluster.ObserveInput{
		Groups: o.Limits.Groups, Revision: o.Revision, Names: all, Ours: ours,
		Cluster: o.cluster, Known: append(o.slots.marks(), o.strays.knownMarks()...),
	}
	if o.Observed == nil || !o.isUpgraded(localLooks) {
		o.observeAnywhere(in)
		return
	}
	future := workflow.ExecuteLocalActivity(call.Glance(o.ctx, glanceWithin), call.Cluster.GlanceNodes, in)
	o.whenDone(future, func(future workflow.Future) {
		if o.take(in, future) != nil {
			o.observeAnywhere(in)
		}
	})
}

func (o *observer) observeAnywhere(in cluster.ObserveInput) {
	ctx := call.Within(call.Quick(o.ctx, "observe "+number.Of(len(in.Names), "node")), actWithin)
	future := workflow.ExecuteActivity(ctx, call.Cluster.ObserveNodes, in)
	o.whenDone(future, func(future workflow.Future) {
		if err := o.take(in, future); err != nil {
			o.retryLater(notObserved, err)
		}
	})
}

func (o *observer) take(in cluster.ObserveInput, future workflow.Future) error {
	var observed cluster.Observed
	err := future.Get(o.ctx, &observed)
	if err == nil {
		observed, err = observed.Unpack(in.Names)
	}
	if err != nil {
		return err
	}
	o.busy = false
	o.decisions.works(notObserved)
	marks := observed.Marks
	observed.Marks = cluster.MarksSeen{}
	o.Observed = &observed
	o.strays.setForeign(marks.Foreign, marks.ForeignAll)
	o.strays.compare(marks.Unknown, marks.Vanished)
	return nil
}

// retryLater has the cluster observed again after an error that no event will end.
func (o *observer) retryLater(what string, err error) {
	o.busy = true
	o.after(o.decisions.fails(what, err, maxRetry), "observe again", func() { o.busy = false })
}

// digest is what a watch has to compare the cluster with, empty if the observation is of other limits.
func (o *observer) digest() string {
	if o.Observed == nil || o.Observed.Observation.Revision != o.Revision {
		return ""
	}
	return o.Observed.Digest
}

// invalidate makes all requests wait for the next observation: no limits have this one's revision.
func (o *observer) invalidate() {
	if o.Observed != nil {
		o.Observed.Observation.Revision = -1
	}
}
