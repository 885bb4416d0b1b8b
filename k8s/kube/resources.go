package kube

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// object is a pointer to a T that is an object of the API; list is one to a list of some.
type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

type list[T any] interface {
	*T
	runtime.Object
}

// reviews are requests that create an object of a kind.
type reviews[T any, P object[T]] struct {
	client          rest.Interface
	namespace, name string
}

// resources are all requests about a kind. client-go's gentype has them too, and links the schemas of server-side apply.
type resources[T, L any, P object[T], PL list[L]] struct {
	reviews[T, P]
}

func newReviews[T any, P object[T]](client rest.Interface, name string) Reviews[P] {
	return reviews[T, P]{client: client, name: name}
}

func newResources[T, L any, P object[T], PL list[L]](client rest.Interface, namespace, name string) Resources[P, PL] {
	return resources[T, L, P, PL]{reviews[T, P]{client: client, namespace: namespace, name: name}}
}

// request is one about the kind, in protobuf where the configuration wishes for nothing else.
func (r reviews[T, P]) request(verb string) *rest.Request {
	return r.client.Verb(verb).UseProtobufAsDefault().NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

func (r reviews[T, P]) Create(ctx context.Context, object P, o metav1.CreateOptions) (P, error) {
	created := P(new(T))
	return created, r.request("POST").VersionedParams(&o, ParameterCodec).Body(object).Do(ctx).Into(created)
}

func (r resources[T, L, P, PL]) Get(ctx context.Context, name string, o metav1.GetOptions) (P, error) {
	found := P(new(T))
	return found, r.request("GET").Name(name).VersionedParams(&o, ParameterCodec).Do(ctx).Into(found)
}

func (r resources[T, L, P, PL]) List(ctx context.Context, o metav1.ListOptions) (PL, error) {
	found := PL(new(L))
	return found, r.among(&o).Do(ctx).Into(found)
}

func (r resources[T, L, P, PL]) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return r.among(&o).Watch(ctx)
}

// among is a request about the objects that are selected.
func (r resources[T, L, P, PL]) among(o *metav1.ListOptions) *rest.Request {
	var timeout time.Duration
	if o.TimeoutSeconds != nil {
		timeout = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	return r.request("GET").VersionedParams(o, ParameterCodec).Timeout(timeout)
}

func (r resources[T, L, P, PL]) Patch(
	ctx context.Context, name string, kind types.PatchType, patch []byte, o metav1.PatchOptions, subresources ...string,
) (P, error) {
	patched := P(new(T))
	return patched, r.request("PATCH").SetHeader("Content-Type", string(kind)).Name(name).SubResource(subresources...).
		VersionedParams(&o, ParameterCodec).Body(patch).Do(ctx).Into(patched)
}

func (r resources[T, L, P, PL]) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	return r.request("DELETE").Name(name).Body(&o).Do(ctx).Error()
}

type pods struct {
	Resources[*corev1.Pod, *corev1.PodList]
	client    rest.Interface
	namespace string
}

func (p pods) GetLogs(name string, o *corev1.PodLogOptions) *rest.Request {
	return p.client.Get().Namespace(p.namespace).Resource("pods").Name(name).SubResource("log").VersionedParams(o, ParameterCodec)
}
