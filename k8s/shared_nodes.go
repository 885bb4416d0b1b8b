package k8s

import (
	"context"
	"slices"
	"sync"
	"unique"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s/kube"
)

// NodeNames are the names of nodes, sorted.
func NodeNames(nodes []*corev1.Node) []string {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	slices.Sort(names)
	return names
}

// Nodes is one watch of all nodes that the activities of a worker share. It keeps only what scheduling looks at, so that
// a cluster of thousands costs a few megabytes, and an idle worker nothing.
type Nodes struct {
	*Shared[*corev1.Node]
	client kube.Interface
	marks  readMarks
}

// View is one user's access to the shared watch of nodes; Close it when done.
type View = SharedView[*corev1.Node]

// NewNodes prepares the shared watch; nothing runs before the first View.
func NewNodes(client kube.Interface) *Nodes {
	rest := func() rest.Interface { return client.CoreV1().RESTClient() }
	return &Nodes{client: client, Shared: share("nodes", rest, &corev1.Node{}, WatchOptions{Resource: "nodes", Strip: strip})}
}

// NewWholeNodes watches nodes with all that people and other systems write on them, for those who look at more than Drydock does
// by itself. What only the kubelet needs is dropped.
func NewWholeNodes(client kube.Interface) *Nodes {
	rest := func() rest.Interface { return client.CoreV1().RESTClient() }
	return &Nodes{client: client, Shared: share("whole nodes", rest, &corev1.Node{}, WatchOptions{Resource: "nodes", Strip: stripBulk, Listed: true})}
}

func stripBulk(obj any) (any, error) {
	if node, ok := obj.(*corev1.Node); ok {
		DropBulk(node)
	}
	return obj, nil
}

// DropBulk removes from a node what NewWholeNodes does not keep: most of its bytes. Call it on nodes from elsewhere that are kept.
func DropBulk(node *corev1.Node) {
	node.ManagedFields, node.Status.Images = nil, nil
	for i := range node.Status.Conditions {
		node.Status.Conditions[i].LastHeartbeatTime = metav1.Time{}
	}
}

// Client is the client of the watch.
func (n *Nodes) Client() kube.Interface { return n.client }

// MarkOf parses a node's mark, for reading only. Every step of a drain does that, and each change of a node for all nodes:
// a mark that was parsed already is not parsed again.
func (n *Nodes) MarkOf(node *corev1.Node) (Mark, error) { return n.marks.of(node) }

// readMarks are the marks that were read, by the names of their nodes. They are shared: nobody changes one.
type readMarks struct {
	mu   sync.Mutex
	read map[string]readMark
}

type readMark struct {
	text string
	Mark
}

// maxReadMarks bounds those that are remembered, some of them of nodes that are no more.
const maxReadMarks = 20_000

func (r *readMarks) of(node *corev1.Node) (Mark, error) {
	text := node.Annotations[api.HoldersAnnotation]
	if text == "" {
		return Mark{}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.read[node.Name]; known.text == text {
		return known.Mark, nil
	}
	mark, err := MarkOf(node)
	if err != nil {
		return mark, err
	}
	if r.read == nil || len(r.read) >= maxReadMarks {
		r.read = map[string]readMark{}
	}
	r.read[node.Name] = readMark{text, mark}
	return mark, nil
}

// Find asks the API server itself for some nodes, by name; those that are not there are left out.
func (n *Nodes) Find(ctx context.Context, names []string) (map[string]*corev1.Node, error) {
	found := make(map[string]*corev1.Node, len(names))
	for _, name := range names {
		node, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		found[name] = node
	}
	return found, nil
}

// Exists asks the API server itself whether a node is there.
func (n *Nodes) Exists(ctx context.Context, name string) (bool, error) {
	_, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Annotations that health checks look at, beside Drydock's own mark.
const (
	// ConfirmedAnnotation says, by being there, that a person has found the node healthy again (medik8s).
	ConfirmedAnnotation = "remediation.medik8s.io/manually-confirmed-healthy"
	// CurrentConfigAnnotation and DesiredConfigAnnotation differ while OpenShift upgrades the node.
	CurrentConfigAnnotation = "machineconfiguration.openshift.io/currentConfig"
	DesiredConfigAnnotation = "machineconfiguration.openshift.io/desiredConfig"
)

var keptAnnotations = []string{api.HoldersAnnotation, ConfirmedAnnotation, CurrentConfigAnnotation, DesiredConfigAnnotation}

// strip keeps of a node what scheduling and health checks look at: name, UID, age, labels, mark, cordon, and of its conditions
// what they are and since when. Heartbeats, reasons and messages are dropped. The few texts that all nodes share are kept once.
func strip(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	small := &corev1.Node{}
	small.Name, small.UID, small.ResourceVersion, small.Labels = node.Name, node.UID, node.ResourceVersion, node.Labels
	small.CreationTimestamp = node.CreationTimestamp
	small.Spec.Unschedulable = node.Spec.Unschedulable
	for _, key := range keptAnnotations {
		if value, ok := node.Annotations[key]; ok {
			if small.Annotations == nil {
				small.Annotations = map[string]string{}
			}
			small.Annotations[key] = value
		}
	}
	if len(node.Status.Conditions) > 0 {
		small.Status.Conditions = make([]corev1.NodeCondition, len(node.Status.Conditions))
	}
	for i, c := range node.Status.Conditions {
		small.Status.Conditions[i] = corev1.NodeCondition{
			Type: unique.Make(c.Type).Value(), Status: unique.Make(c.Status).Value(), LastTransitionTime: c.LastTransitionTime,
		}
	}
	return small, nil
}
