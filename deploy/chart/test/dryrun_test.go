package chart_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// applier creates objects of any kind, and hears the API server's warnings.
type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper

	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (a *applier) HandleWarningHeader(_ int, _, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warnings = append(a.warnings, text)
}

func newApplier(t *testing.T, s *stack) *applier {
	t.Helper()
	a := &applier{}
	config, err := clientcmd.BuildConfigFromFlags("", s.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = a
	config.QPS, config.Burst = 200, 400
	if a.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	a.mapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(s.cluster.Client.Discovery()))
	return a
}

// create creates an object, in dry run or for good; a field that there is not is an error.
func (a *applier) create(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) error {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		a.mapper.Reset()
		mapping, err = a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	if err != nil {
		return err
	}
	var to dynamic.ResourceInterface = a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		to = a.client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	}
	_, err = to.Create(ctx, object, metav1.CreateOptions{DryRun: dryRun, FieldValidation: metav1.FieldValidationStrict})
	return err
}

// dryRun is what the API server says against some objects.
func (a *applier) dryRun(ctx context.Context, objects []*unstructured.Unstructured) error {
	a.warnings = nil
	var problems []error
	for _, object := range objects {
		if err := a.create(ctx, object, metav1.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
			problems = append(problems, fmt.Errorf("%s %s: %w", object.GetKind(), object.GetName(), err))
		}
	}
	for _, warning := range a.warnings {
		problems = append(problems, errors.New("the API server warns: "+warning))
	}
	return errors.Join(problems...)
}

// monitoringKinds creates the Prometheus operator's kinds.
func (r *release) monitoringKinds(a *applier) {
	r.Helper()
	files, err := filepath.Glob("testdata/crds/*.yaml")
	if err != nil || len(files) != 2 {
		r.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			r.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &object.Object); err != nil {
			r.Fatal(err)
		}
		if err := a.create(r.ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
			r.Fatal(err)
		}
		kind := object.Object["spec"].(map[string]any)["names"].(map[string]any)["kind"].(string)
		probe := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "monitoring.coreos.com/v1", "kind": kind}}
		probe.SetName("probe")
		probe.SetNamespace(namespace)
		r.eventually(kind+" is served", func() error {
			if err := a.create(r.ctx, probe, metav1.DryRunAll); meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
				return err
			}
			return nil
		})
	}
}

func TestTheAPIServerTakesEverySet(t *testing.T) {
	r := newRelease(t, "dry-run")
	// Where Roles are to be, their namespace has to be: in a dry run none is made.
	for _, name := range []string{"drydock-jobs", "drydock-work", "nodes-jobs", "watched"} {
		r.makeNamespace(name, map[string]string{"pod-security.kubernetes.io/warn": "restricted"})
	}
	a := newApplier(t, r.stack)
	r.monitoringKinds(a)
	inNamespace := func(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
		for _, object := range objects {
			if object.GetNamespace() == namespace {
				object.SetNamespace("watched")
			}
		}
		return objects
	}
	for name, set := range valueSets(t) {
		var objects []*unstructured.Unstructured
		for _, d := range render(t, set) {
			objects = append(objects, d.Object)
		}
		if err := a.dryRun(r.ctx, inNamespace(objects)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := a.dryRun(r.ctx, inNamespace(build(t, kubernetesDir+"/base"))); err != nil {
		t.Errorf("the kustomize base: %v", err)
	}
	// What is wrong has to show, or the rest says nothing.
	wrong := render(t, values(t, `podSecurityContext: {runAsUsr: 1}`))
	privileged := render(t, values(t, `securityContext: {allowPrivilegeEscalation: true}`))
	for text, documents := range map[string][]*unstructured.Unstructured{
		`unknown field "spec.template.spec.securityContext.runAsUsr"`: {rawDeployment(t, wrong)},
		"would violate PodSecurity":                                   {rawDeployment(t, privileged)},
	} {
		if err := a.dryRun(r.ctx, inNamespace(documents)); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want %s", err, text)
		}
	}
}

// build builds a kustomization as `kubectl apply -k` does.
func build(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		content, err := resource.Map()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}
