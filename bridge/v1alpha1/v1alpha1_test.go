package v1alpha1_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/rules/plan"
)

func filled() []runtime.Object {
	meta := metav1.ObjectMeta{Name: "kernel", Labels: map[string]string{"a": "b"}}
	spec := v1alpha1.Spec{Raw: json.RawMessage(`{"node":"n1","cordon":false,"priority":0}`)}
	since := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	shared := v1alpha1.Shared{Decision: &v1alpha1.Decision{Message: "approve", By: "amy"}, Conditions: []metav1.Condition{{Type: v1alpha1.Ready, Status: metav1.ConditionTrue, LastTransitionTime: since}}}
	maintenance := v1alpha1.NodeMaintenance{ObjectMeta: meta, Spec: spec, Status: v1alpha1.NodeMaintenanceStatus{
		Shared: shared, Since: &since, Requestors: []v1alpha1.Requestor{{Name: "kernel", Done: true}}, Drain: &v1alpha1.Drain{Ended: 3},
	}}
	aPlan := v1alpha1.MaintenancePlan{ObjectMeta: meta, Spec: spec, Status: v1alpha1.MaintenancePlanStatus{
		Shared: shared, Since: &since, Counts: &plan.Counts{Total: 3}, Tier: new(1), Drain: &api.DrainCounts{Held: 3},
	}}
	check := v1alpha1.HealthCheck{ObjectMeta: meta, Spec: spec, Status: v1alpha1.HealthCheckStatus{
		Shared: shared, Counts: &api.HealthCounts{Observed: 3},
	}}
	return []runtime.Object{
		&maintenance, &aPlan, &check,
		&v1alpha1.NodeMaintenanceList{Items: []v1alpha1.NodeMaintenance{maintenance}},
		&v1alpha1.MaintenancePlanList{Items: []v1alpha1.MaintenancePlan{aPlan}},
		&v1alpha1.HealthCheckList{Items: []v1alpha1.HealthCheck{check}},
	}
}

// TestCopiesAreEqualAndShareNothing has each field that a copy could share filled.
func TestCopiesAreEqualAndShareNothing(t *testing.T) {
	for _, object := range filled() {
		copied := object.DeepCopyObject()
		if diff := cmp.Diff(object, copied); diff != "" {
			t.Errorf("%T: %s", object, diff)
		}
		shared(t, reflect.TypeOf(object).Elem().Name(), reflect.ValueOf(object), reflect.ValueOf(copied))
	}
}

// shared refuses what two values have in common, and what is empty: it would hide that.
func shared(t *testing.T, path string, a, b reflect.Value) {
	t.Helper()
	switch a.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if a.Type() == reflect.TypeFor[*time.Location]() {
			return
		}
		if !a.IsNil() && a.Pointer() == b.Pointer() {
			t.Errorf("%s is shared", path)
		}
	}
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() {
			shared(t, path, a.Elem(), b.Elem())
		}
	case reflect.Slice:
		for i := range a.Len() {
			shared(t, path+"[]", a.Index(i), b.Index(i))
		}
	case reflect.Struct:
		for i := range a.NumField() {
			field := a.Type().Field(i)
			kind := field.Type.Kind()
			if own := field.PkgPath == "" && a.Type().PkgPath() == reflect.TypeFor[v1alpha1.Spec]().PkgPath(); own &&
				(kind == reflect.Pointer || kind == reflect.Slice) && a.Field(i).IsNil() {
				t.Errorf("%s.%s is empty: the test has to fill it", path, field.Name)
			}
			shared(t, path+"."+field.Name, a.Field(i), b.Field(i))
		}
	}
}

// TestSpecsStayAsTheyAreWritten reads and writes objects as a client does.
func TestSpecsStayAsTheyAreWritten(t *testing.T) {
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	const text = `{"kind":"NodeMaintenance","apiVersion":"drydock.dev/v1alpha1","metadata":{"name":"kernel"},"spec":{"cordon":false,"node":"n1","priority":0,"windows":[]}}`
	object, _, err := serializer.NewCodecFactory(s).UniversalDeserializer().Decode([]byte(text), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(object)
	if err != nil || string(got) != text {
		t.Errorf("%v: %s, want %s", err, got, text)
	}
	if got, err = json.Marshal(v1alpha1.NodeMaintenance{}); err != nil || string(got) != `{"spec":{}}` {
		t.Errorf("%v: an empty object is %s", err, got)
	}
}

func TestInput(t *testing.T) {
	for text, want := range map[string]string{
		``:                                  `{"requestor":"kernel"}`,
		`{"node":"n1","requestedBy":"ann"}`: `{"node":"n1","requestor":"kernel"}`,
		`{"requestor":"ci","cordon":false}`: `{"cordon":false,"requestor":"ci"}`,
	} {
		input, origin, err := v1alpha1.Spec{Raw: json.RawMessage(text)}.Input(map[string]string{"requestor": "kernel"})
		if err != nil || string(input) != want {
			t.Errorf("%s: %s, %v", text, input, err)
		}
		if (origin.RequestedBy == "ann") != (text == `{"node":"n1","requestedBy":"ann"}`) {
			t.Errorf("%s: requested by %q", text, origin.RequestedBy)
		}
	}
	if _, _, err := (v1alpha1.Spec{Raw: json.RawMessage(`[]`)}).Input(nil); err == nil {
		t.Error("a list is taken")
	}
}
