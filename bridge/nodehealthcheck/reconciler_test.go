package nodehealthcheck

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/health/nhc"
	"drydock.dev/drydock/rules/spec"
)

func anObject(status map[string]any) *unstructured.Unstructured {
	o := New()
	o.SetName("gpu")
	o.SetUID("uid-1")
	o.Object["spec"] = map[string]any{"minHealthy": int64(1), "pauseRequests": []any{}}
	o.Object["status"] = status
	return o
}

func TestTheInputNamesTheObject(t *testing.T) {
	input, err := inputOf(anObject(nil))
	want := spec.Object{Resource: "nodehealthchecks.remediation.medik8s.io", Name: "gpu", UID: "uid-1"}
	if err != nil || input["object"] != want || len(input) != 2 {
		t.Errorf("%v: %v", err, input)
	}
	if _, err := inputOf(New()); err == nil {
		t.Error("an object without a name is read")
	}
}

// What has not changed is not written, and what the operator has left in a status goes.
func TestAStatusIsWrittenWhereItChanges(t *testing.T) {
	object := anObject(map[string]any{
		"phase": "Enabled", "inFlightRemediations": map[string]any{"worker-01": "2026-01-01T00:00:00Z"}, "lastUpdateTime": "2026-01-01T00:00:00Z",
		"unhealthyNodes": []any{map[string]any{"name": "worker-01"}},
	})
	c := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithStatusSubresource(New()).WithObjects(object).Build()
	show := func(s nhc.Status) (map[string]any, string) {
		t.Helper()
		o := &mirrored{Reconciler: &Reconciler{Kube: c, Events: events.NewFakeRecorder(10)}, object: New()}
		key := kube.ObjectKeyFromObject(object)
		if err := c.Get(t.Context(), key, o.object); err != nil {
			t.Fatal(err)
		}
		if err := o.show(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		now := New()
		if err := c.Get(t.Context(), key, now); err != nil {
			t.Fatal(err)
		}
		status, _, err := unstructured.NestedMap(now.Object, "status")
		if err != nil {
			t.Fatal(err)
		}
		return status, now.GetResourceVersion()
	}
	s := nhc.Status{ObservedNodes: 2, HealthyNodes: 2, Phase: health.PhaseEnabled, Reason: "all is well"}
	status, version := show(s)
	_, inFlight := status["inFlightRemediations"]
	_, ill := status["unhealthyNodes"]
	if inFlight || ill || status["observedNodes"] != int64(2) || status["lastUpdateTime"] == "2026-01-01T00:00:00Z" {
		t.Errorf("it shows %v", status)
	}
	if _, again := show(s); again != version {
		t.Error("a status that has not changed was written")
	}
	s.HealthyNodes = 1
	if status, again := show(s); again == version || status["healthyNodes"] != int64(1) {
		t.Errorf("it shows %v", status)
	}
}
