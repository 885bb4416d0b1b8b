package k8s

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock/api"
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

// linger is how long the watch of all nodes outlives its last user, so that a rollout does not open one per node.
const linger = 30 * time.Second

// Nodes is one watch of all nodes that the activities of a worker share. It runs only while somebody uses it and
// keeps only what scheduling looks at, so that a cluster of thousands costs a few megabytes, and an idle worker
// nothing.
type Nodes struct {
	client kubernetes.Interface

	mu    sync.Mutex
	users int
	live  *liveNodes
	timer *time.Timer
}

type liveNodes struct {
	watch  *Watch[*corev1.Node]
	cancel context.CancelFunc

	mu        sync.Mutex
	listeners map[chan struct{}]struct{}
}

// NewNodes prepares the shared watch; nothing runs before the first View.
func NewNodes(client kubernetes.Interface) *Nodes { return &Nodes{client: client} }

// Client is the client of the watch.
func (n *Nodes) Client() kubernetes.Interface { return n.client }

// View is one user's access to the shared watch; Close it when done.
type View struct {
	// Changed receives a token after any change of any node; tokens coalesce.
	Changed chan struct{}
	live    *liveNodes
	nodes   *Nodes
	once    sync.Once
}

// View joins the watch, starting it if need be, and waits for its first complete copy.
func (n *Nodes) View(ctx context.Context) (*View, error) {
	live, err := n.join()
	if err != nil {
		return nil, err
	}
	view := &View{Changed: make(chan struct{}, 1), live: live, nodes: n}
	live.mu.Lock()
	live.listeners[view.Changed] = struct{}{}
	live.mu.Unlock()
	err = live.watch.Synced(ctx, "nodes")
	if refused := live.watch.Err(); refused != nil {
		// The others who use it see the refusal too, and come back.
		n.drop(live)
		err = fmt.Errorf("watching nodes: %w", refused)
	}
	if err != nil {
		view.Close()
		return nil, err
	}
	return view, nil
}

// List is the present set of nodes, in no particular order, with what strip keeps.
func (v *View) List() []*corev1.Node { return v.live.watch.List() }

// Get finds a node by name.
func (v *View) Get(name string) (*corev1.Node, bool) { return v.live.watch.Get(name) }

// Err is the refusal of the watch by the API server, after which it shows what once was; nil as long as there is none.
func (v *View) Err() error { return v.live.watch.Err() }

// Exists asks the API server itself whether a node is there.
func (n *Nodes) Exists(ctx context.Context, name string) (bool, error) {
	_, err := n.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Close leaves the watch.
func (v *View) Close() {
	v.once.Do(func() {
		v.live.mu.Lock()
		delete(v.live.listeners, v.Changed)
		v.live.mu.Unlock()
		v.nodes.leave()
	})
}

func (n *Nodes) join() (*liveNodes, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.timer != nil {
		n.timer.Stop()
		n.timer = nil
	}
	if n.live == nil {
		live, err := startNodes(n.client)
		if err != nil {
			return nil, err
		}
		n.live = live
	}
	n.users++
	return n.live, nil
}

func (n *Nodes) leave() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.users--
	if n.users > 0 || n.live == nil {
		return
	}
	live := n.live
	n.timer = time.AfterFunc(linger, func() {
		n.mu.Lock()
		idle := n.users == 0 && n.live == live
		n.mu.Unlock()
		if idle {
			n.drop(live)
		}
	})
}

// drop ends a watch, so that the next user starts afresh.
func (n *Nodes) drop(live *liveNodes) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.live == live {
		n.live = nil
	}
	live.cancel()
}

func startNodes(client kubernetes.Interface) (*liveNodes, error) {
	ctx, cancel := context.WithCancel(context.Background())
	live := &liveNodes{cancel: cancel, listeners: map[chan struct{}]struct{}{}}
	watch, err := NewWatch(ctx, client.CoreV1().RESTClient(), &corev1.Node{}, WatchOptions{Resource: "nodes", Strip: strip})
	if err != nil {
		cancel()
		return nil, err
	}
	live.watch = watch
	go live.fanOut(ctx)
	return live, nil
}

func (l *liveNodes) fanOut(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.watch.Changed:
		}
		l.mu.Lock()
		for listener := range l.listeners {
			select {
			case listener <- struct{}{}:
			default:
			}
		}
		l.mu.Unlock()
	}
}

// strip keeps of a node what scheduling looks at: name, UID, labels, mark, cordon and the Ready condition.
func strip(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	small := &corev1.Node{}
	small.Name, small.UID, small.ResourceVersion, small.Labels = node.Name, node.UID, node.ResourceVersion, node.Labels
	small.Spec.Unschedulable = node.Spec.Unschedulable
	if mark, ok := node.Annotations[api.HoldersAnnotation]; ok {
		small.Annotations = map[string]string{api.HoldersAnnotation: mark}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			small.Status.Conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status}}
		}
	}
	return small, nil
}

// IsReady tells whether a node's Ready condition is true.
func IsReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// IsSilent tells whether a node's kubelet does not answer: the control plane, which watches its Lease, knows nothing of it.
// A kubelet that says of itself that it is not Ready still ends pods.
func IsSilent(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionUnknown
		}
	}
	return false
}

// IsUnavailable tells whether a node counts as unavailable: unschedulable or not Ready (maintenance-operator,
// scheduling algorithm step 2).
func IsUnavailable(node *corev1.Node) bool { return node.Spec.Unschedulable || !IsReady(node) }
