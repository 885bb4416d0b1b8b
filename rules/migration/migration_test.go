package migration

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/schedule"
)

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// given is what all tests give.
func given(t *testing.T, limits schedule.Limits) Given {
	t.Helper()
	file, err := os.ReadFile("testdata/maintenance.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return Given{Limits: limits, File: file, Environment: profile.Environment{AllowUnset: true}}
}

// clusterOf is the cluster of a test's file, in which a system reads what it reads.
func clusterOf(t *testing.T, name string, s System) Cluster {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	c := Cluster{At: noon, Objects: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
	for _, kind := range s.Reads() {
		c.Objects[kind] = []unstructured.Unstructured{}
	}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal(part, &o.Object); err != nil {
			t.Fatal(err)
		}
		if o.GetKind() == "Node" {
			var n corev1.Node
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &n); err != nil {
				t.Fatal(err)
			}
			c.Nodes = append(c.Nodes, n)
			continue
		}
		kind := o.GroupVersionKind().GroupVersion().WithResource(strings.ToLower(o.GetKind()) + "s")
		if _, read := c.Objects[kind]; !read {
			t.Fatalf("nobody reads %s", kind)
		}
		c.Objects[kind] = append(c.Objects[kind], o)
	}
	return c
}

// Each system's report is as its file in testdata has it: UPDATE_GOLDEN=1 writes them.
func TestReports(t *testing.T) {
	for _, name := range Names() {
		s, err := Of(name, given(t, schedule.Limits{}))
		if err != nil {
			t.Fatal(err)
		}
		got, err := yaml.Marshal(s.Report(clusterOf(t, name, s)))
		if err != nil {
			t.Fatal(err)
		}
		file := "testdata/" + name + ".report.yaml"
		if os.Getenv("UPDATE_GOLDEN") != "" {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
	}
	if _, err := Of("nothing", Given{}); err == nil || !strings.Contains(err.Error(), "kured") {
		t.Errorf("%v", err)
	}
}

// A cluster without the system says so, and what to look at.
func TestReportsOfNothing(t *testing.T) {
	for _, name := range Names() {
		s, err := Of(name, Given{})
		if err != nil {
			t.Fatal(err)
		}
		r := s.Report(Cluster{At: noon})
		if len(r.Problems) == 0 || len(r.Claims) > 0 || len(r.Take) == 0 || len(r.Back) == 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
