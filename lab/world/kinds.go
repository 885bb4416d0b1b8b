package world

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

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

// Define creates the definitions of kinds that a file of the source tree has, and leaves out what else is in it.
func Define(ctx context.Context, kube dynamic.Interface, path string) error {
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
