// Package chart_test holds the chart to what it says: rendered, against a real API server, installed, and worked under.
package chart_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/deploy/chart/test/rendered"
)

const chartDir = ".."

func loadChart(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// valueSets are the files of testdata/values, by name.
func valueSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	files, err := filepath.Glob("testdata/values/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no values to test with: %v", err)
	}
	sets := map[string]map[string]any{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sets[strings.TrimSuffix(filepath.Base(file), ".yaml")] = values(t, string(text))
	}
	return sets
}

func values(t testing.TB, text string) map[string]any {
	t.Helper()
	all := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func render(t testing.TB, values map[string]any) []rendered.Document {
	t.Helper()
	documents, err := rendered.Chart(loadChart(t), rendered.Plain, values)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

var strict = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})

// decode reads a document as what it says it is; a field that there is not is an error.
func decode(t testing.TB, d rendered.Document) runtime.Object {
	t.Helper()
	object, _, err := strict.Decode([]byte(d.Text), nil, nil)
	if err != nil {
		t.Fatalf("%s: %v\n%s", d.Template, err, d.Text)
	}
	return object
}

// find is the only object of a type.
func find[T runtime.Object](t testing.TB, documents []rendered.Document) (one T) {
	t.Helper()
	found := findAll[T](t, documents)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want one", len(found), one)
	}
	return found[0]
}

func findAll[T runtime.Object](t testing.TB, documents []rendered.Document) (found []T) {
	t.Helper()
	for _, d := range documents {
		switch d.Object.GroupVersionKind().Group {
		case "monitoring.coreos.com", "apiextensions.k8s.io": // the API server has their schemas
			continue
		}
		if object, ok := decode(t, d).(T); ok {
			found = append(found, object)
		}
	}
	return found
}

// configuration is the ConfigMap that the worker mounts.
func configuration(t testing.TB, documents []rendered.Document) *corev1.ConfigMap {
	t.Helper()
	for _, one := range findAll[*corev1.ConfigMap](t, documents) {
		if _, ok := one.Data["drydock.yaml"]; ok {
			return one
		}
	}
	t.Fatal("there is no ConfigMap with drydock.yaml")
	return nil
}

func TestLintFindsNothing(t *testing.T) {
	for name, set := range valueSets(t) {
		for _, m := range lint.RunAll(chartDir, set, "drydock").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestBadValuesAreRefusedByName(t *testing.T) {
	c := loadChart(t)
	for text, want := range map[string]string{
		"replicas: many":                                       "/replicas': got string, want integer",
		"replica: 3":                                           "'replica' not allowed",
		"image: {tag: latest}":                                 "image.tag: latest is no version",
		"image: {tag: 'a b'}":                                  "/image/tag'",
		"image: {digest: abc}":                                 "/image/digest'",
		"image: {repository: ''}":                              "/image/repository'",
		"image: {pullPolicy: Now}":                             "/image/pullPolicy'",
		"temporal: {address: temporal.example.com}":            "/temporal/address'",
		"temporal: {address: 'https://temporal.example.com'}":  "/temporal/address'",
		"temporal: {namespace: ''}":                            "/temporal/namespace'",
		"temporal: {tls: {ca: {secret: a}}}":                   "temporal.tls.ca.secret: it has no meaning without temporal.tls.enabled",
		"temporal: {tls: {client: {secret: a}}}":               "temporal.tls.client.secret: it has no meaning without temporal.tls.enabled",
		"temporal: {apiKey: {secret: {name: a}}}":              "/temporal/apiKey/secret': got object, want string",
		"temporal: {apiKey: abc}":                              "/temporal/apiKey': got string, want object",
		"config: {listen: ':9'}":                               "/config': additional properties 'listen' not allowed",
		"config: {schedular: {}}":                              "/config': additional properties 'schedular' not allowed",
		"config: {kubernetes: {kubeconfig: /root/kubeconfig}}": "config.kubernetes.kubeconfig",
		"files: {drydock.yaml: 'a: b'}":                        "files[drydock.yaml]: it is made from config",
		"files: {a/b: c}":                                      "/files': additional properties 'a/b' not allowed",
		"files: {a: {b: c}}":                                   "/files/a': got object, want string",
		"profiles: {a: b}":                                     "/profiles': got object, want string",
		"profiles: a\nconfig: {profiles: {file: b}}":           "config.profiles.file: it is the chart's",
		"secrets: [Channels]":                                  "/secrets/0'",
		"secrets: [a, a]":                                      "/secrets'",
		"env: [{name: A, valeu: b}]":                           "/env/0': additional properties 'valeu' not allowed",
		"port: 70000":                                          "/port'",
		"serviceAccount: {create: false}":                      "serviceAccount.name is required",
		"rbac: {features: [jobs, reboot]}":                     "/rbac/features/1'",
		"rbac: {features: jobs}":                               "/rbac/features': got string, want array",
		"rbac: {create: false, features: [jobs]}":              "rbac.features: they have no meaning without rbac.create",
		"bridge: {enable: true}":                               "/bridge': additional properties 'enable' not allowed",
		"bridge: {admission: true}":                            "/bridge/admission': value must be one of 'all', 'validating', 'existing', 'none'",
		"bridge: {replicas: -1}":                               "/bridge/replicas': minimum: got -1, want 0",
		"podDisruptionBudget: {maxUnavailable: 0}":             "/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1",
		"podDisruptionBudget: {maxUnavailable: 0%}":            "/podDisruptionBudget/maxUnavailable'",
		"podDisruptionBudget: {minAvailable: 1}":               "'minAvailable' not allowed",
		"preStopSeconds: -1":                                   "/preStopSeconds'",
		"priorityClass: {value: 2000000000}":                   "/priorityClass/value'",
		"podAntiAffinity: soft":                                "/podAntiAffinity': value must be one of 'preferred', 'required', 'none'",
		"volumes: [{name: tmp, emptyDir: {}}]":                 "volumes[0].emptyDir",
		"serviceMonitor: {interval: often}":                    "/serviceMonitor/interval'",
		"prometheusRule: {runbookURL: git.example.com}":        "/prometheusRule/runbookURL'",
		"dashboards: {labels: {grafana_dashboard: 1}}":         "/dashboards/labels/grafana_dashboard': got number, want string",
		"dashboards: {namespace: Monitoring}":                  "/dashboards/namespace'",
		"networkPolicy: {enabled: 'yes'}":                      "/networkPolicy/enabled': got string, want boolean",
	} {
		if _, err := rendered.Chart(c, rendered.Plain, values(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", text, err, want)
		}
	}
}

// deploymentOf is the Deployment of a component: worker or bridge.
func deploymentOf(t testing.TB, component string, documents []rendered.Document) *appsv1.Deployment {
	t.Helper()
	for _, d := range findAll[*appsv1.Deployment](t, documents) {
		if d.Labels["app.kubernetes.io/component"] == component {
			return d
		}
	}
	t.Fatalf("there is no Deployment of component %s", component)
	return nil
}

// rawDeployment is the Deployment of the worker, with the fields that no Deployment has.
func rawDeployment(t *testing.T, documents []rendered.Document) *unstructured.Unstructured {
	t.Helper()
	for _, d := range documents {
		if d.Object.GetKind() == "Deployment" {
			return d.Object
		}
	}
	t.Fatal("there is no Deployment")
	return nil
}
