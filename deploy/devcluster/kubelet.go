package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

const (
	leaseDurationSeconds = 40
	// leaseSlices is how many seconds one round of renewals takes: every node's
	// lease is renewed once a round, a slice of the nodes each second.
	leaseSlices = 10
)

// nodeIndex finds pods by their node.
const nodeIndex = "node"

// kubelets plays the kubelets of all nodes. It reports their state and that of
// their pods, as nodeStep and podStep say, and renews their leases. It marks the
// pods of a node that goes Unknown as not Ready, as the node lifecycle controller
// does, but only for nodes whose silence it noticed itself. And when a node
// recovers it reports its pods Ready again.
type kubelets struct {
	client    kubernetes.Interface
	nodes     corelisters.NodeLister
	pods      cache.Indexer
	nodeQueue queue
	podQueue  queue
	ips       *podIPs
	changes   sync.Map // cache.ObjectName of a pod to its last change
	ended     sync.Map // cache.ObjectName of a pod that was ended to its UID
	complain  io.Writer
}

// change is when a version of a pod was first seen.
type change struct {
	version string
	at      time.Time
}

// newKubelets returns once all nodes and pods are known; they are played until
// ctx is done.
func newKubelets(ctx context.Context, client kubernetes.Interface, complain io.Writer) (*kubelets, error) {
	nodes := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slimNode))
	pods := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(slimPod),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	podInformer := pods.Core().V1().Pods().Informer()
	k := &kubelets{
		client: client, complain: complain, ips: newPodIPs(),
		nodes: nodes.Core().V1().Nodes().Lister(), pods: podInformer.GetIndexer(),
		nodeQueue: newQueue(), podQueue: newQueue(),
	}
	if err := podInformer.AddIndexers(cache.Indexers{nodeIndex: nodeOfPod}); err != nil {
		return nil, fmt.Errorf("index pods by their node: %w", err)
	}
	podsSeen, err := podInformer.AddEventHandler(k.podEvents())
	if err != nil {
		return nil, fmt.Errorf("watch pods: %w", err)
	}
	nodesSeen, err := nodes.Core().V1().Nodes().Informer().AddEventHandler(k.nodeEvents(ctx))
	if err != nil {
		return nil, fmt.Errorf("watch nodes: %w", err)
	}
	nodes.Start(ctx.Done())
	pods.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), nodesSeen.HasSynced, podsSeen.HasSynced) {
		return nil, fmt.Errorf("watch nodes and pods: %w", context.Cause(ctx))
	}
	k.startWorkers(ctx)
	return k, nil
}

func (k *kubelets) report(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(k.complain, "devcluster:", err)
	}
}

// renewLeases runs until ctx is done.
func (k *kubelets) renewLeases(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for slice := uint32(0); ; slice = (slice + 1) % leaseSlices {
		nodes, err := k.nodes.List(labels.Everything())
		if err == nil {
			err = k.renewSlice(ctx, nodes, slice)
		}
		k.report(ctx, err)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (k *kubelets) renewSlice(ctx context.Context, nodes []*corev1.Node, slice uint32) error {
	group := errgroup.Group{} // one failure must not cost the other nodes their lease
	group.SetLimit(requestsAtOnce)
	for _, node := range nodes {
		if hashOf(node.Name)%leaseSlices == slice && !isSilent(node) {
			group.Go(func() error { return k.renewLease(ctx, node) })
		}
	}
	return group.Wait()
}

func (k *kubelets) renewLease(ctx context.Context, node *corev1.Node) error {
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now := metav1.NowMicro()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": now}})
	if err != nil {
		return fmt.Errorf("renew the lease of node %s: %w", node.Name, err)
	}
	_, err = leases.Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, newLease(node, now), metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew the lease of node %s: %w", node.Name, err)
	}
	return nil
}

func newLease(node *corev1.Node, now metav1.MicroTime) *coordinationv1.Lease {
	holder, seconds := node.Name, int32(leaseDurationSeconds)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
			},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}

// recover reports the pods of a node Ready again, and once more when the node
// lifecycle controller has certainly noticed: until its next round, 5 s at most,
// it goes by what it saw before and marks pods that start on the node.
func (k *kubelets) recover(ctx context.Context, node string) {
	for _, wait := range []time.Duration{0, 6 * time.Second} {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if current, err := k.nodes.Get(node); err != nil || nodeReady(current) != corev1.ConditionTrue {
			return // gone, or down again: its next recovery counts
		}
		k.report(ctx, k.markPods(ctx, node, corev1.ConditionTrue))
	}
}

// markPods sets the Ready condition of the running pods of a node.
func (k *kubelets) markPods(ctx context.Context, node string, ready corev1.ConditionStatus) error {
	pods, err := k.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("list the pods of node %s: %w", node, err)
	}
	var failures []error
	for _, pod := range pods.Items {
		if needsMark(&pod, ready) {
			failures = append(failures, k.markPod(ctx, &pod, ready))
		}
	}
	return errors.Join(failures...)
}

func (k *kubelets) markPod(ctx context.Context, pod *corev1.Pod, ready corev1.ConditionStatus) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID}, // not its namesake
		"status": map[string]any{"conditions": []corev1.PodCondition{
			{Type: corev1.PodReady, Status: ready, LastTransitionTime: metav1.Now()},
		}},
	})
	if err == nil {
		_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(
			ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !overtaken(err) {
		return fmt.Errorf("mark pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// needsMark is true for a running pod in the opposite state, unless it is one
// that is never to be Ready.
func needsMark(pod *corev1.Pod, ready corev1.ConditionStatus) bool {
	if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil || pod.Labels[neverReadyLabel] == "true" {
		return false
	}
	status := podReadyCondition(pod).Status
	return status != "" && status != ready
}
