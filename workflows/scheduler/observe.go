package scheduler

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"drydock/activities/cluster"
	"drydock/rules/number"
	"drydock/workflows/call"
)

const (
	// actWithin bounds an activity of the scheduler's own: what does not succeed for so long is said, and begun again.
	// None may keep the scheduler from continuing as new.
	actWithin = time.Minute
	// glanceWithin bounds a look at what a worker knows by itself.
	glanceWithin = time.Second
	// changeGlances: what the worker that decides knows of the cluster by itself is not asked for by way of the server.
	changeGlances = "glances-at-nodes"
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
	busy       bool
	strayMarks strayMarks
}

// strayMarks are the marks on nodes that are no holder's.
type strayMarks interface {
	// sawMarks acts upon those that an observation found.
	sawMarks(marks cluster.MarksSeen)
}

// observe asks for the state of the cluster. A grant may wait for it: the worker that decides is asked first.
func (o *observer) observe(in cluster.ObserveInput) {
	o.busy = true
	if o.latest == nil || workflow.GetVersion(o.ctx, changeGlances, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		o.ask(in)
		return
	}
	future := workflow.ExecuteLocalActivity(call.Glance(o.ctx, glanceWithin), call.Cluster.GlanceNodes, in)
	o.whenDone(future, func(future workflow.Future) {
		var observed cluster.Observed
		if err := future.Get(o.ctx, &observed); err != nil || o.take(in, observed) != nil {
			o.ask(in)
		}
	})
}

// ask has any worker observe the cluster, for as long as it takes.
func (o *observer) ask(in cluster.ObserveInput) {
	ctx := call.Within(call.Quick(o.ctx, "observe "+number.Of(len(in.Names), "node")), actWithin)
	future := workflow.ExecuteActivity(ctx, call.Cluster.ObserveNodes, in)
	o.whenDone(future, func(future workflow.Future) {
		var observed cluster.Observed
		err := future.Get(ctx, &observed)
		if err == nil {
			err = o.take(in, observed)
		}
		if err != nil {
			o.retryLater(notObserved, err)
		}
	})
}

// take takes what was seen of the cluster.
func (o *observer) take(in cluster.ObserveInput, observed cluster.Observed) error {
	observed, err := observed.Unpack(in.Names)
	if err != nil {
		return err
	}
	o.busy = false
	o.decisions.works(notObserved)
	marks := observed.Marks
	observed.Marks = cluster.MarksSeen{}
	o.latest = &observed
	o.strayMarks.sawMarks(marks)
	return nil
}

// retryLater wakes the scheduler up again after an error that no event will end.
func (o *observer) retryLater(what string, err error) {
	o.busy = true
	wait := o.decisions.fails(what, err, tryAgainMost)
	timer := workflow.NewTimerWithOptions(o.ctx, wait, workflow.TimerOptions{Summary: "observe again"})
	// Nothing is lost with it: it must not keep the scheduler from continuing as new.
	o.whenReady(timer, func(workflow.Future) { o.busy = false })
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
