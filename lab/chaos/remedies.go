package main

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/lab/witness"
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
	client, err := world.Dynamic(kubeconfig)
	if err != nil {
		return nil, err
	}
	kinds := []schema.GroupVersionResource{resourceOf("selfnoderemediationtemplates"), resourceOf(remedyResource)}
	if err := world.Define(ctx, client, "lab/e2e/testdata/remediators.yaml", kinds...); err != nil {
		return nil, err
	}
	r := &remedies{client: client, there: map[types.UID]*unstructured.Unstructured{}, most: map[string]int{}}
	return r, witness.Objects(ctx, client.Resource(resourceOf(remedyResource)), r.see, r.broke)
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

func (r *remedies) broke(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *remedies) see(kind watch.EventType, o *unstructured.Unstructured) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind == watch.Deleted {
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
