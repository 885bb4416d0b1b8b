package plan_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/plan"
)

func TestAPlanMatchesByNameAndLabels(t *testing.T) {
	nodes := []corev1.Node{
		{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"pool": "gpu"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "b", Labels: map[string]string{"pool": "gpu"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
	}
	for input, want := range map[string]string{
		`{"all":true}`:                        "a b c",
		`{"all":true,"exclude":["b","x"]}`:    "a c",
		`{"nodes":["c","x"]}`:                 "c",
		`{"selector":"pool=gpu"}`:             "a b",
		`{"selector":"!pool"}`:                "c",
		`{"nodes":["a","c"],"exclude":["a"]}`: "c",
		`{"nodeSelector":{"nodeSelectorTerms":[{"matchFields":[{"key":"metadata.name","operator":"In","values":["c"]}]},{"matchExpressions":[{"key":"pool","operator":"Exists"}]}]},"exclude":["a"]}`: "b c",
	} {
		p, err := plan.Decode("kernel", []byte(input))
		if err != nil {
			t.Fatal(err)
		}
		matches, err := p.Matcher()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range nodes {
			if matches(&nodes[i]) {
				got = append(got, nodes[i].Name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s matches %v, want %s", input, got, want)
		}
	}
	for _, p := range []plan.Selection{{Selector: "a in"}, {NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "Like"}}},
	}}}} {
		if _, err := p.Matcher(); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

func TestWarningsOfAPlan(t *testing.T) {
	for want, r := range map[string]plan.Reach{
		"": {All: 3, Matching: 2, ControlPlanes: 2, MatchingControlPlane: 1},
		"these are all 3 nodes of the cluster|every control-plane node is among them (1)": {All: 3, Matching: 3, ControlPlanes: 1, MatchingControlPlane: 1},
		"there are no nodes of these names: x, y and 2 more":                              {All: 3, Matching: 1, Missing: []string{"x", "y"}, MoreMissing: 2},
	} {
		if got := r.Warnings(); !slices.Equal(got, slices.DeleteFunc(strings.Split(want, "|"), func(s string) bool { return s == "" })) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
