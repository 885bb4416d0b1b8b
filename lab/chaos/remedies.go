package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	watchtools "k8s.io/client-go/tools/watch"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

// The kind of the remediation objects, of which a node may have several, and the templates they are made from, one after the other.
const (
	remedyVersion   = "self-node-remediation.medik8s.io/v1alpha1"
	remedyKind      = "SelfNodeRemediation"
	remedyResource  = "selfnoderemediations"
	soft, hard      = "soft", "hard"
	ofNode          = "remediation.medik8s.io/node-name"
	fromTemplate    = "remediation.medik8s.io/template-name"
	timedOutMark    = "remediation.medik8s.io/nhc-timed-out"
	takesSeveral    = "remediation.medik8s.io/multiple-templates-support"
	leasesNamespace = "medik8s-leases"
)

// remedies are the remediation objects of all lanes, each lane's in its namespace. It sees every version of each by a watch of its
// own, past the proxies: what it says of several was so at one instant.
type remedies struct {
	client dynamic.Interface

	mu    sync.Mutex
	there map[types.UID]*unstructured.Unstructured
	// most is of how many nodes of a lane there were some at one instant, since forget.
	most map[string]int
	err  error
}

func resourceOf(name string) schema.GroupVersionResource {
	version, _ := schema.ParseGroupVersion(remedyVersion) // a constant
	return version.WithResource(name)
}

// newRemedies has the kinds of a remediator served.
func newRemedies(ctx context.Context, kubeconfig string) (*remedies, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	r := &remedies{there: map[types.UID]*unstructured.Unstructured{}, most: map[string]int{}}
	if r.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if err := r.define(ctx); err != nil {
		return nil, err
	}
	objects := r.client.Resource(resourceOf(remedyResource))
	var from *unstructured.UnstructuredList
	if err := world.Eventually(ctx, patience, remedyResource+" are served", func() (err error) {
		_, err = r.client.Resource(resourceOf("selfnoderemediationtemplates")).List(ctx, metav1.ListOptions{})
		if err == nil {
			from, err = objects.List(ctx, metav1.ListOptions{})
		}
		return err
	}); err != nil {
		return nil, err
	}
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, from.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return objects.Watch(ctx, o) },
	})
	if err != nil {
		return nil, err
	}
	go func() {
		for event := range stream.ResultChan() {
			r.see(event.Type, event.Object)
		}
	}()
	return r, nil
}

// define creates the kinds.
func (r *remedies) define(ctx context.Context) error {
	root, err := devstack.Root()
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(root, "lab", "e2e", "testdata", "remediators.yaml"))
	if err != nil {
		return err
	}
	defer file.Close()
	kinds := r.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var o unstructured.Unstructured
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case o.GetKind() != "CustomResourceDefinition":
			continue
		}
		if _, err := kinds.Create(ctx, &o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}

// addTemplates creates what the objects of a lane are made from.
func (r *remedies) addTemplates(ctx context.Context, lane string) error {
	for _, name := range []string{soft, hard} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": remedyVersion, "kind": remedyKind + "Template",
			"metadata": map[string]any{"name": name, "annotations": map[string]any{takesSeveral: "true"}},
			"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{"strategy": name}}},
		}}
		_, err := r.client.Resource(resourceOf("selfnoderemediationtemplates")).Namespace(lane).Create(ctx, o, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (r *remedies) see(kind watch.EventType, object runtime.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := object.(*unstructured.Unstructured)
	switch {
	case !ok:
		r.err = fmt.Errorf("the watch of remediation objects broke: %v", object)
		return
	case kind == watch.Deleted:
		delete(r.there, o.GetUID())
		return
	}
	r.there[o.GetUID()] = o
	nodes := map[string]bool{}
	for _, other := range r.there {
		if other.GetNamespace() == o.GetNamespace() {
			nodes[other.GetAnnotations()[ofNode]] = true
		}
	}
	r.most[o.GetNamespace()] = max(r.most[o.GetNamespace()], len(nodes))
}

// forget begins to count anew of how many nodes of a lane there are objects at one instant.
func (r *remedies) forget(lane string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.most[lane] = 0
}

func (r *remedies) mostNodes(lane string) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most[lane], r.err
}

// of are a lane's objects; an empty node is any, and an empty template.
func (r *remedies) of(lane, node, template string) (found []*unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, o := range r.there {
		marks := o.GetAnnotations()
		if o.GetNamespace() == lane && (node == "" || marks[ofNode] == node) && (template == "" || marks[fromTemplate] == template) {
			found = append(found, o)
		}
	}
	return found
}

// fail has a remediator say that what it did for an object failed.
func (r *remedies) fail(ctx context.Context, o *unstructured.Unstructured) error {
	const failed = `{"status":{"conditions":[{"type":"Succeeded","status":"False","reason":"Chaos","message":"as chaos has it"}]}}`
	_, err := r.client.Resource(resourceOf(remedyResource)).Namespace(o.GetNamespace()).
		Patch(ctx, o.GetName(), types.MergePatchType, []byte(failed), metav1.PatchOptions{}, "status")
	return err
}

// clear removes a lane's objects.
func (r *remedies) clear(ctx context.Context, lane string) error {
	return r.client.Resource(resourceOf(remedyResource)).Namespace(lane).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}
