package scheduler

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/cluster"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"fmt"
	"go.temporal.io/sdk/workflow"
	"time"
)

const (
	// actWithin bounds an activity of the scheduler's own: what does not succeed for so long is said, and begun again.
	// None may keep the scheduler from continuing as new.
	actWithin = time.Minute
	// notObserved and notWatched are what is said where that fails.
	notObserved = "the cluster could not be observed"
	notWatched  = "the cluster could not be watched"
)

// observer knows what was last seen of the cluster.
type observer struct {
	*loop
	decisions *decisions
	latest    *cluster.Observed
	// busy: an observation is under way, or waits to be tried again.
	busy bool

	// seen hears of the marks on nodes that are no holder's.
	seen func(cluster.MarksSeen)
}

// observe asks for the state of the cluster.
func (o *observer) observe(in cluster.ObserveInput) {
	o.busy = true
	ctx := call.Within(call.Quick(o.ctx, fmt.Sprintf("observe %d nodes", len(in.Names))), actWithin)
	future := workflow.ExecuteActivity(ctx, call.Cluster.ObserveNodes, in)
	o.whenDone(future, func() {
		o.busy = false
		var observed cluster.Observed
		err := future.Get(ctx, &observed)
		if err == nil {
			observed, err = observed.Unpack(in.Names)
		}
		if err != nil {
			o.retryLater(notObserved, err)
			return
		}
		o.decisions.works(notObserved)
		marks := observed.Marks
		observed.Marks = cluster.MarksSeen{}
		o.latest = &observed
		o.seen(marks)
	})
}

// retryLater wakes the scheduler up again after an error that no event will end.
func (o *observer) retryLater(what string, err error) {
	o.busy = true
	wait := o.decisions.fails(what, err, tryAgainMost)
	timer := workflow.NewTimerWithOptions(o.ctx, wait, workflow.TimerOptions{Summary: "observe again"})
	// Nothing is lost with it: it must not keep the scheduler from continuing as new.
	o.whenReady(timer, func() { o.busy = false })
}

// digest is what a watch has to compare the cluster with; there is none for other limits than the present ones.
func (o *observer) digest(revision int) string {
	if o.latest == nil || o.latest.Observation.Revision != revision {
		return ""
	}
	return o.latest.Digest
}

// doubt makes all requests wait for the next observation: this one is of no revision of the limits.
func (o *observer) doubt() {
	if o.latest != nil {
		o.latest.Observation.Revision = -1
	}
}
