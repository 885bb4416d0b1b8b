package kep

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/bridge/kep/objects"
	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/spec"
)

const selector = `"nodeSelector":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"rack","operator":"In","values":["r12"]}]}]}`

func object(name, spec string, annotations map[string]string) *objects.NodeMaintenance {
	return &objects.NodeMaintenance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Annotations: annotations}, Spec: v1alpha1.Spec{Raw: []byte(spec)}}
}

func TestAnObjectAsksForAPlan(t *testing.T) {
	o := object("firmware", `{`+selector+`,"stage":"Cordon","drainPlan":[{"podPriority":5,"podType":"Default"}],"reason":"firmware 7"}`,
		map[string]string{"any": "other", plan.IncludeAnnotation: "Default"})
	input, complete, err := inputOf(Kind{}, o)
	if err != nil || complete {
		t.Fatal(complete, err)
	}
	text, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Decode("firmware", text)
	if err != nil {
		t.Fatal(err)
	}
	want := spec.Object{Resource: "nodemaintenances.kep4212.drydock.dev", Name: "firmware", UID: "uid-1"}
	if p.Object == nil || *p.Object != want || !p.Together() || p.Stage != api.StageCordon || p.Reason != "firmware 7" || p.NodeSelector == nil {
		t.Errorf("it asks for %+v", p)
	}
	if tiers := p.DrainPlan; tiers == nil || len(tiers.Tiers) != 1 || len(tiers.Include) != 1 {
		t.Errorf("its drain plan is %+v", tiers)
	}
}

func TestAnObjectInStageComplete(t *testing.T) {
	o := object("firmware", `{`+selector+`,"stage":"Complete"}`, nil)
	drydock := client.New(nil, client.Options{})
	if _, err := (Kind{}).Read(o, drydock); err == nil || !strings.Contains(err.Error(), "nothing was begun") {
		t.Errorf("one that has begun nothing: %v", err)
	}
	o.Status.RunID = "first"
	if _, err := (Kind{}).Read(o, drydock); err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrongWithAnObject(t *testing.T) {
	for says, o := range map[string]*objects.NodeMaintenance{
		"spec.nodeSelector: required":    object("firmware", `{}`, nil),
		"nodeSelectorTerms[0]: is empty": object("firmware", `{"nodeSelector":{"nodeSelectorTerms":[{}]}}`, nil),
		"drainPlan":                      object("firmware", `{`+selector+`,"drainPlan":[{"podPriority":5},{"podPriority":5}]}`, nil),
		"surprise":                       object("firmware", `{`+selector+`,"surprise":1}`, nil),
		"stage":                          object("firmware", `{`+selector+`,"stage":"Later"}`, nil),
		"metadata.annotations[drydock.dev/include]": object("firmware", `{`+selector+`}`, map[string]string{plan.IncludeAnnotation: "Pods"}),
		"53": object(strings.Repeat("a", 54), `{`+selector+`}`, nil),
	} {
		if _, err := (Kind{}).Read(o, client.New(nil, client.Options{})); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", o.Spec.Raw, err, says)
		}
	}
}
