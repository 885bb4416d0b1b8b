// Package k8s is Drydock's view of Kubernetes: clients, the marks on a node, watches, the choice of pods and their
// eviction.
package k8s

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options say how to reach the API server.
type Options struct {
	// Kubeconfig is a file's path; empty means KUBECONFIG, then ~/.kube/config, then the pod's service account.
	Kubeconfig string
	Context    string
	// QPS and Burst bound the requests of this process per second; client-go's own default of 5 is far too low.
	QPS       float32
	Burst     int
	UserAgent string
}

// Config resolves the connection in kubectl's order: explicit file, KUBECONFIG, ~/.kube/config, in-cluster.
func Config(o Options) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.Kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.Context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no Kubernetes cluster: %w (set KUBECONFIG or --kubeconfig, or run inside a cluster)", err)
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	config.UserAgent = o.UserAgent
	// Protobuf is a fraction of the work to read. What is sent stays JSON, which custom resources understand too.
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	return config, nil
}

// NewClient builds the client that all activities of a worker share.
func NewClient(o Options) (kubernetes.Interface, error) {
	config, err := Config(o)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("building the Kubernetes client: %w", err)
	}
	return client, nil
}
