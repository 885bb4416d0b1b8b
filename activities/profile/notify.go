package profile

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/profile/state"
)

// Sent is what became of a notification.
type Sent struct {
	// Failed says why it never will be sent.
	Failed string `json:"failed,omitempty"`
}

// SendProfileNotice sends a notification of a profile, after the node says when it was due: what is sent twice, because the answer was lost,
// is due only once. Errors: those after which another try may help.
func (a *Activities) SendProfileNotice(ctx context.Context, in Notice) (Sent, error) {
	config, err := a.config()
	if err != nil {
		return Sent{}, err
	}
	node, data, err := a.announced(ctx, in)
	if err != nil || node == nil {
		return Sent{}, err // not given up: what the node does not say is due again at once
	}
	found, known := config.Notification(in.Instance)
	if !known {
		return Sent{Failed: "it is not in the configuration any more"}, nil
	}
	data.Profiles[in.Profile] = in.Was
	message, err := found.Of.Notice.Render(config.Parameters(node, in.Profile, data))
	if err != nil {
		return Sent{Failed: bounds.Cut(err.Error(), bounds.Text)}, nil
	}
	err = a.Sender.Send(ctx, found.Of.Notice, message, fmt.Sprintf("%s/%s/%s/%d", in.UID, in.Profile, in.Instance, in.At.UnixNano()))
	switch wait := notify.RetryAfter(err); {
	case notify.Permanent(err):
		return Sent{Failed: bounds.Cut(err.Error(), bounds.Text)}, nil
	case wait > 0:
		return Sent{}, temporal.NewApplicationErrorWithOptions(err.Error(), "NotDelivered",
			temporal.ApplicationErrorOptions{NextRetryDelay: min(wait, longestWait)})
	}
	return Sent{}, err
}

// longestWait bounds the pause that a receiver may ask for.
const longestWait = time.Hour

// announced returns the node once its annotation says when the notification was due. It is nil if nothing is left to send.
func (a *Activities) announced(ctx context.Context, in Notice) (node *corev1.Node, data state.Data, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var refused string
		node, data, refused, err = a.read(ctx, api.ProfileTransitionInput{Node: in.Node, UID: in.UID})
		if err != nil || refused != "" {
			node = nil
			return err
		}
		if !data.Notifications[in.Instance].Before(in.At) {
			return nil
		}
		should := node.DeepCopy()
		data = data.Notified(in.Instance, in.At)
		text, err := data.Write()
		if err != nil {
			return err
		}
		if should.Annotations == nil {
			should.Annotations = map[string]string{}
		}
		should.Annotations[state.DataAnnotation] = text
		node, err = write(ctx, a.Nodes.Client(), node, should)
		if apierrors.IsNotFound(err) {
			node = nil
			return nil
		}
		return err
	})
	return node, data, err
}
