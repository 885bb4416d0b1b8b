package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

var (
	// Scheme has the kinds of this package's groups.
	Scheme = newScheme()
	// ParameterCodec writes the options of requests.
	ParameterCodec = runtime.NewParameterCodec(Scheme)

	codecs = serializer.NewCodecFactory(Scheme)
)

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	for _, add := range []func(*runtime.Scheme) error{
		appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme, batchv1.AddToScheme, coordinationv1.AddToScheme,
		corev1.AddToScheme, lifecyclev1alpha1.AddToScheme, policyv1.AddToScheme, storagev1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// NewForConfig builds a client. Its groups share the connections, and the budget of requests that the configuration has.
func NewForConfig(config *rest.Config) (Interface, error) {
	shared := rest.CopyConfig(config)
	if shared.UserAgent == "" {
		shared.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	if shared.RateLimiter == nil && shared.QPS > 0 {
		if shared.Burst <= 0 {
			return nil, errors.New("a configuration with QPS has no Burst: set it above 0")
		}
		shared.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(shared.QPS, shared.Burst)
	}
	shared.Wrap(func(next http.RoundTripper) http.RoundTripper { return dated{next} })
	connections, err := rest.HTTPClientFor(shared)
	if err != nil {
		return nil, err
	}
	c := &client{}
	for version, to := range map[schema.GroupVersion]*group{
		appsv1.SchemeGroupVersion: &c.apps, authenticationv1.SchemeGroupVersion: &c.authentication,
		authorizationv1.SchemeGroupVersion: &c.authorization, batchv1.SchemeGroupVersion: &c.batch,
		coordinationv1.SchemeGroupVersion: &c.coordination, corev1.SchemeGroupVersion: &c.core, lifecyclev1alpha1.SchemeGroupVersion: &c.lifecycle,
		policyv1.SchemeGroupVersion: &c.policy, storagev1.SchemeGroupVersion: &c.storage,
	} {
		if to.client, err = newRESTClient(shared, connections, version); err != nil {
			return nil, fmt.Errorf("%s: %w", version, err)
		}
	}
	return c, nil
}

func newRESTClient(shared *rest.Config, connections *http.Client, version schema.GroupVersion) (rest.Interface, error) {
	config := rest.CopyConfig(shared)
	config.GroupVersion = &version
	config.APIPath = "/apis"
	if version.Group == corev1.GroupName {
		config.APIPath = "/api"
	}
	config.NegotiatedSerializer = rest.CodecFactoryForGeneratedClient(Scheme, codecs).WithoutConversion()
	return rest.RESTClientForConfigAndClient(config, connections)
}

// ServerVersion asks the API server for its version.
func ServerVersion(ctx context.Context, client Interface) (version.Info, error) {
	var info version.Info
	body, err := client.CoreV1().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(body, &info); err != nil {
		return info, fmt.Errorf("reading the API server's version: %w", err)
	}
	return info, nil
}

// client is the client of a real API server.
type client struct {
	apps, authentication, authorization, batch, coordination, core, lifecycle, policy, storage group
}

func (c *client) CoreV1() Core                     { return core{c.core} }
func (c *client) AppsV1() Apps                     { return apps{c.apps} }
func (c *client) AuthenticationV1() Authentication { return authentication{c.authentication} }
func (c *client) AuthorizationV1() Authorization   { return authorization{c.authorization} }
func (c *client) BatchV1() Batch                   { return batch{c.batch} }
func (c *client) CoordinationV1() Coordination     { return coordination{c.coordination} }
func (c *client) LifecycleV1alpha1() Group         { return c.lifecycle }
func (c *client) PolicyV1() Group                  { return c.policy }
func (c *client) StorageV1() Group                 { return c.storage }

type group struct{ client rest.Interface }

func (g group) RESTClient() rest.Interface { return g.client }

type (
	core           struct{ group }
	apps           struct{ group }
	authentication struct{ group }
	authorization  struct{ group }
	batch          struct{ group }
	coordination   struct{ group }
)

func (g core) Events(namespace string) Resources[*corev1.Event, *corev1.EventList] {
	return newResources[corev1.Event, corev1.EventList](g.client, namespace, "events")
}

func (g core) Nodes() Resources[*corev1.Node, *corev1.NodeList] {
	return newResources[corev1.Node, corev1.NodeList](g.client, metav1.NamespaceNone, "nodes")
}

func (g core) PersistentVolumeClaims(namespace string) Resources[*corev1.PersistentVolumeClaim, *corev1.PersistentVolumeClaimList] {
	return newResources[corev1.PersistentVolumeClaim, corev1.PersistentVolumeClaimList](g.client, namespace, "persistentvolumeclaims")
}

func (g core) Pods(namespace string) Pods {
	return pods{Resources: newResources[corev1.Pod, corev1.PodList](g.client, namespace, "pods"), client: g.client, namespace: namespace}
}

func (g apps) DaemonSets(namespace string) Resources[*appsv1.DaemonSet, *appsv1.DaemonSetList] {
	return newResources[appsv1.DaemonSet, appsv1.DaemonSetList](g.client, namespace, "daemonsets")
}

func (g apps) ReplicaSets(namespace string) Resources[*appsv1.ReplicaSet, *appsv1.ReplicaSetList] {
	return newResources[appsv1.ReplicaSet, appsv1.ReplicaSetList](g.client, namespace, "replicasets")
}

func (g apps) StatefulSets(namespace string) Resources[*appsv1.StatefulSet, *appsv1.StatefulSetList] {
	return newResources[appsv1.StatefulSet, appsv1.StatefulSetList](g.client, namespace, "statefulsets")
}

func (g batch) Jobs(namespace string) Resources[*batchv1.Job, *batchv1.JobList] {
	return newResources[batchv1.Job, batchv1.JobList](g.client, namespace, "jobs")
}

func (g coordination) Leases(namespace string) Resources[*coordinationv1.Lease, *coordinationv1.LeaseList] {
	return newResources[coordinationv1.Lease, coordinationv1.LeaseList](g.client, namespace, "leases")
}

func (g authentication) SelfSubjectReviews() Reviews[*authenticationv1.SelfSubjectReview] {
	return newReviews[authenticationv1.SelfSubjectReview](g.client, "selfsubjectreviews")
}

func (g authentication) TokenReviews() Reviews[*authenticationv1.TokenReview] {
	return newReviews[authenticationv1.TokenReview](g.client, "tokenreviews")
}

func (g authorization) SubjectAccessReviews() Reviews[*authorizationv1.SubjectAccessReview] {
	return newReviews[authorizationv1.SubjectAccessReview](g.client, "subjectaccessreviews")
}

func (g authorization) SelfSubjectAccessReviews() Reviews[*authorizationv1.SelfSubjectAccessReview] {
	return newReviews[authorizationv1.SelfSubjectAccessReview](g.client, "selfsubjectaccessreviews")
}
