package k8s

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/k8s/kube"
)

// Sources are the watches that the drains of a worker share. Each runs while a drain wants it.
type Sources struct {
	// Budgets are found by their namespace.
	Budgets *Shared[*policyv1.PodDisruptionBudget]
	// Attachments are found by the name of their node, and keep only whose they are.
	Attachments *Shared[*storagev1.VolumeAttachment]
	// Requests are the EvictionRequests of all maintenances, found by the run that filed them.
	Requests *Shared[*lifecyclev1alpha1.EvictionRequest]
	// Evictions are found by the UID of their pod.
	Evictions *Shared[*lifecyclev1alpha1.Eviction]
	// Unbound are the pods that no node was found for yet, or whose binding is under way.
	Unbound *Shared[*corev1.Pod]
}

// NewSources prepares the watches; nothing runs before somebody uses one.
func NewSources(client kube.Interface) *Sources {
	// Not the generated clients' own, which prefer protobuf: see EvictionRequests.rest.
	lifecycle := func() rest.Interface { return client.LifecycleV1alpha1().RESTClient() }
	return &Sources{
		Budgets: share("budgets", func() rest.Interface { return client.PolicyV1().RESTClient() }, &policyv1.PodDisruptionBudget{},
			WatchOptions{Resource: "poddisruptionbudgets", Strip: stripManagedFields, Index: namespaceOf}),
		Attachments: share("volume attachments", func() rest.Interface { return client.StorageV1().RESTClient() }, &storagev1.VolumeAttachment{},
			WatchOptions{Resource: "volumeattachments", Strip: stripAttachment, Index: nodeAttached}),
		Requests: share("EvictionRequests", lifecycle, &lifecyclev1alpha1.EvictionRequest{},
			WatchOptions{Resource: "evictionrequests", Labels: requestRunLabel, Strip: stripManagedFields, Index: runThatFiled}),
		// No selector knows of the pod in its spec, which is the only sure way to an Eviction.
		Evictions: share("Evictions", lifecycle, &lifecyclev1alpha1.Eviction{},
			WatchOptions{Resource: "evictions", Strip: stripManagedFields, Index: podEvicted}),
		Unbound: share("pods without a node", func() rest.Interface { return client.CoreV1().RESTClient() }, &corev1.Pod{}, WatchOptions{
			Resource: "pods", Fields: fields.OneTermEqualSelector("spec.nodeName", ""), Strip: stripUnbound,
		}),
	}
}

// BudgetsIn are the budgets of some namespaces.
func (s *Sources) BudgetsIn(ctx context.Context, namespaces map[string]bool) ([]*policyv1.PodDisruptionBudget, error) {
	if len(namespaces) == 0 {
		return nil, nil
	}
	view, err := s.Budgets.View(ctx)
	if err != nil {
		return nil, err
	}
	defer view.Close()
	var budgets []*policyv1.PodDisruptionBudget
	for namespace := range namespaces {
		budgets = append(budgets, view.By(namespace)...)
	}
	return budgets, nil
}

func namespaceOf(obj any) string {
	o, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return o.GetNamespace()
}

func nodeAttached(obj any) string {
	if a, ok := obj.(*storagev1.VolumeAttachment); ok {
		return a.Spec.NodeName
	}
	return ""
}

func runThatFiled(obj any) string {
	if r, ok := obj.(*lifecyclev1alpha1.EvictionRequest); ok {
		return r.Labels[requestRunLabel]
	}
	return ""
}

func podEvicted(obj any) string {
	if e, ok := obj.(*lifecyclev1alpha1.Eviction); ok && e.Spec.Target.Pod != nil {
		return string(e.Spec.Target.Pod.UID)
	}
	return ""
}

// stripManagedFields drops what nobody looks at.
func stripManagedFields(obj any) (any, error) {
	if o, err := meta.Accessor(obj); err == nil {
		o.SetManagedFields(nil)
	}
	return obj, nil
}

// stripAttachment keeps of an attachment what is asked about.
func stripAttachment(obj any) (any, error) {
	a, ok := obj.(*storagev1.VolumeAttachment)
	if !ok {
		return obj, nil
	}
	small := &storagev1.VolumeAttachment{Spec: storagev1.VolumeAttachmentSpec{
		Attacher: a.Spec.Attacher, NodeName: a.Spec.NodeName,
		Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: a.Spec.Source.PersistentVolumeName},
	}}
	small.Name, small.UID, small.ResourceVersion = a.Name, a.UID, a.ResourceVersion
	return small, nil
}

// stripUnbound keeps of a pod that there is one.
func stripUnbound(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	small := &corev1.Pod{}
	small.Namespace, small.Name, small.UID, small.ResourceVersion = pod.Namespace, pod.Name, pod.UID, pod.ResourceVersion
	small.CreationTimestamp = pod.CreationTimestamp
	return small, nil
}
