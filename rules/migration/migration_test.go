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

// What would not mean the same is a problem, and there is no step that creates it.
func TestWhatCannotGoOverIsAProblem(t *testing.T) {
	plan := func(name, namespace, spec string) string {
		return "apiVersion: upgrade.cattle.io/v1\nkind: Plan\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {nodeSelector: {matchLabels: {a: b}}, upgrade: {image: a}, " + spec + "}"
	}
	kured := func(name, args string) string {
		return "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: " + name + ", namespace: kube-system}\nspec: {template: {spec: {containers: [{image: kured, args: [" + args + "]}]}}}"
	}
	for about, c := range map[string]struct {
		system  string
		objects []string
		problem string
		// files are the names of the files that are written, creates is how many plans are created.
		files   string
		creates int
	}{
		"a Plan that is held":          {UpgradeController, []string{plan("os", "a", "concurrency: 0")}, "concurrency: 0 applies it to no node", "", 0},
		"a window that never opens":    {UpgradeController, []string{plan("os", "a", "concurrency: 1, window: {startTime: '1:00', endTime: '2:00'}")}, "days, startTime and endTime", "", 0},
		"two Plans of a name":          {UpgradeController, []string{plan("os", "a", "concurrency: 1"), plan("os", "b", "concurrency: 1")}, "", "a-os.yaml job-a-os.yaml b-os.yaml job-b-os.yaml worker.yaml", 2},
		"a Plan by the name of a file": {UpgradeController, []string{plan("worker", "a", "concurrency: 1")}, "another file has that name", "worker.yaml job-worker.yaml", 1},
		"two kureds":                   {Kured, []string{kured("one", ""), kured("two", "--start-time=1:00")}, "", "reboots-kube-system-one.yaml reboots-kube-system-two.yaml worker.yaml", 2},
		"several selectors of pods":    {Kured, []string{kured("one", "--blocking-pod-selector=a=b, --blocking-pod-selector=c=d")}, "a label that they share", "reboots.yaml worker.yaml", 0},
	} {
		s, err := Of(c.system, Given{})
		if err != nil {
			t.Fatal(err)
		}
		cluster := Cluster{At: noon, Objects: map[schema.GroupVersionResource][]unstructured.Unstructured{}}
		for _, text := range c.objects {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
				t.Fatal(err)
			}
			cluster.Objects[s.Reads()[0]] = append(cluster.Objects[s.Reads()[0]], o)
		}
		r := s.Report(cluster)
		var files []string
		for _, input := range r.Inputs {
			files = append(files, input.File)
		}
		creates := 0
		for _, step := range r.Take {
			if strings.HasPrefix(step, "drydock plan create") && strings.HasSuffix(step, "--yes") {
				creates++
			}
		}
		if !strings.Contains(strings.Join(r.Problems, "; "), c.problem) || strings.Join(files, " ") != c.files || creates != c.creates {
			t.Errorf("%s: %q, files %q, %d plans", about, r.Problems, files, creates)
		}
	}
}
