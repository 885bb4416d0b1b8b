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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"drydock.dev/drydock/api"
)

// Nodes shows every version of every node: those of now before it returns, and until the context ends the later ones, in the order in which
// they were made. So what they say together was true at one instant. It says what broke the watch, after which nothing more is seen.
func Nodes(ctx context.Context, kube kubernetes.Interface, see func(watch.EventType, *corev1.Node), broke func(error)) error {
	return follow(ctx, core(kube, "nodes", metav1.NamespaceAll), see, broke)
}

// Pods is Nodes for the pods of a namespace.
func Pods(ctx context.Context, kube kubernetes.Interface, namespace string, see func(watch.EventType, *corev1.Pod), broke func(error)) error {
	return follow(ctx, core(kube, "pods", namespace), see, broke)
}

// Objects is Nodes for the objects of a resource.
func Objects(ctx context.Context, of dynamic.ResourceInterface, see func(watch.EventType, *unstructured.Unstructured), broke func(error)) error {
	return follow(ctx, &cache.ListWatch{
		ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return of.List(ctx, o) },
		WatchFuncWithContext: of.Watch,
	}, see, broke)
}

// core reads and watches a resource of the core group.
func core(kube kubernetes.Interface, resource, namespace string) *cache.ListWatch {
	return cache.NewListWatchFromClient(kube.CoreV1().RESTClient(), resource, namespace, fields.Everything())
}

func follow[T runtime.Object](ctx context.Context, of *cache.ListWatch, see func(watch.EventType, T), broke func(error)) error {
	list, err := of.ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	at, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	show := func(kind watch.EventType, o runtime.Object) error {
		object, ok := o.(T)
		if !ok {
			return fmt.Errorf("the witness's watch broke: %v", o)
		}
		see(kind, object)
		return nil
	}
	if err := meta.EachListItem(list, func(o runtime.Object) error { return show(watch.Added, o) }); err != nil {
		return err
	}
	// The API server ends every watch now and then: this one begins it anew where it ended.
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, at.GetResourceVersion(), of)
	if err != nil {
		return err
	}
	go func() {
		for event := range stream.ResultChan() {
			if err := show(event.Type, event.Object); err != nil {
				broke(err)
				return
			}
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
