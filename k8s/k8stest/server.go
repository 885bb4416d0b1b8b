// Package k8stest is a small API server for tests: it lists, watches, reads and patches nodes, pods, disruption
// budgets and eviction requests as kube-apiserver does, and lets a test answer everything else.
package k8stest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/k8s/kube"
)

// Object is what the server keeps: a node, a pod, a disruption budget, a DaemonSet, a Job, a Lease, an EvictionRequest or its Eviction.
type Object interface {
	metav1.Object
	runtime.Object
}

// Server is the API server.
type Server struct {
	// Handle may answer a request by itself, and then returns true; nil answers none.
	Handle func(w http.ResponseWriter, r *http.Request) bool
	// Asked receives a token with each request.
	Asked chan struct{}

	mu       sync.Mutex
	version  int
	objects  map[string]Object
	streams  map[*stream]bool
	changes  []change
	refuse   int
	denied   [][2]string
	requests []string
}

// change is one that a watch may begin after.
type change struct {
	version int
	kind    string
	object  Object
}

// New prepares a server with objects in it.
func New(objects ...Object) *Server {
	s := &Server{objects: map[string]Object{}, streams: map[*stream]bool{}, Asked: make(chan struct{}, 10000)}
	for _, o := range objects {
		s.Set(o)
	}
	return s
}

// Client starts the server and returns a real client of it; both end with the test.
func (s *Server) Client(t *testing.T) kube.Interface {
	t.Helper()
	server := httptest.NewServer(s)
	client, err := kube.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Refuse(http.StatusInternalServerError)
		s.Disconnect()
		server.CloseClientConnections()
		server.Close()
	})
	return client
}

// Set creates or changes an object.
func (s *Server) Set(o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.set(o)
}

func (s *Server) set(o Object) Object {
	o = o.DeepCopyObject().(Object)
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	kind := "MODIFIED"
	if _, there := s.objects[keyOf(o)]; !there {
		kind = "ADDED"
	}
	s.objects[keyOf(o)] = o
	s.send(kind, o)
	return o
}

// Delete removes an object.
func (s *Server) Delete(o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o = o.DeepCopyObject().(Object)
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	delete(s.objects, keyOf(o))
	s.send("DELETED", o)
}

// Node is the present state of a node, nil if there is none.
func (s *Server) Node(name string) *corev1.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n, ok := s.objects["nodes//"+name]; ok {
		return n.DeepCopyObject().(*corev1.Node)
	}
	return nil
}

// Pod is the present state of a pod, nil if there is none.
func (s *Server) Pod(namespace, name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p, ok := s.objects["pods/"+namespace+"/"+name]; ok {
		return p.DeepCopyObject().(*corev1.Pod)
	}
	return nil
}

// Refuse answers every request with an HTTP status; 0 ends that. A 403 then does not mean a missing permission: see Deny. Streams go on
// until Disconnect.
func (s *Server) Refuse(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = code
}

// Disconnect ends all streams.
func (s *Server) Disconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		close(st.events)
	}
	s.streams = map[*stream]bool{}
}

// Requests are all requests so far whose "METHOD path" contains a text.
func (s *Server) Requests(text string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.requests), func(r string) bool { return !strings.Contains(r, text) })
}

// Respond answers as kube-apiserver does: the code and Retry-After are those of the status.
func Respond(w http.ResponseWriter, body string) {
	var status metav1.Status
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	w.WriteHeader(int(status.Code))
	io.WriteString(w, body)
}

func respondError(w http.ResponseWriter, err *apierrors.StatusError) {
	body, marshal := json.Marshal(err.ErrStatus)
	if marshal != nil {
		panic(marshal)
	}
	Respond(w, string(body))
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	refuse := s.refuse
	s.mu.Unlock()
	s.Asked <- struct{}{}
	switch {
	case refuse != 0:
		reasons := map[int]metav1.StatusReason{401: "Unauthorized", 403: "Forbidden"}
		Respond(w, fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"refused","code":%d}`, reasons[refuse], refuse))
		return
	case s.Handle != nil && s.Handle(w, r):
		return
	case s.authorize(w, r):
		return
	}
	resource, namespace, name, subresource := parse(r.URL.Path)
	switch {
	case r.Method == http.MethodPost && subresource == "eviction":
		s.evict(w, namespace, name)
	case r.Method == http.MethodDelete && resource == "pods":
		s.deletePod(w, r, namespace, name)
	case r.Method == http.MethodPost && resource == "events":
		w.WriteHeader(http.StatusCreated)
		io.WriteString(w, `{"kind":"Event","apiVersion":"v1"}`)
	case r.Method == http.MethodPost && resource == "selfsubjectaccessreviews":
		s.review(w, r)
	case r.Method == http.MethodPost && resource == "evictionrequests":
		s.create(w, r, &lifecyclev1alpha1.EvictionRequest{})
	case r.Method == http.MethodDelete && (resource == "evictionrequests" || resource == "jobs"):
		s.remove(w, resource, namespace, name)
	case r.Method == http.MethodGet && name != "":
		s.get(w, resource, namespace, name)
	case r.Method == http.MethodPatch:
		s.patch(w, r, resource, namespace, name)
	case r.Method == http.MethodGet && r.URL.Query().Get("watch") != "":
		s.watch(w, r, selection(r, resource, namespace))
	case r.Method == http.MethodGet:
		s.list(w, selection(r, resource, namespace))
	default:
		http.Error(w, "not a request this server knows", http.StatusNotImplemented)
	}
}

// parse takes /api/v1/nodes/n1 or /apis/policy/v1/namespaces/default/poddisruptionbudgets apart.
func parse(path string) (resource, namespace, name, subresource string) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		parts = parts[2:]
	} else {
		parts = parts[3:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	parts = append(parts, "", "", "")
	return parts[0], namespace, parts[1], parts[2]
}

// stream is a watch under way, or the selection of a list.
type stream struct {
	resource, namespace, fields, labels string
	events                              chan string
}

func selection(r *http.Request, resource, namespace string) *stream {
	q := r.URL.Query()
	return &stream{resource: resource, namespace: namespace, fields: q.Get("fieldSelector"), labels: q.Get("labelSelector")}
}

func (st *stream) selects(o Object) bool {
	resource, set := describe(o)
	if resource != st.resource || st.namespace != "" && o.GetNamespace() != st.namespace {
		return false
	}
	selector, err := fields.ParseSelector(st.fields)
	labelled, errLabels := labels.Parse(st.labels)
	return err == nil && errLabels == nil && selector.Matches(set) && labelled.Matches(labels.Set(o.GetLabels()))
}

func describe(o Object) (resource string, set fields.Set) {
	set = fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	switch o := o.(type) {
	case *corev1.Node:
		return "nodes", set
	case *corev1.Pod:
		set["spec.nodeName"] = o.Spec.NodeName
		return "pods", set
	case *policyv1.PodDisruptionBudget:
		return "poddisruptionbudgets", set
	case *appsv1.DaemonSet:
		return "daemonsets", set
	case *lifecyclev1alpha1.EvictionRequest:
		return "evictionrequests", set
	case *lifecyclev1alpha1.Eviction:
		return "evictions", set
	case *batchv1.Job:
		return "jobs", set
	case *coordinationv1.Lease:
		return "leases", set
	}
	panic(fmt.Sprintf("no resource for %T", o))
}

func keyOf(o Object) string {
	resource, _ := describe(o)
	return resource + "/" + o.GetNamespace() + "/" + o.GetName()
}

var kinds = map[string]schema.GroupVersionKind{
	"nodes": {Version: "v1", Kind: "Node"}, "pods": {Version: "v1", Kind: "Pod"},
	"poddisruptionbudgets": {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	"evictionrequests":     lifecyclev1alpha1.SchemeGroupVersion.WithKind("EvictionRequest"),
	"evictions":            lifecyclev1alpha1.SchemeGroupVersion.WithKind("Eviction"),
	"daemonsets":           {Group: "apps", Version: "v1", Kind: "DaemonSet"},
	"leases":               {Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
	"jobs":                 {Group: "batch", Version: "v1", Kind: "Job"},
}

// encode writes an object with its kind.
func encode(o Object) string {
	o = o.DeepCopyObject().(Object)
	resource, _ := describe(o)
	o.GetObjectKind().SetGroupVersionKind(kinds[resource])
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func (s *Server) send(kind string, o Object) {
	c := change{version: s.version, kind: kind, object: o}
	s.changes = append(s.changes, c)
	for st := range s.streams {
		st.send(c)
	}
}

func (st *stream) send(c change) {
	if st.selects(c.object) {
		st.events <- fmt.Sprintf(`{"type":%q,"object":%s}`, c.kind, encode(c.object))
	}
}
