// Package objects reads and writes objects of kinds that are known at run time only, as remediation templates name them. Requests
// are JSON, by the client of a worker: client-go's dynamic client and its discovery link the schemas of all kinds.
package objects

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/k8s/kube"
)

// ErrNoKind says that the API server serves no such kind.
var ErrNoKind = errors.New("the API server has no such kind")

const (
	// kindsFor and groupsFor are how long the kinds and groups that the API server serves are cached. A kind that it does not serve is
	// looked up again each time.
	kindsFor  = 10 * time.Minute
	groupsFor = 30 * time.Second
	// pageSize bounds one answer to a list.
	pageSize = 500
)

// Kind is a kind that an API server serves, and how to request it.
type Kind struct {
	schema.GroupVersionKind
	Resource   string
	Namespaced bool
}

// Client reads and writes objects of any kind. It is safe for concurrent use.
type Client struct {
	client kube.Interface

	mu     sync.Mutex
	kinds  map[schema.GroupVersion]servedKinds
	groups servedGroups
}

type servedKinds struct {
	kinds map[string]Kind
	at    time.Time
}

type servedGroups struct {
	preferred map[string]string
	at        time.Time
}

// New makes a client out of that of a worker.
func New(client kube.Interface) *Client {
	return &Client{client: client, kinds: map[schema.GroupVersion]servedKinds{}}
}

// Kube is the client that the requests go by.
func (c *Client) Kube() kube.Interface { return c.client }

// Resolve returns the resource that serves a kind.
func (c *Client) Resolve(ctx context.Context, apiVersion, kind string) (Kind, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil || version.Version == "" {
		return Kind{}, fmt.Errorf("%s %s: %w", apiVersion, kind, ErrNoKind)
	}
	c.mu.Lock()
	known, ok := c.kinds[version]
	c.mu.Unlock()
	if found, has := known.kinds[kind]; ok && has && time.Since(known.at) < kindsFor {
		return found, nil
	}
	kinds, err := c.discover(ctx, version)
	if err != nil {
		return Kind{}, err
	}
	c.mu.Lock()
	c.kinds[version] = servedKinds{kinds: kinds, at: time.Now()}
	c.mu.Unlock()
	found, has := kinds[kind]
	if !has {
		return Kind{}, fmt.Errorf("%s %s: %w", apiVersion, kind, ErrNoKind)
	}
	return found, nil
}

// discover asks which kinds a version of a group has; none where it is not served.
func (c *Client) discover(ctx context.Context, version schema.GroupVersion) (map[string]Kind, error) {
	root, err := rootOf(version)
	if err != nil {
		return nil, err
	}
	var list metav1.APIResourceList
	err = c.do(ctx, c.request("GET").AbsPath(root...), &list)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("asking for the kinds of %s: %w", version, err)
	}
	kinds := map[string]Kind{}
	for _, r := range list.APIResources {
		if path.Base(r.Name) == r.Name { // a subresource is "name/status"
			kinds[r.Kind] = Kind{GroupVersionKind: version.WithKind(r.Kind), Resource: r.Name, Namespaced: r.Namespaced}
		}
	}
	return kinds, nil
}

// Preferred is the version of a group that the API server prefers, empty if it does not serve the group. An answer is cached for half a
// minute.
func (c *Client) Preferred(ctx context.Context, group string) (string, error) {
	c.mu.Lock()
	known := c.groups
	c.mu.Unlock()
	if time.Since(known.at) >= groupsFor {
		var list metav1.APIGroupList
		if err := c.do(ctx, c.request("GET").AbsPath("apis"), &list); err != nil {
			return "", fmt.Errorf("asking for the API groups: %w", err)
		}
		known = servedGroups{preferred: map[string]string{}, at: time.Now()}
		for _, g := range list.Groups {
			known.preferred[g.Name] = g.PreferredVersion.Version
		}
		c.mu.Lock()
		c.groups = known
		c.mu.Unlock()
	}
	return known.preferred[group], nil
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, kind Kind, namespace, name string) (*unstructured.Unstructured, error) {
	at, err := kind.path(namespace, name)
	if err != nil {
		return nil, err
	}
	return c.one(ctx, kind, c.request("GET").AbsPath(at...))
}

// List reads the objects of a namespace, or of all where it is empty, that a label selector selects.
func (c *Client) List(ctx context.Context, kind Kind, namespace, selector string) ([]unstructured.Unstructured, error) {
	return c.list(ctx, kind, namespace, selector, "application/json")
}

// ListMetadata is List without what the objects say besides their metadata.
func (c *Client) ListMetadata(ctx context.Context, kind Kind, namespace, selector string) ([]unstructured.Unstructured, error) {
	return c.list(ctx, kind, namespace, selector, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json")
}

func (c *Client) list(ctx context.Context, kind Kind, namespace, selector, accept string) ([]unstructured.Unstructured, error) {
	at, err := kind.path(namespace)
	if err != nil {
		return nil, err
	}
	var all []unstructured.Unstructured
	for from := ""; ; {
		request := c.request("GET").SetHeader("Accept", accept).AbsPath(at...).Param("limit", fmt.Sprint(pageSize))
		if selector != "" {
			request = request.Param("labelSelector", selector)
		}
		if from != "" {
			request = request.Param("continue", from)
		}
		var page unstructured.UnstructuredList
		if err := c.do(ctx, request, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
		if from = page.GetContinue(); from == "" {
			return all, nil
		}
	}
}

// Create writes a new object, and returns it as it is kept.
func (c *Client) Create(ctx context.Context, kind Kind, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	at, err := kind.path(object.GetNamespace())
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	return c.one(ctx, kind, c.request("POST").AbsPath(at...).SetHeader("Content-Type", "application/json").Body(body))
}

// Patch applies a JSON merge patch, in which null removes. A resourceVersion or a UID in its metadata is a precondition.
func (c *Client) Patch(ctx context.Context, kind Kind, namespace, name string, patch map[string]any) (*unstructured.Unstructured, error) {
	at, err := kind.path(namespace, name)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return nil, err
	}
	return c.one(ctx, kind, c.request("PATCH").AbsPath(at...).SetHeader("Content-Type", string(types.MergePatchType)).Body(body))
}

// Delete deletes the very object that has the UID; its finalizers may keep it for a while.
func (c *Client) Delete(ctx context.Context, kind Kind, namespace, name string, uid types.UID) error {
	at, err := kind.path(namespace, name)
	if err != nil {
		return err
	}
	options := metav1.DeleteOptions{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}, Preconditions: &metav1.Preconditions{UID: &uid},
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	}
	body, err := json.Marshal(options)
	if err != nil {
		return err
	}
	return c.do(ctx, c.request("DELETE").AbsPath(at...).SetHeader("Content-Type", "application/json").Body(body), nil)
}

// one reads the object of an answer. One that is not found may be of a kind that is not served any more.
func (c *Client) one(ctx context.Context, kind Kind, request *rest.Request) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	err := c.do(ctx, request, object)
	if apierrors.IsNotFound(err) {
		c.mu.Lock()
		delete(c.kinds, kind.GroupVersion())
		c.mu.Unlock()
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

// request is one whose answer is JSON; its path is absolute, so that it may be of any group.
func (c *Client) request(verb string) *rest.Request {
	return c.client.CoreV1().RESTClient().Verb(verb).SetHeader("Accept", "application/json")
}

func (c *Client) do(ctx context.Context, request *rest.Request, into any) error {
	result := request.Do(ctx)
	if err := result.Error(); err != nil {
		return err
	}
	body, err := result.Raw()
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil { // unstructured objects decode whole numbers as such
		return fmt.Errorf("reading an answer of the API server: %w", err)
	}
	return nil
}

// rootOf is the path of a version of a group.
func rootOf(version schema.GroupVersion) ([]string, error) {
	root := []string{"apis", version.Group, version.Version}
	if version.Group == "" {
		root = []string{"api", version.Version}
	}
	return root, checkSegments(root)
}

// path is that of the kind in a namespace, and of one of its objects where a name is given.
func (k Kind) path(namespace string, name ...string) ([]string, error) {
	at, err := rootOf(k.GroupVersion())
	if err != nil {
		return nil, err
	}
	if k.Namespaced && namespace != "" {
		at = append(at, "namespaces", namespace)
	}
	at = slices.Concat(at, []string{k.Resource}, name)
	return at, checkSegments(at)
}

// checkSegments refuses what would be another path.
func checkSegments(segments []string) error {
	for _, s := range segments {
		if problems := content.IsPathSegmentName(s); s == "" || len(problems) > 0 {
			return fmt.Errorf("%q is no name of an object: %v", s, problems)
		}
	}
	return nil
}
