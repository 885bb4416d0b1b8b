package k8stest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds are kinds of objects that a Server does not know, with discovery, versions and finalizers: its Handle is a Server's.
type Kinds struct {
	mu      sync.Mutex
	served  map[schema.GroupVersion][]servedKind
	objects map[string]*unstructured.Unstructured
	version int
	// streams are by the key of the one object that each is about.
	streams map[chan string]string
	// Refuse answers a request with a status; nil refuses none.
	Refuse func(r *http.Request) int
	// Lose reports whether the answer to a request that was carried out is lost; nil loses none.
	Lose func(r *http.Request) bool
}

type servedKind struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

// NewKinds serves namespaces and leases.
func NewKinds() *Kinds {
	k := &Kinds{served: map[schema.GroupVersion][]servedKind{}, objects: map[string]*unstructured.Unstructured{}, streams: map[chan string]string{}}
	k.Serve("v1", "Namespace", "namespaces", false)
	k.Serve("coordination.k8s.io/v1", "Lease", "leases", true)
	return k
}

// Serve adds a kind.
func (k *Kinds) Serve(apiVersion, kind, resource string, namespaced bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		panic(err)
	}
	k.served[version] = append(k.served[version], servedKind{resource, kind, namespaced})
}

// Set creates or changes an object, given as JSON.
func (k *Kinds) Set(text string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.keep(k.keyOf(o), o)
}

func (k *Kinds) keyOf(o *unstructured.Unstructured) string {
	gvk := o.GroupVersionKind()
	for _, s := range k.served[gvk.GroupVersion()] {
		if s.Kind == gvk.Kind {
			return strings.Join([]string{gvk.Group, s.Name, o.GetNamespace(), o.GetName()}, "/")
		}
	}
	panic("not served: " + gvk.String())
}

// Find is an object by "group/resource/namespace/name", nil if there is none.
func (k *Kinds) Find(key string) *unstructured.Unstructured {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.objects[key]; o != nil {
		return o.DeepCopy()
	}
	return nil
}

// Names are the keys of the objects of a "group/resource".
func (k *Kinds) Names(of string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.DeleteFunc(slices.Sorted(maps.Keys(k.objects)), func(key string) bool { return !strings.HasPrefix(key, of+"/") })
}

// Delete removes an object at once, whatever its finalizers.
func (k *Kinds) Delete(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.objects[key]; o != nil {
		delete(k.objects, key)
		k.send("DELETED", key, o)
	}
}

// keep stores an object: one that is being deleted and has no finalizer goes.
func (k *Kinds) keep(key string, o *unstructured.Unstructured) *unstructured.Unstructured {
	before := k.objects[key]
	k.version++
	o.SetResourceVersion(strconv.Itoa(k.version))
	switch {
	case before == nil:
		if o.GetUID() == "" {
			unstructured.SetNestedField(o.Object, fmt.Sprintf("uid-%d", k.version), "metadata", "uid") //nolint:errcheck // a text
		}
		if created := o.GetCreationTimestamp(); created.IsZero() {
			unstructured.SetNestedField(o.Object, time.Now().UTC().Format(time.RFC3339), "metadata", "creationTimestamp") //nolint:errcheck // a text
		}
		k.send("ADDED", key, o)
	case o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0:
		delete(k.objects, key)
		k.send("DELETED", key, o)
		return o
	default:
		k.send("MODIFIED", key, o)
	}
	k.objects[key] = o
	return o
}

func (k *Kinds) send(kind, key string, o *unstructured.Unstructured) {
	text, err := json.Marshal(o.Object)
	if err != nil {
		panic(err)
	}
	for stream, of := range k.streams {
		if key == of {
			stream <- fmt.Sprintf(`{"type":%q,"object":%s}`, kind, text)
		}
	}
}

// Handle is a Server's.
func (k *Kinds) Handle(w http.ResponseWriter, r *http.Request) bool {
	at := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(at) == 1 && at[0] == "apis":
		k.groups(w)
		return true
	case at[0] == "apis" && len(at) == 2:
		k.group(w, at[1])
		return true
	case at[0] == "apis" && len(at) == 3:
		return k.discover(w, schema.GroupVersion{Group: at[1], Version: at[2]})
	case at[0] == "apis" && len(at) > 3:
		return k.answer(w, r, schema.GroupVersion{Group: at[1], Version: at[2]}, at[3:])
	case at[0] == "api" && len(at) > 2 && at[2] == "namespaces" && len(at) <= 4:
		return k.answer(w, r, schema.GroupVersion{Version: "v1"}, at[2:])
	}
	return false
}

func write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		panic(err)
	}
}

func (k *Kinds) groups(w http.ResponseWriter) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var groups []map[string]any
	for version := range k.served {
		groups = append(groups, map[string]any{"name": version.Group, "preferredVersion": map[string]any{"groupVersion": version.String(), "version": version.Version}})
	}
	write(w, http.StatusOK, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

func (k *Kinds) group(w http.ResponseWriter, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for version := range k.served {
		if version.Group == name {
			write(w, http.StatusOK, map[string]any{"kind": "APIGroup", "apiVersion": "v1", "preferredVersion": map[string]any{"version": version.Version}})
			return
		}
	}
	respondError(w, apierrors.NewNotFound(schema.GroupResource{}, name))
}

func (k *Kinds) discover(w http.ResponseWriter, version schema.GroupVersion) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	kinds, ok := k.served[version]
	if !ok {
		respondError(w, apierrors.NewNotFound(schema.GroupResource{}, version.String()))
		return true
	}
	write(w, http.StatusOK, map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version.String(), "resources": kinds})
	return true
}

// answer carries a request out; it is not the kinds' where nobody served the resource.
func (k *Kinds) answer(w http.ResponseWriter, r *http.Request, version schema.GroupVersion, at []string) bool {
	namespace := ""
	if at[0] == "namespaces" && len(at) > 2 {
		namespace, at = at[1], at[2:]
	}
	k.mu.Lock()
	kinds := k.served[version]
	i := slices.IndexFunc(kinds, func(s servedKind) bool { return s.Name == at[0] })
	k.mu.Unlock()
	if i < 0 {
		return false
	}
	if k.Refuse != nil {
		if code := k.Refuse(r); code != 0 {
			respondError(w, apierrors.NewGenericServerResponse(code, "", schema.GroupResource{Resource: at[0]}, "", "refused", 0, true))
			return true
		}
	}
	prefix := strings.Join([]string{version.Group, at[0], namespace, ""}, "/")
	if r.URL.Query().Get("watch") != "" {
		k.watch(w, r, prefix)
		return true
	}
	code, answer := k.carryOut(r, prefix, at, version.WithKind(kinds[i].Kind))
	if k.Lose != nil && k.Lose(r) {
		code, answer = http.StatusInternalServerError, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "lost", "code": 500}
	}
	write(w, code, answer)
	return true
}

func refusal(err *apierrors.StatusError) (int, any) {
	err.ErrStatus.Kind, err.ErrStatus.APIVersion = "Status", "v1"
	return int(err.ErrStatus.Code), err.ErrStatus
}

func (k *Kinds) carryOut(r *http.Request, prefix string, at []string, kind schema.GroupVersionKind) (int, any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	resource := schema.GroupResource{Group: kind.Group, Resource: at[0]}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	if r.Method == http.MethodPost {
		return k.create(prefix, body, resource, kind)
	}
	if len(at) == 1 {
		return http.StatusOK, map[string]any{"kind": kind.Kind + "List", "apiVersion": kind.GroupVersion().String(), "metadata": map[string]any{}, "items": k.list(r, prefix)}
	}
	key := prefix + at[1]
	o := k.objects[key]
	switch {
	case o == nil:
		return refusal(apierrors.NewNotFound(resource, at[1]))
	case r.Method == http.MethodGet:
		return http.StatusOK, o.Object
	case r.Method == http.MethodDelete:
		return k.remove(key, o, body, resource)
	}
	return k.patch(key, o, body, resource)
}

func (k *Kinds) list(r *http.Request, prefix string) []map[string]any {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		panic(err)
	}
	items := []map[string]any{}
	all := strings.HasSuffix(prefix, "//") // of every namespace
	for _, key := range slices.Sorted(maps.Keys(k.objects)) {
		in := strings.HasPrefix(key, prefix) || all && strings.HasPrefix(key, strings.TrimSuffix(prefix, "/"))
		if o := k.objects[key]; in && selector.Matches(labels.Set(o.GetLabels())) {
			items = append(items, o.Object)
		}
	}
	return items
}

func (k *Kinds) create(prefix string, body []byte, resource schema.GroupResource, kind schema.GroupVersionKind) (int, any) {
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(body); err != nil {
		panic(err)
	}
	if o.GroupVersionKind() != kind || o.GetName() == "" || path.Base(strings.TrimSuffix(prefix, "/")) != o.GetNamespace() && o.GetNamespace() != "" {
		return refusal(apierrors.NewBadRequest("it is not of the kind, or of the namespace, that it is sent to"))
	}
	if ns := o.GetNamespace(); ns != "" && k.objects["/namespaces//"+ns] == nil {
		return refusal(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, ns))
	}
	if key := prefix + o.GetName(); k.objects[key] != nil {
		return refusal(apierrors.NewAlreadyExists(resource, o.GetName()))
	}
	return http.StatusCreated, k.keep(prefix+o.GetName(), o).Object
}

func (k *Kinds) remove(key string, o *unstructured.Unstructured, body []byte, resource schema.GroupResource) (int, any) {
	var options struct {
		Preconditions struct{ UID string }
	}
	if err := json.Unmarshal(body, &options); err != nil {
		panic(err)
	}
	if uid := options.Preconditions.UID; uid != "" && uid != string(o.GetUID()) {
		return refusal(apierrors.NewConflict(resource, o.GetName(), fmt.Errorf("another UID")))
	}
	changed := o.DeepCopy()
	if changed.GetDeletionTimestamp() == nil {
		unstructured.SetNestedField(changed.Object, time.Now().UTC().Format(time.RFC3339), "metadata", "deletionTimestamp") //nolint:errcheck // a text
	}
	return http.StatusOK, k.keep(key, changed).Object
}

func (k *Kinds) patch(key string, o *unstructured.Unstructured, body []byte, resource schema.GroupResource) (int, any) {
	before, err := json.Marshal(o.Object)
	if err != nil {
		panic(err)
	}
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		panic(err)
	}
	changed := &unstructured.Unstructured{}
	if err := changed.UnmarshalJSON(after); err != nil {
		panic(err)
	}
	if changed.GetUID() != o.GetUID() {
		return refusal(apierrors.NewInvalid(o.GroupVersionKind().GroupKind(), o.GetName(), nil))
	}
	if changed.GetResourceVersion() != o.GetResourceVersion() {
		return refusal(apierrors.NewConflict(resource, o.GetName(), fmt.Errorf("it has been modified")))
	}
	return http.StatusOK, k.keep(key, changed).Object
}

func (k *Kinds) watch(w http.ResponseWriter, r *http.Request, prefix string) {
	name, _ := strings.CutPrefix(r.URL.Query().Get("fieldSelector"), "metadata.name=")
	after, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		panic(err)
	}
	stream := make(chan string, 1000)
	k.mu.Lock()
	k.streams[stream] = prefix + name
	if o := k.objects[prefix+name]; o != nil {
		if version, _ := strconv.Atoi(o.GetResourceVersion()); version > after { //nolint:errcheck // it is a number
			text, _ := json.Marshal(o.Object) //nolint:errcheck // it was read from JSON
			stream <- fmt.Sprintf(`{"type":"MODIFIED","object":%s}`, text)
		}
	}
	k.mu.Unlock()
	defer func() {
		k.mu.Lock()
		delete(k.streams, stream)
		k.mu.Unlock()
	}()
	w.Header().Set("Content-Type", "application/json")
	w.(http.Flusher).Flush()
	for {
		select {
		case event := <-stream:
			fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}
