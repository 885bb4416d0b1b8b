package node

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/k8s"
)

// EventsInput are Kubernetes Events for nodes.
type EventsInput struct {
	Events []EventOn `json:"events"`
}

// EventOn is an Event and the node that it is about; an empty UID is looked up.
type EventOn struct {
	Node  string          `json:"node"`
	UID   string          `json:"uid,omitempty"`
	Event nodeevent.Event `json:"event"`
}

// RecordNodeEvents records Events on nodes, each once for its key. An Event is for people who watch: what cannot be recorded is
// left out.
func (n *Activities) RecordNodeEvents(ctx context.Context, in EventsInput) error {
	for _, e := range in.Events {
		uid := types.UID(e.UID)
		if uid == "" {
			var err error
			if uid, err = k8s.UIDOf(ctx, n.Client, e.Node); err != nil {
				continue // there is nothing to say it on
			}
		}
		n.Events.Record(ctx, e.Node, uid, e.Event)
	}
	return ctx.Err()
}
