package clusterapi_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s/clusterapi"
	"drydock.dev/drydock/k8s/k8stest"
)

// machine is one Machine that a server has, and whether the API is served.
type machine struct {
	mu      sync.Mutex
	served  bool
	value   *string
	version int
	// uid is that of the node which it names.
	uid string
	// before is done before a patch is taken.
	before func()
}

func (m *machine) set(value *string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value = value
	m.version++
}

func (m *machine) get() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.value == nil {
		return "none"
	}
	return *m.value
}

func (m *machine) object() map[string]any {
	annotations := map[string]string{"other": "x"}
	if m.value != nil {
		annotations[clusterapi.SkipAnnotation] = *m.value
	}
	return map[string]any{
		"metadata": map[string]any{"name": "m1", "namespace": "ns", "resourceVersion": strconv.Itoa(m.version), "annotations": annotations},
		"status":   map[string]any{"nodeRef": map[string]any{"name": "n1", "uid": cmp.Or(m.uid, "uid-1")}},
	}
}

func (m *machine) handle(w http.ResponseWriter, r *http.Request) bool {
	if !strings.HasPrefix(r.URL.Path, "/apis/cluster.x-k8s.io") {
		return false
	}
	if r.Method == http.MethodPatch && m.before != nil {
		m.before()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	answer := func(status int, body any) bool {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
		return true
	}
	failure := func(status int, reason string) bool {
		return answer(status, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": status})
	}
	switch path := r.URL.Path; {
	case !m.served:
		return failure(http.StatusNotFound, "NotFound")
	case path == "/apis/cluster.x-k8s.io":
		return answer(http.StatusOK, map[string]any{"kind": "APIGroup", "apiVersion": "v1", "preferredVersion": map[string]string{"version": "v1beta2"}})
	case path == "/apis/cluster.x-k8s.io/v1beta2/machines":
		return answer(http.StatusOK, map[string]any{"metadata": map[string]any{}, "items": []any{m.object()}})
	case path != "/apis/cluster.x-k8s.io/v1beta2/namespaces/ns/machines/m1":
		return failure(http.StatusNotFound, "NotFound")
	case r.Method == http.MethodPatch:
		var patch struct {
			Metadata struct {
				ResourceVersion string             `json:"resourceVersion"`
				Annotations     map[string]*string `json:"annotations"`
			} `json:"metadata"`
		}
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &patch) != nil || patch.Metadata.ResourceVersion != strconv.Itoa(m.version) {
			return failure(http.StatusConflict, "Conflict")
		}
		m.value = patch.Metadata.Annotations[clusterapi.SkipAnnotation]
		m.version++
	}
	return answer(http.StatusOK, m.object())
}

func serve(t *testing.T, m *machine, objects ...k8stest.Object) (*k8stest.Server, clusterapi.Machines) {
	s := k8stest.New(objects...)
	s.Handle = m.handle
	return s, clusterapi.Machines{Client: s.Client(t)}
}

func TestAMachineIsLeftAloneWhileItsNodeIsHeld(t *testing.T) {
	m := &machine{served: true}
	server, machines := serve(t, m, activitytest.HeldNode())
	for _, run := range []string{"run-1", "run-1", "run-2"} {
		if err := machines.Skip(t.Context(), "ns/m1", activitytest.Node("n1"), run); err != nil || m.get() != "drydock/"+run {
			t.Fatalf("%s: %v", m.get(), err)
		}
	}
	if found, err := machines.Skipped(t.Context()); err != nil || len(found) != 1 || found[0] != (clusterapi.Skipped{Machine: "ns/m1", Node: "n1"}) {
		t.Errorf("found %v: %v", found, err)
	}
	if resumed, err := machines.Resume(t.Context(), "ns/m1", "n1"); err != nil || resumed || m.get() != "drydock/run-2" {
		t.Errorf("while it is held: %s, %t, %v", m.get(), resumed, err)
	}
	server.Set(activitytest.Node("n1"))
	// Another maintenance holds the node just then.
	once := true
	m.before = func() {
		if once {
			once = false
			server.Set(activitytest.HeldNode())
			m.set(new("drydock/run-3"))
		}
	}
	if resumed, err := machines.Resume(t.Context(), "ns/m1", "n1"); err != nil || resumed || m.get() != "drydock/run-3" {
		t.Errorf("held meanwhile: %s, %t, %v", m.get(), resumed, err)
	}
	server.Delete(activitytest.HeldNode())
	if resumed, err := machines.Resume(t.Context(), "ns/m1", "n1"); err != nil || !resumed || m.get() != "none" {
		t.Errorf("given back: %s, %t, %v", m.get(), resumed, err)
	}
	if resumed, err := machines.Resume(t.Context(), "ns/m1", "n1"); err != nil || resumed {
		t.Errorf("once more: %t, %v", resumed, err)
	}
}

func TestWhatSomebodyElseToldClusterAPIStays(t *testing.T) {
	m := &machine{served: true, value: new("")}
	_, machines := serve(t, m)
	if err := machines.Skip(t.Context(), "ns/m1", activitytest.Node("n1"), "run"); err != nil || m.get() != "" {
		t.Errorf("%s, %v", m.get(), err)
	}
	if _, err := machines.Resume(t.Context(), "ns/m1", "n1"); err != nil || m.get() != "" {
		t.Errorf("%s, %v", m.get(), err)
	}
}

func TestWhereThereIsNoMachine(t *testing.T) {
	for name, served := range map[string]bool{"no such one": true, "no Cluster API": false} {
		_, machines := serve(t, &machine{served: served})
		err1 := machines.Skip(t.Context(), "ns/m2", activitytest.Node("n1"), "run")
		_, err2 := machines.Resume(t.Context(), "ns/m2", "n1")
		found, err3 := machines.Skipped(t.Context())
		if err1 != nil || err2 != nil || err3 != nil || len(found) > 0 {
			t.Errorf("%s: %v, %v, %v, %v", name, err1, err2, err3, found)
		}
	}
}

func TestMachineOf(t *testing.T) {
	for want, annotations := range map[string]map[string]string{
		"ns/m1": {clusterapi.MachineAnnotation: "m1", clusterapi.NamespaceAnnotation: "ns"},
		"":      {clusterapi.MachineAnnotation: "../x", clusterapi.NamespaceAnnotation: "ns"},
	} {
		node := activitytest.Node("n1")
		node.Annotations = annotations
		if got := clusterapi.MachineOf(node); got != want {
			t.Errorf("%v: %q", annotations, got)
		}
	}
	if got := clusterapi.MachineOf(activitytest.Node("n1")); got != "" {
		t.Errorf("of none: %q", got)
	}
}

func TestAMachineOfAnotherNodeIsNotTouched(t *testing.T) {
	m := &machine{served: true, uid: "uid-other"}
	_, machines := serve(t, m, activitytest.HeldNode())
	if err := machines.Skip(t.Context(), "ns/m1", activitytest.Node("n2"), "run"); err == nil || m.get() != "none" {
		t.Errorf("%s, %v", m.get(), err)
	}
	m.set(new("drydock/run")) // of the maintenance of n1, which holds it
	if resumed, err := machines.Resume(t.Context(), "ns/m1", "n2"); err != nil || resumed || m.get() != "drydock/run" {
		t.Errorf("%s, %t, %v", m.get(), resumed, err)
	}
}

func TestAMachineNamesItsNode(t *testing.T) {
	node := activitytest.Node("n1")
	node.Spec.ProviderID = "cloud://1"
	for of, want := range map[clusterapi.NodeOf]bool{
		{UID: "uid-1"}:                        true,
		{UID: "uid-0", Name: "n1"}:            false,
		{Name: "n1"}:                          false,
		{Name: "n1", ProviderID: "cloud://1"}: true,
		{Name: "n2", ProviderID: "cloud://1"}: false,
		{Name: "n1", ProviderID: "cloud://2"}: false,
		{}:                                    false,
	} {
		if got := of.Is(node); got != want {
			t.Errorf("%+v: %t", of, got)
		}
	}
	if node.Spec.ProviderID = ""; (clusterapi.NodeOf{Name: "n1"}).Is(node) {
		t.Error("by its name alone")
	}
}
