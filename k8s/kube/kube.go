// Package kube is the client of a Kubernetes API server, for the kinds that Drydock works with.
//
// client-go's clientset has every kind there is, and an import of it, or of one of its typed clients, links all of them. What
// this one has is called as there, so that a clientset can stand in for it (see k8stest).
package kube

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Interface is the client. Its groups are those of client-go's clientset.
type Interface interface {
	CoreV1() Core
	AppsV1() Apps
	AuthenticationV1() Authentication
	AuthorizationV1() Authorization
	BatchV1() Batch
	CoordinationV1() Coordination
	LifecycleV1alpha1() Group
	PolicyV1() Group
	StorageV1() Group
}

// Group is an API group.
type Group interface {
	RESTClient() rest.Interface
}

// Core is the group without a name.
type Core interface {
	Group
	Events(namespace string) Resources[*corev1.Event, *corev1.EventList]
	Nodes() Resources[*corev1.Node, *corev1.NodeList]
	PersistentVolumeClaims(namespace string) Resources[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList]
	Pods(namespace string) Pods
}

// Pods are those of a namespace, or of all.
type Pods interface {
	Resources[*corev1.Pod, *corev1.PodList]
	// GetLogs is the request for the log of a pod's container.
	GetLogs(name string, o *corev1.PodLogOptions) *rest.Request
}

// Apps is the group apps.
type Apps interface {
	DaemonSets(namespace string) Resources[*appsv1.DaemonSet, *appsv1.DaemonSetList]
	ReplicaSets(namespace string) Resources[*appsv1.ReplicaSet, *appsv1.ReplicaSetList]
	StatefulSets(namespace string) Resources[*appsv1.StatefulSet, *appsv1.StatefulSetList]
}

// Authentication is the group authentication.k8s.io.
type Authentication interface {
	SelfSubjectReviews() Reviews[*authenticationv1.SelfSubjectReview]
	TokenReviews() Reviews[*authenticationv1.TokenReview]
}

// Authorization is the group authorization.k8s.io.
type Authorization interface {
	SelfSubjectAccessReviews() Reviews[*authorizationv1.SelfSubjectAccessReview]
	SubjectAccessReviews() Reviews[*authorizationv1.SubjectAccessReview]
}

// Batch is the group batch.
type Batch interface {
	Jobs(namespace string) Resources[*batchv1.Job, *batchv1.JobList]
}

// Coordination is the group coordination.k8s.io.
type Coordination interface {
	Leases(namespace string) Resources[*coordinationv1.Lease, *coordinationv1.LeaseList]
}

// Resources are the objects of one kind. What they return beside an error is not nil, and empty.
type Resources[T, L any] interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (T, error)
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
	Create(ctx context.Context, object T, o metav1.CreateOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string) (T, error)
	Delete(ctx context.Context, name string, o metav1.DeleteOptions) error
}

// Reviews are questions, which the API server answers and does not keep.
type Reviews[T any] interface {
	Create(ctx context.Context, review T, o metav1.CreateOptions) (T, error)
}
