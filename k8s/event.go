package k8s

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
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
func Emit(ctx context.Context, client kubernetes.Interface, e NodeEvent) error {
	kind := corev1.EventTypeNormal
	if e.Warning {
		kind = corev1.EventTypeWarning
	}
	if cut := maxEventMessage - 3; len(e.Message) > maxEventMessage {
		for !utf8.RuneStart(e.Message[cut]) {
			cut--
		}
		e.Message = e.Message[:cut] + "..."
	}
	now := metav1.NewTime(time.Now())
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{
			Name:      fmt.Sprintf("%.200s.%x", e.Node, sha256.Sum256([]byte(e.Key+e.Reason)))[:min(len(e.Node), 200)+17],
			Namespace: metav1.NamespaceDefault,
		},
		InvolvedObject: corev1.ObjectReference{Kind: "Node", APIVersion: "v1", Name: e.Node, UID: e.UID},
		Reason:         e.Reason, Message: e.Message, Type: kind,
		Source:         corev1.EventSource{Component: eventSource},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		ReportingController: "drydock.dev/" + eventSource, ReportingInstance: eventSource, Action: e.Reason,
	}
	_, err := client.CoreV1().Events(event.Namespace).Create(ctx, event, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("recording event %s on node %s: %w", e.Reason, e.Node, err)
	}
	return nil
}

// UIDOf is the UID of the node that has a name now. Errors: ErrNodeGone.
func UIDOf(ctx context.Context, client kubernetes.Interface, node string) (types.UID, error) {
	n, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("node %s: %w", node, notFound(err))
	}
	return n.UID, nil
}
