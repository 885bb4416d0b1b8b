package chart_test

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeschema "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/deploy/chart/test/rendered"
	"drydock.dev/drydock/deploy/kubernetes"
)

// contentsOf are the objects of some kinds without what the chart adds, by kind and name.
func contentsOf(t *testing.T, documents []rendered.Document, is func(kind string) bool) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, d := range documents {
		object := map[string]any{}
		if err := yaml.Unmarshal([]byte(d.Text), &object); err != nil {
			t.Fatal(err)
		}
		metadata := object["metadata"].(map[string]any)
		kind := object["kind"].(string)
		if !is(kind) {
			continue
		}
		labels, _ := metadata["labels"].(map[string]any)
		content := map[string]any{}
		for label, value := range labels {
			if strings.Contains(label, "/aggregate-to-") {
				content["label "+label] = value
			}
		}
		for _, field := range []string{"spec", "rules", "aggregationRule", "roleRef", "subjects"} {
			if value := object[field]; value != nil && !reflect.DeepEqual(value, []any{}) {
				content[field] = value
			}
		}
		namespace, _ := metadata["namespace"].(string)
		all[kind+" "+path.Join(namespace, metadata["name"].(string))] = content
	}
	return all
}

func isOfBridge(d rendered.Document) bool {
	return d.Object.GetLabels()["app.kubernetes.io/component"] == "bridge"
}

// ofBridge are what a release with a bridge has of it.
func ofBridge(t *testing.T, more string) []rendered.Document {
	t.Helper()
	all := render(t, merged(values(t, "bridge: {enabled: true}"), values(t, more)))
	return slices.DeleteFunc(all, func(d rendered.Document) bool { return !isOfBridge(d) })
}

func isRole(kind string) bool {
	return strings.HasSuffix(kind, "Role") || strings.HasSuffix(kind, "RoleBinding") || kind == "ServiceAccount"
}

func isPolicy(kind string) bool { return strings.Contains(kind, "AdmissionPolicy") }

func isDefinition(kind string) bool { return kind == "CustomResourceDefinition" }

func TestThereIsNoBridgeUnlessItIsAskedFor(t *testing.T) {
	for _, d := range render(t, nil) {
		if isOfBridge(d) {
			t.Errorf("%s %s is there", d.Object.GetKind(), d.Object.GetName())
		}
	}
	worker := func(more string) any { return deploymentOf(t, "worker", render(t, values(t, more))) }
	if !reflect.DeepEqual(worker(""), worker("bridge: {enabled: true}")) {
		t.Error("the workers are others beside a bridge")
	}
}

func TestTheBridgeHasWhatIsInTheFiles(t *testing.T) {
	files, err := kubernetes.Bridge()
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string) []rendered.Document { return documentsOf(t, filepath.Join(kubernetesDir, name)) }
	var definitions []rendered.Document
	for _, d := range files.Definitions {
		definitions = append(definitions, file(d.File)...)
	}
	documents := ofBridge(t, "")
	for _, c := range []struct {
		what string
		is   func(kind string) bool
		from []rendered.Document
	}{{"permissions", isRole, file(files.Account.File)}, {"policies", isPolicy, file(files.Policies.File)}, {"definitions", isDefinition, definitions}} {
		got, want := contentsOf(t, documents, c.is), contentsOf(t, c.from, c.is)
		if len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d\n%v\nwant %d\n%v", c.what, len(got), got, len(want), want)
		}
	}
	for _, d := range documents {
		_, addsUp := d.Object.Object["aggregationRule"]
		if stays := d.Object.GetAnnotations()["helm.sh/resource-policy"] == "keep"; stays != (addsUp || isDefinition(d.Object.GetKind())) {
			t.Errorf("%s %s stays when the release goes: %v", d.Object.GetKind(), d.Object.GetName(), stays)
		}
	}
}

func TestTheBridgeIsAsTheValuesSay(t *testing.T) {
	none := func(string) bool { return false }
	for more, c := range map[string]struct {
		is        func(kind string) bool
		approvals bool
	}{
		"bridge: {admission: all}":                     {func(kind string) bool { return isRole(kind) || isPolicy(kind) || isDefinition(kind) }, true},
		"bridge: {admission: validating, crds: false}": {func(kind string) bool { return isRole(kind) || strings.HasPrefix(kind, "Validating") }, true},
		"bridge: {admission: existing, crds: false}":   {isRole, true},
		"bridge: {admission: none, crds: false}":       {isRole, false},
		"bridge: {admission: none, crds: false, serviceAccount: {create: false, name: a}}\nrbac: {create: false}": {none, false},
	} {
		documents := ofBridge(t, more)
		each := func(kind string) bool { return isRole(kind) || isPolicy(kind) || isDefinition(kind) }
		want := contentsOf(t, slices.DeleteFunc(ofBridge(t, ""), func(d rendered.Document) bool { return !c.is(d.Object.GetKind()) }), each)
		if got := contentsOf(t, documents, each); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: there are\n%v\nwant\n%v", more, got, want)
		}
		args := deploymentOf(t, "bridge", documents).Spec.Template.Spec.Containers[0].Args
		if slices.Contains(args, "--approvals") != c.approvals {
			t.Errorf("%s: the bridge has %q", more, args)
		}
	}
}

// A bridge has the workers' Temporal, cluster and log, and its own account wherever that is named.
func TestTheBridgeGoesWithTheWorkers(t *testing.T) {
	set := valueSets(t)["bridge"]
	documents := render(t, set)
	pod := deploymentOf(t, "bridge", documents).Spec.Template.Spec
	container := pod.Containers[0]
	want := []string{
		"--cluster=blue", "--task-queue=maintenance", "--log-level=debug", "--log-format=text", "--lease-namespace=drydock", "--metrics=:8082", "--probes=:8083",
		"--approvals", "--pika=default", "--pika-sla=24h", `--pika-input={"drain":{"mode":"evict"},"notify":[]}`, "--pika-channel=arn:aws:sns:us-east-1:123456789012:gpu=gpu", "--node-healthcheck=default", "--kep", "--maintenance-operator=default", `--maintenance-operator-input={"readyTimeout":"4h"}`,
	}
	if !slices.Equal(container.Args, want) || !slices.Equal(container.Command, []string{"drydock-bridge"}) {
		t.Errorf("it runs %q %q, want %q", container.Command, container.Args, want)
	}
	worker := deploymentOf(t, "worker", documents).Spec.Template.Spec
	if container.Image != worker.Containers[0].Image {
		t.Errorf("image %s, want %s", container.Image, worker.Containers[0].Image)
	}
	env := environment(t, "worker", set)
	delete(env, "DRYDOCK_POD_UID")
	if got := environment(t, "bridge", set); !reflect.DeepEqual(got, env) {
		t.Errorf("it finds Temporal by %v, want %v", got, env)
	}
	if got := environment(t, "bridge", merged(set, values(t, "bridge: {env: [{name: OTEL_TRACES_EXPORTER, value: otlp}]}")))["OTEL_TRACES_EXPORTER"]; got != "otlp" {
		t.Errorf("a variable of its own is %q", got)
	}
	for _, m := range container.VolumeMounts {
		if !slices.ContainsFunc(worker.Containers[0].VolumeMounts, func(of corev1.VolumeMount) bool { return reflect.DeepEqual(of, m) }) {
			t.Errorf("it has %+v, and the worker has not", m)
		}
	}
	if len(container.VolumeMounts) != 2 || len(pod.Volumes) != 2 {
		t.Errorf("mounts %+v of %+v, want two", container.VolumeMounts, pod.Volumes)
	}
	if pod.ServiceAccountName != "nodes-objects" {
		t.Errorf("account %s", pod.ServiceAccountName)
	}
	policies := 0
	for _, d := range documents {
		if !isOfBridge(d) {
			continue
		}
		if strings.Contains(d.Text, "serviceaccount:drydock:drydock-bridge") || d.Object.GetName() == "drydock-bridge" {
			t.Errorf("%s %s is for another account", d.Object.GetKind(), d.Object.GetName())
		}
		if d.Object.GetKind() == "ValidatingAdmissionPolicy" && strings.Contains(d.Text, "system:serviceaccount:drydock:nodes-objects") {
			policies++
		}
	}
	if policies != 5 {
		t.Errorf("%d policies name the account, and 5 leave to the bridge what is the bridge's", policies)
	}
}

func TestBridgesThatCannotWorkAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"bridge: {enabled: true, serviceAccount: {create: false}}":                                "bridge.serviceAccount.name is required",
		"bridge: {enabled: true, admission: none}\nconfig: {kubernetes: {verifiedObjects: true}}": "config.kubernetes.verifiedObjects: without the policies",
	} {
		if _, err := rendered.Chart(loadChart(t), rendered.Plain, values(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestOlderClustersAreToldWhatToDo(t *testing.T) {
	c := loadChart(t)
	for text, refused := range map[string]bool{"admission: all": true, "admission: validating": false, "admission: none": false} {
		capabilities := *common.DefaultCapabilities
		version, err := common.ParseKubeVersion("v1.35.4-eks-1")
		if err != nil {
			t.Fatal(err)
		}
		capabilities.KubeVersion = *version
		all, err := util.ToRenderValues(c, values(t, "bridge: {enabled: true, "+text+"}"), common.ReleaseOptions{Name: "drydock", Namespace: "drydock"}, &capabilities)
		if err != nil {
			t.Fatal(err)
		}
		_, err = engine.Render(c, all)
		if is := err != nil && strings.Contains(err.Error(), "bridge.admission: all needs Kubernetes 1.36, and this is v1.35.4-eks-1"); is != refused || err != nil && !refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A release with a bridge maintains nodes by objects. Removed, it leaves the objects, and once it is back it goes on with them.
func TestABridgeOfAReleaseIsRemovedAndComesBack(t *testing.T) {
	r := newRelease(t, "objects")
	t.Cleanup(r.forgetBridge)
	with := r.values("bridge: {enabled: true}\nreplicas: 1")
	r.install(loadChart(t), with)
	pods := r.pods("bridge")
	if len(pods) != 1 {
		t.Fatalf("%d bridges run", len(pods))
	}
	objects := r.objects()
	node := r.nodeWithout(slices.Concat(r.pods("worker"), pods))
	kernel := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "drydock.dev/v1alpha1", "kind": "NodeMaintenance", "metadata": map[string]any{"name": "kernel"}, "spec": map[string]any{"node": node},
	}}
	requestedBy := func(o *unstructured.Unstructured) string {
		by, _, _ := unstructured.NestedString(o.Object, "spec", "requestedBy")
		return by
	}
	r.eventually("the policies are in force", func() error {
		tried, err := objects.Create(r.ctx, kernel, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && requestedBy(tried) == "" {
			err = errors.New("they do not write who asks")
		}
		return err
	})
	if _, err := objects.Create(r.ctx, kernel, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	phase := func(want string) *unstructured.Unstructured {
		t.Helper()
		var o *unstructured.Unstructured
		r.eventually("the object is "+want, func() (err error) {
			if o, err = objects.Get(r.ctx, "kernel", metav1.GetOptions{}); err != nil {
				return err
			}
			if is, _, _ := unstructured.NestedString(o.Object, "status", "phase"); is != want {
				return fmt.Errorf("it is %q", is)
			}
			return nil
		})
		return o
	}
	before := phase("Ready")
	r.uninstall()
	phase("Ready")
	r.install(loadChart(t), with)
	if after := phase("Ready"); after.GetUID() != before.GetUID() {
		t.Errorf("the object is another one: %s, was %s", after.GetUID(), before.GetUID())
	}
	if err := objects.Delete(r.ctx, "kernel", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r.eventually("the object is gone, and the node is back", func() error {
		if _, err := objects.Get(r.ctx, "kernel", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the object is there: %v", err)
		}
		n, err := r.cluster.Client.CoreV1().Nodes().Get(r.ctx, node, metav1.GetOptions{})
		if err == nil && n.Spec.Unschedulable {
			err = errors.New("the node is cordoned")
		}
		return err
	})
	r.namesHimself(objects, kernel, requestedBy(before))
	// Without the policies nobody approves by an annotation.
	if err := r.upgrade(loadChart(t), values(t, "bridge: {admission: none}"), patience); err != nil {
		t.Fatal(err)
	}
	if pods := r.pods("bridge"); len(pods) != 1 || slices.Contains(pods[0].Spec.Containers[0].Args, "--approvals") {
		t.Errorf("the bridges are %+v", pods)
	}
}

// namesHimself has the chart leave out the policies that write a name: whoever asks then writes his own.
func (r *release) namesHimself(objects dynamic.ResourceInterface, kernel *unstructured.Unstructured, user string) {
	r.Helper()
	if err := r.upgrade(loadChart(r), values(r, "bridge: {admission: validating}"), patience); err != nil {
		r.Fatal(err)
	}
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	r.eventually("who asks in nobody's name is refused", func() error {
		_, err := objects.Create(r.ctx, kernel, dry)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.requestedBy is missing") {
			return fmt.Errorf("%w, want a refusal", err)
		}
		return nil
	})
	named := kernel.DeepCopy()
	if err := unstructured.SetNestedField(named.Object, user, "spec", "requestedBy"); err != nil {
		r.Fatal(err)
	}
	if _, err := objects.Create(r.ctx, named, dry); err != nil {
		r.Errorf("who asks in his own name: %v", err)
	}
}

// objects is a client of all NodeMaintenances.
func (r *release) objects() dynamic.ResourceInterface {
	return newApplier(r.T, r.stack).client.Resource(kubeschema.GroupVersionResource{Group: "drydock.dev", Version: "v1alpha1", Resource: "nodemaintenances"})
}

// forgetBridge removes what the chart leaves of a bridge: the definitions, and the roles that add up others.
func (r *release) forgetBridge() {
	r.Helper()
	files, err := kubernetes.Bridge()
	if err != nil {
		r.Fatal(err)
	}
	definitions := newApplier(r.T, r.stack).client.Resource(kubeschema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for _, d := range files.Definitions {
		for _, object := range d.Objects {
			if err := definitions.Delete(r.ctx, object.GetName(), metav1.DeleteOptions{}); err != nil {
				r.Errorf("%s did not stay: %v", object.GetName(), err)
			}
		}
	}
	for _, role := range []string{"drydock-viewer", "drydock-requestor", "drydock-approver", "drydock-operator"} {
		if err := r.cluster.Client.RbacV1().ClusterRoles().Delete(r.ctx, role, metav1.DeleteOptions{}); err != nil {
			r.Errorf("%s did not stay: %v", role, err)
		}
	}
}
