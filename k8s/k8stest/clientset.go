package k8stest

import (
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	typedapps "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedauthentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	typedauthorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	typedbatch "k8s.io/client-go/kubernetes/typed/batch/v1"
	typedcoordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/k8s/kube"
)

// Narrow is a clientset of client-go's, a fake one too, as the client of a worker.
func Narrow(all kubernetes.Interface) kube.Interface { return clientset{all} }

type clientset struct{ all kubernetes.Interface }

func (c clientset) CoreV1() kube.Core { return core{c.all.CoreV1()} }
func (c clientset) AppsV1() kube.Apps { return apps{c.all.AppsV1()} }
func (c clientset) AuthenticationV1() kube.Authentication {
	return authentication{c.all.AuthenticationV1()}
}
func (c clientset) AuthorizationV1() kube.Authorization {
	return authorization{c.all.AuthorizationV1()}
}
func (c clientset) BatchV1() kube.Batch { return batch{c.all.BatchV1()} }
func (c clientset) CoordinationV1() kube.Coordination {
	return coordination{c.all.CoordinationV1()}
}
func (c clientset) LifecycleV1alpha1() kube.Group { return c.all.LifecycleV1alpha1() }
func (c clientset) PolicyV1() kube.Group          { return c.all.PolicyV1() }
func (c clientset) StorageV1() kube.Group         { return c.all.StorageV1() }

type core struct{ typedcore.CoreV1Interface }

func (c core) Events(namespace string) kube.Resources[*corev1.Event, *corev1.EventList] {
	return c.CoreV1Interface.Events(namespace)
}

func (c core) Nodes() kube.Resources[*corev1.Node, *corev1.NodeList] {
	return c.CoreV1Interface.Nodes()
}

func (c core) PersistentVolumeClaims(namespace string) kube.Resources[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList] {
	return c.CoreV1Interface.PersistentVolumeClaims(namespace)
}

func (c core) Pods(namespace string) kube.Pods { return c.CoreV1Interface.Pods(namespace) }

type apps struct{ typedapps.AppsV1Interface }

func (a apps) DaemonSets(namespace string) kube.Resources[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return a.AppsV1Interface.DaemonSets(namespace)
}

func (a apps) ReplicaSets(namespace string) kube.Resources[*appsv1.ReplicaSet, *appsv1.ReplicaSetList] {
	return a.AppsV1Interface.ReplicaSets(namespace)
}

func (a apps) StatefulSets(namespace string) kube.Resources[*appsv1.StatefulSet, *appsv1.StatefulSetList] {
	return a.AppsV1Interface.StatefulSets(namespace)
}

type authentication struct {
	typedauthentication.AuthenticationV1Interface
}

func (a authentication) SelfSubjectReviews() kube.Reviews[*authenticationv1.SelfSubjectReview] {
	return a.AuthenticationV1Interface.SelfSubjectReviews()
}

func (a authentication) TokenReviews() kube.Reviews[*authenticationv1.TokenReview] {
	return a.AuthenticationV1Interface.TokenReviews()
}

type authorization struct {
	typedauthorization.AuthorizationV1Interface
}

func (a authorization) SubjectAccessReviews() kube.Reviews[*authorizationv1.SubjectAccessReview] {
	return a.AuthorizationV1Interface.SubjectAccessReviews()
}

func (a authorization) SelfSubjectAccessReviews() kube.Reviews[*authorizationv1.SelfSubjectAccessReview] {
	return a.AuthorizationV1Interface.SelfSubjectAccessReviews()
}

type batch struct{ typedbatch.BatchV1Interface }

func (b batch) Jobs(namespace string) kube.Resources[*batchv1.Job, *batchv1.JobList] {
	return b.BatchV1Interface.Jobs(namespace)
}

type coordination struct {
	typedcoordination.CoordinationV1Interface
}

func (c coordination) Leases(namespace string) kube.Resources[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return c.CoordinationV1Interface.Leases(namespace)
}

// Fake is client-go's fake clientset as the client of a worker.
type Fake struct {
	kube.Interface
	*clienttesting.Fake
	// All has the other kinds too.
	All *fake.Clientset
}

// NewFake prepares a fake client with objects in it.
func NewFake(objects ...runtime.Object) Fake {
	all := fake.NewClientset(objects...)
	return Fake{Interface: Narrow(all), Fake: &all.Fake, All: all}
}
