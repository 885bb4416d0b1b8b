package k8stest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (s *Server) list(w http.ResponseWriter, selection *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []string
	for _, key := range slices.Sorted(maps.Keys(s.objects)) {
		if o := s.objects[key]; selection.selects(o) {
			items = append(items, encode(o))
		}
	}
	w.Header().Set("Content-Type", "application/json")
	kind := kinds[selection.resource]
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`,
		kind.Kind, kind.GroupVersion(), s.version, strings.Join(items, ","))
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, st *stream) {
	st.events = make(chan string, 10000)
	s.mu.Lock()
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, o := range s.objects {
			if st.selects(o) {
				st.events <- fmt.Sprintf(`{"type":"ADDED","object":%s}`, encode(o))
			}
		}
		end := map[string]Object{"nodes": &corev1.Node{}, "pods": &corev1.Pod{}, "poddisruptionbudgets": &policyv1.PodDisruptionBudget{},
			"evictionrequests": &lifecyclev1alpha1.EvictionRequest{}, "evictions": &lifecyclev1alpha1.Eviction{}}[st.resource]
		end.SetResourceVersion(strconv.Itoa(s.version))
		end.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
		st.events <- fmt.Sprintf(`{"type":"BOOKMARK","object":%s}`, encode(end))
	} else if after, err := strconv.Atoi(r.URL.Query().Get("resourceVersion")); err == nil {
		for _, c := range s.changes {
			if c.version > after {
				st.send(c)
			}
		}
	}
	s.streams[st] = true
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	for {
		select {
		case event, open := <-st.events:
			if !open {
				return
			}
			fmt.Fprintln(w, event)
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			s.mu.Lock()
			delete(s.streams, st)
			s.mu.Unlock()
			return
		}
	}
}

func (s *Server) get(w http.ResponseWriter, resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[resource+"/"+namespace+"/"+name]
	if !ok {
		respondError(w, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, encode(o))
}

// create keeps a new object, and refuses a second one of the same name.
func (s *Server) create(w http.ResponseWriter, r *http.Request, o Object) {
	if err := json.NewDecoder(r.Body).Decode(o); err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.objects[keyOf(o)]; there {
		resource, _ := describe(o)
		respondError(w, apierrors.NewAlreadyExists(schema.GroupResource{Resource: resource}, o.GetName()))
		return
	}
	o.SetCreationTimestamp(metav1.Now())
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	io.WriteString(w, encode(s.set(o)))
}

func (s *Server) remove(w http.ResponseWriter, resource, namespace, name string) {
	s.mu.Lock()
	o, ok := s.objects[resource+"/"+namespace+"/"+name]
	s.mu.Unlock()
	if !ok {
		respondError(w, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name))
		return
	}
	s.Delete(o)
	Respond(w, `{"kind":"Status","apiVersion":"v1","status":"Success","code":200}`)
}

// patch applies a merge patch or a JSON patch, and refuses one that is for another version.
func (s *Server) patch(w http.ResponseWriter, r *http.Request, resource, namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[resource+"/"+namespace+"/"+name]
	if !ok {
		respondError(w, apierrors.NewNotFound(schema.GroupResource{Resource: resource}, name))
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(err)
	}
	before := []byte(encode(o))
	var after []byte
	if strings.Contains(r.Header.Get("Content-Type"), "json-patch") {
		var operations jsonpatch.Patch
		if operations, err = jsonpatch.DecodePatch(body); err == nil {
			after, err = operations.Apply(before)
		}
	} else {
		after, err = jsonpatch.MergePatch(before, body)
	}
	if err != nil {
		respondError(w, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false))
		return
	}
	changed := o.DeepCopyObject().(Object)
	switch changed := changed.(type) {
	case *corev1.Node:
		*changed = corev1.Node{}
	case *corev1.Pod:
		*changed = corev1.Pod{}
	case *lifecyclev1alpha1.EvictionRequest:
		*changed = lifecyclev1alpha1.EvictionRequest{}
	}
	if err := json.Unmarshal(after, changed); err != nil {
		panic(err)
	}
	if changed.GetResourceVersion() != o.GetResourceVersion() || changed.GetUID() != o.GetUID() {
		respondError(w, apierrors.NewConflict(schema.GroupResource{Resource: resource}, name, errors.New("the object has been modified")))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, encode(s.set(changed)))
}

// evict lets a pod go at once.
func (s *Server) evict(w http.ResponseWriter, namespace, name string) {
	pod := s.Pod(namespace, name)
	if pod == nil {
		respondError(w, apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, name))
		return
	}
	s.Delete(pod)
	Respond(w, `{"kind":"Status","apiVersion":"v1","status":"Success","code":201}`)
}

// deletePod deletes a pod at once, and notes with which grace period that was asked for.
func (s *Server) deletePod(w http.ResponseWriter, r *http.Request, namespace, name string) {
	var options metav1.DeleteOptions
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
		panic(err)
	}
	grace := "own"
	if options.GracePeriodSeconds != nil {
		grace = strconv.FormatInt(*options.GracePeriodSeconds, 10)
	}
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("deleted %s/%s grace %s", namespace, name, grace))
	s.mu.Unlock()
	s.evict(w, namespace, name)
}
