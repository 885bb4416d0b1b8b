package notify

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock/rules/notices"
)

type kubernetesSender struct{ emitter EventEmitter }

// send records one Event per event, so that a digest is a row of Events on several nodes.
func (s *kubernetesSender) send(ctx context.Context, d *delivery) (Receipt, error) {
	for _, e := range d.Events {
		_, text, err := d.wording.render(d.channel, []notices.Event{e})
		if err != nil {
			return Receipt{}, permanent(err)
		}
		key := d.Key
		if len(d.Events) > 1 {
			key += "/" + e.ID
		}
		if err := s.emitter.EmitNodeEvent(ctx, e.Node, key, string(e.State), oneLine(text), warns(e.State)); err != nil {
			return Receipt{}, kubernetesError(err)
		}
	}
	return Receipt{}, nil
}

// warns says that somebody ought to look.
func warns(s notices.State) bool {
	return s == notices.SLAExpired || s == notices.MaintenanceIncomplete || s == notices.Escalated
}

func kubernetesError(err error) error {
	out := fmt.Errorf("recording an Event: %w", err)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err),
		apierrors.IsRequestEntityTooLargeError(err):
		return permanent(out)
	default:
		return out
	}
}
