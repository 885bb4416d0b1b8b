// Package nodeevent records Kubernetes Events on nodes.
package nodeevent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
)

// Event is a Kubernetes Event to record on a node; the zero value records none.
type Event struct {
	Reason  api.EventReason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	Warning bool            `json:"warning,omitempty"`
	// Key distinguishes occurrences of the same reason in one maintenance.
	Key string `json:"key,omitempty"`
}

// Recorder records what a maintenance does to a node as Events on that node.
type Recorder struct {
	Client kube.Interface
	// On, if false, leaves them out.
	On bool
	// turns are taken by activities that write their Event themselves; nil lets all of them.
	turns chan struct{}
	// evictions come first.
	evictions k8s.Load
	// later takes the Events of the others.
	later *k8s.Paced[k8s.NodeEvent]
	log   *slog.Logger
}

const (
	// atOnce are the Events that are written while their activities wait for it.
	atOnce = 8
	// perSecond is how many are written a second once there are more: they must not take the API server from the evictions
	// of many nodes.
	perSecond = 20
	// maxLater bounds those that wait.
	maxLater = 10_000
	// writeWithin bounds one that was put off.
	writeWithin = 10 * time.Second
)

// NewRecorder records Events, where it is on, a few at once: further ones are put off, and lost if the worker is. While
// many pods are to be evicted, all are put off, and slower still.
func NewRecorder(client kube.Interface, on bool, log *slog.Logger, evictions k8s.Load) Recorder {
	write := func(ctx context.Context, e k8s.NodeEvent) {
		ctx, cancel := context.WithTimeout(ctx, writeWithin)
		defer cancel()
		if err := k8s.Emit(ctx, client, e); err != nil {
			log.Warn("event not recorded", "node", e.Node, "reason", e.Reason, "error", err)
		}
	}
	pace := k8s.Pace{PerSecond: perSecond, AtOnce: 1, Room: maxLater, Urgent: evictions}
	return Recorder{Client: client, On: on, turns: make(chan struct{}, atOnce), evictions: evictions, later: k8s.NewPaced(pace, write), log: log}
}

// Stop ends the writing of what was put off.
func (r Recorder) Stop() {
	if left := r.later.Stop(); left > 0 {
		r.log.Warn("events not recorded: the worker stops", "events", left)
	}
}

// Record records an Event. An Event is for people who watch; that it cannot be written must not stop a maintenance.
func (r Recorder) Record(ctx context.Context, node string, uid types.UID, e Event) {
	if e.Reason == "" || !r.On {
		return
	}
	event := k8s.NodeEvent{
		Node: node, UID: uid, Key: activity.GetInfo(ctx).WorkflowExecution.RunID + "/" + e.Key,
		Warning: e.Warning, Reason: string(e.Reason), Message: e.Message,
	}
	if r.turns != nil {
		if r.evictions != nil && r.evictions.Busy() && r.later.Add(event) {
			return
		}
		select {
		case r.turns <- struct{}{}:
			defer func() { <-r.turns }()
		default:
			if r.later.Add(event) {
				return
			}
		}
	}
	if err := k8s.Emit(ctx, r.Client, event); err != nil {
		activity.GetLogger(ctx).Warn("event not recorded", "node", node, "reason", e.Reason, "error", err)
	}
}

// Channel records the Events of channels of kind kubernetes.
type Channel struct{ Client kube.Interface }

// EmitNodeEvent records an Event on a node, the same one for the same key.
func (e Channel) EmitNodeEvent(ctx context.Context, node, key, reason, message string, warning bool) error {
	uid, err := k8s.UIDOf(ctx, e.Client, node)
	if errors.Is(err, k8s.ErrNodeGone) {
		return nil // there is nothing left to say it on
	}
	if err != nil {
		return err
	}
	return k8s.Emit(ctx, e.Client, k8s.NodeEvent{
		Node: node, UID: uid, Key: key, Warning: warning, Reason: reason, Message: message,
	})
}
