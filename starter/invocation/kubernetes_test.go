package invocation

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

func TestControlPlaneNodes(t *testing.T) {
	for label, want := range map[string]bool{
		"node-role.kubernetes.io/control-plane": true, "node-role.kubernetes.io/master": true, "node-role.kubernetes.io/worker": false,
	} {
		if got := (Node{Labels: map[string]string{label: ""}}).ControlPlane(); got != want {
			t.Errorf("%s: %v", label, got)
		}
	}
}

// TestNodesThatAreCheckedAreReturned with what they say of themselves, so that nobody has to look at them twice.
func TestNodesThatAreCheckedAreReturned(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch _, name, _ := strings.Cut(r.URL.Path, "/nodes/"); name {
		case "worker-01":
			io.WriteString(w, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"worker-01","annotations":{"a":"b"},"labels":{"c":"d"}}}`)
		case "away":
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		}
	}))
	defer server.Close()
	api, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	k := &Nodes{nodes: api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"})}
	found, err := k.findAll(t.Context(), []string{"worker-01", "away", "worker-02"})
	if err != nil || len(found) != 1 || found[0].Name != "worker-01" || found[0].Annotations["a"] != "b" || found[0].Labels["c"] != "d" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := k.findAll(t.Context(), []string{"worker-01", "worker-02"}); err == nil || !strings.Contains(err.Error(), "worker-02") {
		t.Errorf("error = %v", err)
	}
}
