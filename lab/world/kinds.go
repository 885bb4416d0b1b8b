package world

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/bridge/v1alpha1"
	"drydock.dev/drydock/deploy/devstack"
)

// Dynamic is a client for objects of any kind, without a limit of requests.
func Dynamic(kubeconfig string) (*dynamic.DynamicClient, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return dynamic.NewForConfig(config)
}

// Definitions are those of the kinds that an API server serves beside its own.
func Definitions(kube dynamic.Interface) dynamic.ResourceInterface {
	return kube.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
}

// DefineMaintenances has an API server serve the objects NodeMaintenance, and returns a client for them.
func DefineMaintenances(ctx context.Context, kube dynamic.Interface) (dynamic.ResourceInterface, error) {
	kind := v1alpha1.GroupVersion.WithResource("nodemaintenances")
	return kube.Resource(kind), Define(ctx, kube, "deploy/kubernetes/crds/drydock.dev_nodemaintenances.yaml", kind)
}

// Maintenance is an object NodeMaintenance.
func Maintenance(name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "NodeMaintenance", "metadata": map[string]any{"name": name}, "spec": spec,
	}}
}

// Define creates the definitions of kinds that a file of the source tree has, leaves out what else is in it, and waits until some of the
// kinds are served.
func Define(ctx context.Context, kube dynamic.Interface, path string, kinds ...schema.GroupVersionResource) error {
	if err := createDefinitions(ctx, kube, path); err != nil {
		return err
	}
	for _, kind := range kinds {
		if err := Eventually(ctx, time.Minute, kind.Resource+" are served", func() error {
			_, err := kube.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

func createDefinitions(ctx context.Context, kube dynamic.Interface, path string) error {
	root, err := devstack.Root()
	if err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(root, path))
	if err != nil {
		return err
	}
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var o unstructured.Unstructured
		switch err := decoder.Decode(&o); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case o.GetKind() != "CustomResourceDefinition":
			continue
		}
		if _, err := Definitions(kube).Create(ctx, &o, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
}
