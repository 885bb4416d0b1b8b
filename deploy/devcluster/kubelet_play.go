package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Workers wait for the API server more than they work.
const (
	nodeWorkers = 8
	podWorkers  = 24
)

// queue holds names of nodes, or of pods, to look at.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

func newQueue() queue {
	return workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, 10*time.Second))
}

func (k *kubelets) startWorkers(ctx context.Context) {
	for range nodeWorkers {
		go k.work(ctx, k.nodeQueue, k.playNode)
	}
	for range podWorkers {
		go k.work(ctx, k.podQueue, k.playPod)
	}
	context.AfterFunc(ctx, k.nodeQueue.ShutDown)
	context.AfterFunc(ctx, k.podQueue.ShutDown)
}

// work plays what is in the queue, and again after the time that play returns.
func (k *kubelets) work(ctx context.Context, q queue, play func(context.Context, cache.ObjectName) (time.Duration, error)) {
	for {
		name, shutDown := q.Get()
		if shutDown {
			return
		}
		again, err := play(ctx, name)
		switch {
		case err != nil:
			k.report(ctx, err)
			q.AddRateLimited(name)
		case again > 0:
			q.Forget(name)
			q.AddAfter(name, again)
		default:
			q.Forget(name)
		}
		q.Done(name)
	}
}

func (k *kubelets) nodeEvents(ctx context.Context) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) {
			node := added.(*corev1.Node)
			k.nodeQueue.Add(cache.MetaObjectToName(node))
			k.playPodsOf(ctx, node.Name) // those that were bound before there was a node
		},
		UpdateFunc: func(before, after any) {
			node := after.(*corev1.Node)
			k.nodeQueue.Add(cache.MetaObjectToName(node))
			was, is := nodeReady(before.(*corev1.Node)), nodeReady(node)
			switch {
			case was != "" && was != corev1.ConditionTrue && is == corev1.ConditionTrue:
				go k.recover(ctx, node.Name)
			case was == corev1.ConditionTrue && is == corev1.ConditionUnknown:
				go k.report(ctx, k.markPods(ctx, node.Name, corev1.ConditionFalse))
			}
		},
	}
}

func (k *kubelets) playPodsOf(ctx context.Context, node string) {
	pods, err := k.pods.ByIndex(nodeIndex, node)
	if err != nil {
		k.report(ctx, fmt.Errorf("find the pods of node %s: %w", node, err))
	}
	for _, pod := range pods {
		k.podQueue.Add(cache.MetaObjectToName(pod.(*corev1.Pod)))
	}
}

func (k *kubelets) podEvents() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(added any) { k.podChanged(added.(*corev1.Pod)) },
		UpdateFunc: func(before, after any) {
			was, is := before.(*corev1.Pod), after.(*corev1.Pod)
			if was.UID != is.UID {
				k.ips.giveBack(was.UID)
			}
			if was.ResourceVersion != is.ResourceVersion {
				k.podChanged(is)
			}
		},
		DeleteFunc: func(deleted any) {
			if unknown, ok := deleted.(cache.DeletedFinalStateUnknown); ok {
				deleted = unknown.Obj
			}
			if pod, ok := deleted.(*corev1.Pod); ok {
				k.ips.giveBack(pod.UID)
				k.changes.Delete(cache.MetaObjectToName(pod))
				k.ended.CompareAndDelete(cache.MetaObjectToName(pod), pod.UID)
			}
		},
	}
}

func (k *kubelets) podChanged(pod *corev1.Pod) {
	name := cache.MetaObjectToName(pod)
	k.changes.Store(name, change{pod.ResourceVersion, time.Now()})
	if !pod.Spec.HostNetwork {
		k.ips.keep(pod.UID, pod.Status.PodIP)
	}
	k.podQueue.Add(name)
}

// playNode does what is due for a node.
func (k *kubelets) playNode(ctx context.Context, name cache.ObjectName) (again time.Duration, err error) {
	node, err := k.nodes.Get(name.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look up node %s: %w", name, err)
	}
	if r, away := rebootOf(node); away {
		if again, err = k.playReboot(ctx, node, r, time.Now()); err != nil && !overtaken(err) {
			return 0, fmt.Errorf("reboot node %s: %w", node.Name, err)
		}
		return again, nil
	}
	status, again := nodeStep(node, time.Now())
	if status == nil {
		return again, nil
	}
	patch, err := statusPatch(node, status)
	if err == nil {
		_, err = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && !overtaken(err) {
		return 0, fmt.Errorf("report the status of node %s: %w", node.Name, err)
	}
	return 0, nil
}

// playPod does what is due for a pod. One whose node is gone is left to the pod
// garbage collector.
func (k *kubelets) playPod(ctx context.Context, name cache.ObjectName) (again time.Duration, err error) {
	found, exists, err := k.pods.GetByKey(name.String())
	if err != nil {
		return 0, fmt.Errorf("look up pod %s: %w", name, err)
	}
	if !exists {
		return 0, nil
	}
	pod := found.(*corev1.Pod)
	node, err := k.nodes.Get(pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("look up node %s of pod %s: %w", pod.Spec.NodeName, name, err)
	}
	last, _ := k.changes.Load(name)
	changed, ok := last.(change)
	if !ok || changed.version != pod.ResourceVersion {
		return 0, nil // the event of this version comes
	}
	now := time.Now()
	if r, away := rebootOf(node); away { // so is its kubelet
		return max(r.until.Sub(now), 100*time.Millisecond), nil
	}
	action, wait := podStep(pod, changed.at, now)
	if action == podNothing || wait > 0 {
		return wait, nil
	}
	if uid, ended := k.ended.Load(name); ended && uid == pod.UID {
		return 0, nil // the event of its deletion comes
	}
	if err := k.act(ctx, action, pod, node, now); err != nil && !overtaken(err) {
		return 0, fmt.Errorf("%s pod %s: %w", action, name, err)
	}
	if action == podEnd {
		k.ended.Store(name, pod.UID)
	}
	return 0, nil
}

func (k *kubelets) act(ctx context.Context, action podAction, pod *corev1.Pod, node *corev1.Node, now time.Time) error {
	var status object
	switch action {
	case podStart:
		address := ""
		if !pod.Spec.HostNetwork {
			address = k.ips.get(pod.UID)
		}
		status = startedStatus(pod, node, address, now)
	case podLoseReadiness:
		status = object{"conditions": readiness(now, neverReadyReason)}
	case podRegainReadiness:
		status = object{"conditions": readiness(now, "")}
	case podComplete:
		status = completedStatus(pod, now)
	case podFail:
		status = failedStatus(pod.Spec.Containers, now, corev1.ContainerStateTerminated{
			Reason: "Error", ExitCode: 1, Message: pod.Annotations[failureKey],
		})
	case podReboot:
		return k.beginReboot(ctx, pod, node, now)
	case podEnd:
		end := metav1.NewDeleteOptions(0)
		end.Preconditions = metav1.NewUIDPreconditions(string(pod.UID))
		return k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, *end)
	}
	patch, err := statusPatch(pod, status)
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(
		ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// statusPatch applies to the version of the object that it was made for, and to
// no other: each newer one is looked at again.
func statusPatch(of metav1.Object, status object) ([]byte, error) {
	return json.Marshal(object{
		"metadata": object{"uid": of.GetUID(), "resourceVersion": of.GetResourceVersion()},
		"status":   status,
	})
}

// overtaken is true when the object changed or went since it was looked at.
func overtaken(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err)
}
