// Package witness sees every version of every node and pod of a cluster, through watches of its own: what is true of the cluster at every
// instant, whoever says otherwise.
package witness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"drydock.dev/drydock/api"
)

// Nodes shows every version of every node: those of now before it returns, and until the context ends the later ones, in the order in which
// they were made. So what they say together was true at one instant. It says what broke the watch, after which nothing more is seen.
func Nodes(ctx context.Context, kube kubernetes.Interface, see func(watch.EventType, *corev1.Node), broke func(error)) error {
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		see(watch.Added, &list.Items[i])
	}
	return follow(ctx, list.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return kube.CoreV1().Nodes().Watch(ctx, o)
	}, see, broke)
}

// Pods is Nodes for the pods of a namespace.
func Pods(ctx context.Context, kube kubernetes.Interface, namespace string, see func(watch.EventType, *corev1.Pod), broke func(error)) error {
	list, err := kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		see(watch.Added, &list.Items[i])
	}
	return follow(ctx, list.ResourceVersion, func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		return kube.CoreV1().Pods(namespace).Watch(ctx, o)
	}, see, broke)
}

func follow[T runtime.Object](ctx context.Context, from string, watcher cache.WatchFuncWithContext, see func(watch.EventType, T), broke func(error)) error {
	// The API server ends every watch now and then: this one begins it anew where it ended.
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, from, &cache.ListWatch{WatchFuncWithContext: watcher})
	if err != nil {
		return err
	}
	go func() {
		for event := range stream.ResultChan() {
			object, ok := event.Object.(T)
			if !ok {
				broke(fmt.Errorf("the witness's watch broke: %v", event.Object))
				return
			}
			see(event.Type, object)
		}
		if ctx.Err() == nil {
			broke(errors.New("the witness's watch ended: not everything was seen"))
		}
	}()
	return nil
}

// IsHeld reports whether a maintenance holds a node, by the node's mark.
func IsHeld(n *corev1.Node) bool { return n.Annotations[api.HoldersAnnotation] != "" }

// Imprint is all of a node that a maintenance could leave behind.
func Imprint(n *corev1.Node) string {
	annotations := maps.Clone(n.Annotations)
	delete(annotations, api.GivenBackAnnotation) // it stays, and tells of the maintenances before
	text, err := json.Marshal(map[string]any{"spec": n.Spec, "labels": n.Labels, "annotations": annotations})
	if err != nil {
		return err.Error() // which a node of an API server never is
	}
	return string(text)
}
