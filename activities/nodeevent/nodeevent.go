// Package nodeevent records Kubernetes Events on nodes.
package nodeevent

import (
	"context"
	"errors"

	"go.temporal.io/sdk/activity"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"drydock/k8s"
)

// Event is a Kubernetes Event to record on a node; the zero value records none.
type Event struct {
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Warning bool   `json:"warning,omitempty"`
	// Key tells occurrences of the same reason in one maintenance apart.
	Key string `json:"key,omitempty"`
}

// Recorder records what a maintenance does to a node as Events on that node.
type Recorder struct {
	Client kubernetes.Interface
	// On, if false, leaves them out.
	On bool
	// later takes what many activities want to record at once; nil has each of them do it.
	later *later
}

// NewRecorder records Events, where it is on, a few at once: further ones are put off, and lost if the worker is.
func NewRecorder(client kubernetes.Interface, on bool) Recorder {
	return Recorder{Client: client, On: on, later: newLater(client)}
}

// Record records an Event. An Event is for people who watch; that it cannot be written must not stop a maintenance.
func (r Recorder) Record(ctx context.Context, node string, uid types.UID, e Event) {
	if e.Reason == "" || !r.On {
		return
	}
	event := k8s.NodeEvent{
		Node: node, UID: uid, Key: activity.GetInfo(ctx).WorkflowExecution.RunID + "/" + e.Key,
		Warning: e.Warning, Reason: e.Reason, Message: e.Message,
	}
	if r.later != nil {
		done, ok := r.later.turn()
		switch {
		case ok:
			defer done()
		case r.later.add(event):
			return
		}
	}
	if err := k8s.Emit(ctx, r.Client, event); err != nil {
		activity.GetLogger(ctx).Warn("event not recorded", "node", node, "reason", e.Reason, "error", err)
	}
}

// Channel records the Events of channels of kind kubernetes.
type Channel struct{ Client kubernetes.Interface }

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
