package k8s

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/k8s/kube"
)

const (
	eventSource = "drydock"
	// maxEventMessage is what the API server accepts.
	maxEventMessage = 1024
)

// NodeEvent is a Kubernetes Event about a node.
type NodeEvent struct {
	Node string
	UID  types.UID
	// Key identifies the occurrence: the same key gives the same Event, so that a repeated activity adds none.
	Key     string
	Warning bool
	Reason  string
	Message string
}

// Emit records an Event on a node. Events on nodes live in the default namespace.
func Emit(ctx context.Context, client kube.Interface, e NodeEvent) error {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	event := newEvent(occurrence{
		about: corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: e.Node, UID: e.UID}, key: e.Key, at: time.Now(),
		kind: kind, reason: e.Reason, message: e.Message,
	})
	event.ReportingController, event.ReportingInstance, event.Action = "drydock.dev/"+eventSource, eventSource, e.Reason
	_, err := client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("recording event %s on node %s: %w", e.Reason, e.Node, err)
	}
	return nil
}

// occurrence is what an Event reports.
type occurrence struct {
	about corev1.ObjectReference
	// key and reason identify it among those of the same object.
	key     string
	at      time.Time
	kind    string
	reason  string
	message string
}

// newEvent makes an Event: in the default namespace where it is about an object without one.
func newEvent(o occurrence) *corev1.Event {
	if cut := maxEventMessage - 3; len(o.message) > maxEventMessage {
		for !utf8.RuneStart(o.message[cut]) {
			cut--
		}
		o.message = o.message[:cut] + "..."
	}
	at := metav1.NewTime(o.at)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%.200s.%x", o.about.Name, sha256.Sum256([]byte(o.key+o.reason)))[:min(len(o.about.Name), 200)+17],
			Namespace: cmp.Or(o.about.Namespace, metav1.NamespaceDefault),
		},
		InvolvedObject: o.about,
		Reason:         o.reason, Message: o.message, Type: o.kind,
		Source:         corev1.EventSource{Component: eventSource},
		FirstTimestamp: at, LastTimestamp: at, Count: 1,
	}
}

// UIDOf is the UID of the node that has a name now. Errors: ErrNodeGone.
func UIDOf(ctx context.Context, client kube.Interface, node string) (types.UID, error) {
	n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("node %s: %w", node, notFound(err))
	}
	return n.UID, nil
}
