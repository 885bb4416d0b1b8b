package cluster

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// arrivals follow the pods on the nodes that are Ready, beside the watch, and signal new ones to the maintenances. A pod comes
// in spite of the cordon where it tolerates that or names the node, or where the scheduler had chosen the node before.
type arrivals struct {
	*Activities
	holders []WatchedHolder
	// nodes are followed, by request.
	nodes map[string]*followedNode
	// changed has a token once a pod came to one of them.
	changed chan struct{}
}

type followedNode struct {
	pods *k8s.SharedView[*corev1.Pod]
	stop context.CancelFunc
}

// followAfter is how long a node is Ready before its pods are followed: for shorter work that would cost more than it is worth.
const followAfter = 3 * time.Second

// Of many nodes that become Ready together, the first beginsAtOnce are followed at once, and beginsPerSecond more each
// second: each costs a list and a watch.
const (
	beginsAtOnce    = 20
	beginsPerSecond = 5
)

// sentArrivals remembers for a worker, by request, since when nodes are Ready and which pods were signalled: a watch is begun
// anew every few seconds. When another worker takes over, a maintenance may receive an arrival twice; it ignores the second.
type sentArrivals struct {
	mu sync.Mutex
	// begins is the pace at which further nodes are followed; nil until the first.
	begins *rate.Limiter
	ready  map[string]time.Time
	pods   map[string]map[types.UID]bool
}

// lookForArrivals looks for as long as ctx lives.
func (c *Activities) lookForArrivals(ctx context.Context, holders []WatchedHolder) {
	if len(holders) == 0 || c.Pods == nil {
		return
	}
	c.arrived.keep(holders)
	a := &arrivals{Activities: c, holders: holders, nodes: map[string]*followedNode{}, changed: make(chan struct{}, 1)}
	go func() {
		if err := a.look(ctx); err != nil && ctx.Err() == nil {
			activity.GetLogger(ctx).Warn("not known what comes to nodes that are Ready", "error", err)
		}
	}()
}

func (a *arrivals) look(ctx context.Context) error {
	view, err := a.Activities.Nodes.View(ctx)
	if err != nil {
		return err
	}
	defer view.Close()
	again := time.NewTicker(followAfter)
	defer again.Stop()
	for {
		for _, h := range a.holders {
			ready := a.arrived.isReadyFor(h.RequestID, a.isReady(view, h), followAfter)
			if err := a.follow(ctx, h, ready && (a.nodes[h.RequestID] != nil || !a.busy() && a.arrived.mayBegin())); err != nil {
				return err
			}
			if err := a.send(ctx, h); err != nil {
				activity.GetLogger(ctx).Warn("pods that came to a node were not signalled to its maintenance", "workflow", h.WorkflowID, "error", err)
			}
		}
		select {
		case <-view.Changed:
			if err := pause(ctx, settle); err != nil {
				return err
			}
		case <-a.changed:
		case <-again.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// busy reports whether to begin to look at more pods would take the API server from the evictions. What comes meanwhile is seen later.
func (a *arrivals) busy() bool { return a.Evictions != nil && a.Evictions.Busy() }

// isReady reports whether a holder's node shows that it is held and Ready.
func (a *arrivals) isReady(view *k8s.View, h WatchedHolder) bool {
	node, ok := view.Get(h.Node)
	if !ok || node.Labels[api.PhaseLabel] != string(api.Ready) {
		return false
	}
	mark, err := a.Activities.Nodes.MarkOf(node)
	return err == nil && mark.HeldBy(h.WorkflowID, h.RunID)
}

// follow begins or ends to look at the pods of a holder's node.
func (a *arrivals) follow(ctx context.Context, h WatchedHolder, wanted bool) error {
	followed := a.nodes[h.RequestID]
	switch {
	case !wanted && followed != nil:
		followed.stop()
		delete(a.nodes, h.RequestID)
	case wanted && followed == nil:
		ctx, stop := context.WithCancel(ctx)
		pods, err := a.Pods.Follow(ctx, h.Node, a.concerns)
		if err != nil {
			stop()
			return err
		}
		a.nodes[h.RequestID] = &followedNode{pods: pods, stop: stop}
	}
	return nil
}

func (a *arrivals) concerns(pod *corev1.Pod, gone bool) bool {
	if _, intruding := k8s.ArrivedAt(pod); intruding && !gone {
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
	return false // changed has the token
}

// send signals to a holder the pods that came to its node since it was granted its slot, each of them once.
func (a *arrivals) send(ctx context.Context, h WatchedHolder) error {
	followed := a.nodes[h.RequestID]
	if followed == nil {
		return nil
	}
	arrived, pods := &api.PodsArrived{}, followed.pods.List()
	slices.SortFunc(pods, func(x, y *corev1.Pod) int { return strings.Compare(k8s.PodName(x), k8s.PodName(y)) })
	news := map[types.UID]bool{}
	for _, pod := range pods {
		at, intruding := k8s.ArrivedAt(pod)
		if !intruding || at.Before(h.Since) || a.arrived.knows(h.RequestID, pod.UID) {
			continue
		}
		news[pod.UID] = true
		if len(arrived.Pods) == api.MaxArrived {
			arrived.More++
			continue
		}
		arrived.Pods = append(arrived.Pods, api.ArrivedPod{Pod: k8s.PodName(pod), At: at})
	}
	if len(news) == 0 {
		return nil
	}
	change := api.NodeChange{RequestID: h.RequestID, Arrived: arrived}
	if err := caller.Signal(ctx, a.Temporal, h.WorkflowID, "", api.SignalNodeChanged, change); err != nil {
		return err
	}
	a.arrived.note(h.RequestID, news)
	return nil
}

// keep forgets all but the holders.
func (t *sentArrivals) keep(holders []WatchedHolder) {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := map[string]bool{}
	for _, h := range holders {
		held[h.RequestID] = true
	}
	maps.DeleteFunc(t.pods, func(request string, _ map[types.UID]bool) bool { return !held[request] })
	maps.DeleteFunc(t.ready, func(request string, _ time.Time) bool { return !held[request] })
}

// isReadyFor reports whether a node that is Ready now, or is not, has been so for long enough.
func (t *sentArrivals) isReadyFor(request string, now bool, d time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !now {
		delete(t.ready, request)
		return false
	}
	if t.ready == nil {
		t.ready = map[string]time.Time{}
	}
	if t.ready[request].IsZero() {
		t.ready[request] = time.Now()
	}
	return time.Since(t.ready[request]) >= d
}

// mayBegin reports whether a further node may be followed.
func (t *sentArrivals) mayBegin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.begins == nil {
		t.begins = rate.NewLimiter(beginsPerSecond, beginsAtOnce)
	}
	return t.begins.Allow()
}

func (t *sentArrivals) knows(request string, pod types.UID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pods[request][pod]
}

func (t *sentArrivals) note(request string, pods map[types.UID]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pods == nil {
		t.pods = map[string]map[types.UID]bool{}
	}
	if t.pods[request] == nil {
		t.pods[request] = map[types.UID]bool{}
	}
	maps.Copy(t.pods[request], pods)
}
