package chart_test

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	auditkinds "drydock.dev/drydock/audit/kinds"
	checkkinds "drydock.dev/drydock/checks/kinds"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/deploy/chart/test/rendered"
	notifykinds "drydock.dev/drydock/notify/kinds"
)

const kubernetesDir = "../../kubernetes"

// Whatever the values, the pod is one that may leave its node, and that gets as little as it needs.
func TestEverySetMakesASoundPod(t *testing.T) {
	for name, set := range valueSets(t) {
		t.Run(name, func(t *testing.T) {
			documents := render(t, set)
			for _, d := range documents {
				if strings.Contains(d.Text, "latest") {
					t.Errorf("%s says latest:\n%s", d.Template, d.Text)
				}
			}
			worker := deploymentOf(t, "worker", documents)
			isSound(t, worker, documents)
			sleep := int64(0)
			if hooks := worker.Spec.Template.Spec.Containers[0].Lifecycle; hooks != nil {
				sleep = hooks.PreStop.Sleep.Seconds
			}
			// What a worker may need is held to its own limits in the worker's tests.
			if grace := *worker.Spec.Template.Spec.TerminationGracePeriodSeconds; grace-sleep != 45 {
				t.Errorf("grace period %d with a preStop hook of %d", grace, sleep)
			}
			for _, b := range findAll[*policyv1.PodDisruptionBudget](t, documents) {
				selects(t, worker, "the budget", b.Spec.Selector.MatchLabels)
				if b.Spec.MaxUnavailable == nil || b.Spec.MaxUnavailable.String() == "0" || b.Spec.MinAvailable != nil {
					t.Errorf("the budget would keep a worker: %+v", b.Spec)
				}
			}
			if enabled, _, _ := unstructured.NestedBool(set, "bridge", "enabled"); enabled {
				isSound(t, deploymentOf(t, "bridge", documents), documents)
			}
		})
	}
}

// isSound holds a Deployment, with the Service and the NetworkPolicy of its name, to what all pods of the chart are.
func isSound(t *testing.T, deployment *appsv1.Deployment, documents []rendered.Document) {
	t.Helper()
	pod, container := deployment.Spec.Template.Spec, deployment.Spec.Template.Spec.Containers[0]
	if !*pod.SecurityContext.RunAsNonRoot || *pod.SecurityContext.RunAsUser == 0 || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("%s: pod security context %+v", deployment.Name, pod.SecurityContext)
	}
	if c := container.SecurityContext; !*c.ReadOnlyRootFilesystem || *c.AllowPrivilegeEscalation || !slices.Equal(c.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%s: security context %+v", deployment.Name, c)
	}
	for _, v := range pod.Volumes {
		if v.EmptyDir != nil {
			t.Errorf("%s: volume %s would keep the pod on its node", deployment.Name, v.Name)
		}
	}
	serves := func(port string) bool {
		return slices.ContainsFunc(container.Ports, func(p corev1.ContainerPort) bool { return p.Name == port })
	}
	for want, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe.HTTPGet.Path != want || !serves(probe.HTTPGet.Port.StrVal) {
			t.Errorf("%s: probe %+v", deployment.Name, probe)
		}
	}
	selects(t, deployment, "the Deployment", deployment.Spec.Selector.MatchLabels)
	services := 0
	for _, s := range findAll[*corev1.Service](t, documents) {
		if s.Name == deployment.Name {
			services++
			selects(t, deployment, "the Service", s.Spec.Selector)
			if port := s.Spec.Ports[0].TargetPort.StrVal; !serves(port) {
				t.Errorf("%s: the Service leads to port %s", deployment.Name, port)
			}
		}
	}
	if services != 1 {
		t.Errorf("%s has %d Services", deployment.Name, services)
	}
	for _, n := range findAll[*networkingv1.NetworkPolicy](t, documents) {
		if n.Name == deployment.Name {
			selects(t, deployment, "the NetworkPolicy", n.Spec.PodSelector.MatchLabels)
		}
	}
}

func selects(t *testing.T, deployment *appsv1.Deployment, what string, selector map[string]string) {
	t.Helper()
	if !labels.SelectorFromSet(selector).Matches(labels.Set(deployment.Spec.Template.Labels)) {
		t.Errorf("%s: %s selects %v, and the pod has %v", deployment.Name, what, selector, deployment.Spec.Template.Labels)
	}
}

// The worker takes the configuration, and finds each file where it is mounted.
func TestTheWorkerTakesTheConfiguration(t *testing.T) {
	for name, set := range valueSets(t) {
		documents := render(t, set)
		c := config.Default()
		text := configuration(t, documents).Data["drydock.yaml"]
		err := config.Parse([]byte(text), &c, config.Kinds{Channels: notifykinds.All(), Checks: checkkinds.All(), Sinks: auditkinds.All()})
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
		worker := deploymentOf(t, "worker", documents).Spec.Template.Spec.Containers[0]
		if want := ":" + itoa(worker.Ports[0].ContainerPort); c.Listen != want {
			t.Errorf("%s: it listens on %q, and the probes ask %q", name, c.Listen, want)
		}
	}
	everything := deploymentOf(t, "worker", render(t, valueSets(t)["everything"])).Spec.Template.Spec
	mounts := map[string]string{}
	for _, m := range everything.Containers[0].VolumeMounts {
		mounts[m.Name] = m.MountPath
	}
	for _, v := range everything.Volumes {
		if v.Secret != nil && mounts[v.Name] != "/run/secrets/"+v.Secret.SecretName {
			t.Errorf("Secret %s is mounted at %q", v.Secret.SecretName, mounts[v.Name])
		}
	}
}

func itoa(n int32) string { return strings.TrimSpace(string(must(json.Marshal(n)))) }

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func environment(t *testing.T, component string, set map[string]any) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, e := range deploymentOf(t, component, render(t, set)).Spec.Template.Spec.Containers[0].Env {
		switch from := e.ValueFrom; {
		case from == nil:
			all[e.Name] = e.Value
		case from.SecretKeyRef != nil:
			all[e.Name] = "secret " + from.SecretKeyRef.Name + "/" + from.SecretKeyRef.Key
		case from.FieldRef != nil:
			all[e.Name] = "field " + from.FieldRef.FieldPath
		}
	}
	return all
}

func TestTemporalIsFoundByTheEnvironment(t *testing.T) {
	sets := valueSets(t)
	for name, want := range map[string]map[string]string{
		"defaults": {"TEMPORAL_ADDRESS": "temporal-frontend.temporal:7233", "TEMPORAL_NAMESPACE": "default"},
		"cloud": {"TEMPORAL_ADDRESS": "eu-central-1.aws.api.temporal.io:7233", "TEMPORAL_NAMESPACE": "drydock.a1b2c", "TEMPORAL_TLS": "true",
			"DRYDOCK_TEMPORAL_API_KEY_FILE": "/run/temporal/api-key/api-key", "DRYDOCK_CODEC_KEYS_FILE": "/run/temporal/codec-keys/keys"},
		"mtls": {"TEMPORAL_ADDRESS": "temporal.example.com:7233", "TEMPORAL_NAMESPACE": "fleet", "TEMPORAL_TLS": "true",
			"TEMPORAL_TLS_SERVER_NAME": "temporal.internal", "TEMPORAL_TLS_SERVER_CA_CERT_PATH": "/run/temporal/ca/bundle.pem",
			"TEMPORAL_TLS_CLIENT_CERT_PATH": "/run/temporal/client/tls.crt", "TEMPORAL_TLS_CLIENT_KEY_PATH": "/run/temporal/client/tls.key"},
	} {
		want["DRYDOCK_POD_UID"] = "field metadata.uid"
		if got := environment(t, "worker", sets[name]); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
		mounted := map[string]bool{}
		for _, m := range deploymentOf(t, "worker", render(t, sets[name])).Spec.Template.Spec.Containers[0].VolumeMounts {
			mounted[m.MountPath] = true
		}
		for variable, value := range want {
			if strings.HasPrefix(value, "/") && !mounted[path.Dir(value)] {
				t.Errorf("%s: nothing is mounted where %s is looked for, %s", name, variable, value)
			}
		}
	}
}

func TestAChangedConfigurationRollsTheWorkers(t *testing.T) {
	checksum := func(text string) string {
		return deploymentOf(t, "worker", render(t, values(t, text))).Spec.Template.Annotations["checksum/config"]
	}
	before := checksum("")
	for text, changes := range map[string]bool{
		"config: {log: {level: debug}}": true, "files: {a.yaml: b}": true, "port: 9090": true, "replicas: 5": false, "podLabels: {a: b}": false,
	} {
		if changed := checksum(text) != before; changed != changes {
			t.Errorf("%s: changed %v, want %v", text, changed, changes)
		}
	}
}

// The file of profiles is read anew while the worker runs: it is mounted as a folder, which the kubelet keeps up to date, and a change
// rolls nobody.
func TestAChangedFileOfProfilesRollsNobody(t *testing.T) {
	const file = "intervals: {requeue: 1m}\n# {{ .Node.Name }}: ${HOOK}\n"
	documents := render(t, map[string]any{"profiles": file})
	c := config.Default()
	if err := config.Parse([]byte(configuration(t, documents).Data["drydock.yaml"]), &c, config.Kinds{}); err != nil {
		t.Fatal(err)
	}
	template := deploymentOf(t, "worker", documents).Spec.Template
	mounted := ""
	for _, m := range template.Spec.Containers[0].VolumeMounts {
		if m.MountPath == path.Dir(c.Profiles.File) && m.SubPath == "" {
			mounted = m.Name
		}
	}
	from := slices.IndexFunc(template.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mounted })
	if from < 0 {
		t.Fatalf("nothing is mounted where %s is", c.Profiles.File)
	}
	for _, one := range findAll[*corev1.ConfigMap](t, documents) {
		if one.Name == template.Spec.Volumes[from].ConfigMap.Name && one.Data[path.Base(c.Profiles.File)] != file {
			t.Errorf("ConfigMap %s has %q", one.Name, one.Data)
		}
	}
	changed := deploymentOf(t, "worker", render(t, map[string]any{"profiles": file + "# more\n"}))
	if !reflect.DeepEqual(changed.Spec.Template, template) {
		t.Error("the pod is another one")
	}
	if without := deploymentOf(t, "worker", render(t, nil)).Spec.Template; len(without.Spec.Volumes) != len(template.Spec.Volumes)-1 {
		t.Errorf("without profiles it has %v", without.Spec.Volumes)
	}
}

// granted are the rules of roles by name, and the Pod Security labels of namespaces, of objects in YAML.
func granted(t *testing.T, documents []rendered.Document) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, d := range documents {
		switch o := decode(t, d).(type) {
		case *rbacv1.ClusterRole:
			all["role "+o.Name] = slices.Concat(o.Rules) // none and an empty list are the same
		case *rbacv1.Role:
			all["role "+o.Namespace+"/"+o.Name] = o.Rules
		case *rbacv1.ClusterRoleBinding:
			all["binding "+o.Name] = []any{o.RoleRef, o.Subjects}
		case *rbacv1.RoleBinding:
			all["binding "+o.Namespace+"/"+o.Name] = []any{o.RoleRef, o.Subjects}
		case *networkingv1.NetworkPolicy:
			if strings.HasPrefix(d.Template, kubernetesDir) || o.Name == "drydock-jobs" { // the worker's own is the chart's
				all["network "+o.Namespace+"/"+o.Name] = o.Spec
			}
		case *corev1.Namespace:
			for label, value := range o.Labels {
				if strings.HasPrefix(label, "pod-security.kubernetes.io/") {
					all["namespace "+o.Name+" "+label] = value
				}
			}
		}
	}
	return all
}

func documentsOf(t *testing.T, file string) []rendered.Document {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var documents []rendered.Document
	for _, one := range strings.Split(string(text), "\n---\n") {
		documents = append(documents, rendered.Document{Template: file, Text: one})
	}
	return documents
}

// features are those that have a file in deploy/kubernetes.
func features(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(kubernetesDir + "/rbac-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no features: %v", err)
	}
	for _, file := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "rbac-"), ".yaml"))
	}
	return names
}

func TestPermissionsAreThoseOfTheFiles(t *testing.T) {
	want := granted(t, documentsOf(t, kubernetesDir+"/rbac.yaml"))
	if got := granted(t, render(t, nil)); !reflect.DeepEqual(got, want) {
		t.Errorf("without features it grants\n%v\nwant\n%v", got, want)
	}
	for _, feature := range features(t) {
		want := granted(t, slices.Concat(documentsOf(t, kubernetesDir+"/rbac.yaml"), documentsOf(t, kubernetesDir+"/rbac-"+feature+".yaml")))
		if got := granted(t, render(t, values(t, "rbac: {features: ["+feature+"]}"))); !reflect.DeepEqual(got, want) {
			t.Errorf("with %s it grants\n%v\nwant\n%v", feature, got, want)
		}
	}
}

// schema is what values.schema.json has at a path of properties.
func schema(t *testing.T, path ...string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(chartDir + "/values.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]any{}
	if err := json.Unmarshal(text, &at); err != nil {
		t.Fatal(err)
	}
	for _, key := range path {
		at = at["properties"].(map[string]any)[key].(map[string]any)
	}
	return at
}

func TestTheSchemaAndTheReadmeKnowEachFeature(t *testing.T) {
	var known []string
	for _, name := range schema(t, "rbac", "features")["items"].(map[string]any)["enum"].([]any) {
		known = append(known, name.(string))
	}
	if want := features(t); !slices.Equal(known, want) {
		t.Errorf("the schema knows %v, want %v", known, want)
	}
	readme, err := os.ReadFile(chartDir + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range known {
		if !strings.Contains(string(readme), "| `"+name+"` | ") {
			t.Errorf("README.md does not tell of feature %s", name)
		}
	}
}

// The schema has the sections of the worker's configuration, so that a misspelt one is refused before it is installed.
func TestTheSchemaKnowsTheConfiguration(t *testing.T) {
	want := map[string]bool{}
	for i := range reflect.TypeFor[config.Config]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[config.Config]().Field(i).Tag.Get("json"), ",")
		want[name] = name != "-"
	}
	want["listen"] = false // it is the chart's
	known := schema(t, "config")["properties"].(map[string]any)
	for name, is := range want {
		if _, ok := known[name]; ok != is {
			t.Errorf("%s: in the schema %v, want %v", name, ok, is)
		}
	}
	for name := range known {
		if !want[name] {
			t.Errorf("%s: the worker does not know it", name)
		}
	}
}

// Every value can be given in the schema, with the type of its default.
func TestTheSchemaKnowsEveryValue(t *testing.T) {
	text, err := os.ReadFile(chartDir + "/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	known := schema(t)["properties"].(map[string]any)
	for name := range values(t, string(text)) {
		if _, ok := known[name]; !ok {
			t.Errorf("the schema does not know %s", name)
		}
	}
}

func TestNotesSayWhatComesNext(t *testing.T) {
	c := loadChart(t)
	for text, want := range map[string]string{
		"":                          "drydock start NODE --reason",
		"config: {cluster: blue}":   "DRYDOCK_CLUSTER=blue",
		"replicas: 1":               "With one worker, the drain of its own node rests",
		"rbac: {create: false}":     "rbac.create is false",
		"temporal: {namespace: ab}": "TEMPORAL_NAMESPACE=ab",
		"{}":                        "WARNING: the workers show Temporal no credentials",
		"admission: {}":             "admission.enabled is false",
	} {
		notes, err := rendered.Notes(c, rendered.Plain, values(t, text))
		if err != nil || !strings.Contains(notes, want) {
			t.Errorf("%s: %v\n%s\nwant %s", text, err, notes, want)
		}
	}
}

// Who shows credentials is not warned of a server that wants none.
func TestNotesAreSilentWhereThereIsNothingToWarnOf(t *testing.T) {
	for _, text := range []string{"temporal: {tls: {enabled: true}, apiKey: {secret: key}}", "temporal: {tls: {enabled: true, client: {secret: cert}}}"} {
		notes, err := rendered.Notes(loadChart(t), rendered.Plain, values(t, text+"\nadmission: {enabled: true}"))
		if err != nil || strings.Contains(notes, "WARNING") || strings.Contains(notes, "admission.enabled") {
			t.Errorf("%s: %v\n%s", text, err, notes)
		}
	}
}

// The chart's admission policies are those of the file, which an end-to-end test holds to what they refuse.
func TestAdmissionPoliciesAreThoseOfTheFile(t *testing.T) {
	policies := func(documents []rendered.Document) (all []any) {
		for _, d := range documents {
			switch o := decode(t, d).(type) {
			case *admissionv1.ValidatingAdmissionPolicy:
				all = append(all, o.Name, o.Spec)
			case *admissionv1.ValidatingAdmissionPolicyBinding:
				all = append(all, o.Name, o.Spec)
			}
		}
		return all
	}
	if found := policies(render(t, nil)); len(found) != 0 {
		t.Errorf("without admission.enabled there are %v", found)
	}
	got, want := policies(render(t, values(t, "admission: {enabled: true}"))), policies(documentsOf(t, kubernetesDir+"/admission.yaml"))
	if len(want) != 8 || !reflect.DeepEqual(got, want) {
		t.Errorf("policies\n%v\nwant\n%v", got, want)
	}
	own := must(json.Marshal(policies(render(t, values(t, `admission: {enabled: true, otherWorkers: ["system:serviceaccount:b:w"], workGroups: [sre]}
serviceAccount: {name: hands}
rbac: {workNamespace: toil}`)))))
	for _, want := range []string{`[\"system:serviceaccount:drydock:hands\",\"system:serviceaccount:b:w\"]`, `[\"sre\"]`, "members of sre", `"kubernetes.io/metadata.name":"toil"`} {
		if !strings.Contains(string(own), want) {
			t.Errorf("it does not have %s:\n%s", want, own)
		}
	}
}

// The overlay of docs/tasks/install.md is one that kustomize builds, and does what the page says.
func TestTheOverlayOfTheDocumentationBuilds(t *testing.T) {
	page, err := os.ReadFile("../../../docs/tasks/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, shown, _ := strings.Cut(string(page), "```yaml\n# kustomization.yaml\n")
	overlay, _, found := strings.Cut(shown, "```")
	if !found {
		t.Fatal("the page shows no overlay")
	}
	// Beside a copy of the base, as it is in the tree.
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "base"), os.DirFS(kubernetesDir+"/base")); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"kustomization.yaml": overlay, "drydock.yaml": "listen: \":8080\"\ncluster: blue\n"} {
		if err := os.MkdirAll(filepath.Join(dir, "mine"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "mine", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var documents []rendered.Document
	for _, object := range build(t, filepath.Join(dir, "mine")) {
		text, err := yaml.Marshal(object.Object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, rendered.Document{Template: object.GetName(), Text: string(text), Object: object})
	}
	config := configuration(t, documents)
	pod := deploymentOf(t, "worker", documents).Spec.Template.Spec
	variables := map[string]string{}
	for _, e := range pod.Containers[0].Env {
		variables[e.Name] = e.Value
	}
	if !strings.Contains(config.Data["drydock.yaml"], "cluster: blue") || pod.Volumes[0].ConfigMap.Name != config.Name || config.Name == "drydock-worker" {
		t.Errorf("the pod has ConfigMap %s, and there is %s with %v", pod.Volumes[0].ConfigMap.Name, config.Name, config.Data)
	}
	if pod.Containers[0].Image != "registry.example.com/drydock:v0.2.0" || variables["TEMPORAL_ADDRESS"] != "temporal.example.com:7233" || len(variables) != 3 {
		t.Errorf("image %s, variables %v", pod.Containers[0].Image, variables)
	}
}

func TestMetricsTakeATokenWhereTheConfigurationSaysSo(t *testing.T) {
	for authentication, want := range map[string]bool{"none": false, "token": true} {
		documents := render(t, values(t, "serviceMonitor: {enabled: true}\nconfig: {metrics: {authentication: "+authentication+"}}"))
		for _, text := range []string{"tokenreviews", "subjectaccessreviews", "- /metrics", "bearerTokenFile: "} {
			found := slices.ContainsFunc(documents, func(d rendered.Document) bool { return strings.Contains(d.Text, text) })
			if found != want {
				t.Errorf("%s: %q is there: %v, want %v", authentication, text, found, want)
			}
		}
	}
}
