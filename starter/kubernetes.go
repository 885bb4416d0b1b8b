package starter

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"drydock/k8s"
)

// kubernetes knows nodes by name and labels. Only the metadata is asked for: the rest of a node is large, and the
// work on nodes is the worker's.
type kubernetes struct {
	nodes   metadata.ResourceInterface
	context string
}

// node is what the command line needs to know of one.
type node struct {
	Name   string
	Labels map[string]string
}

func (n node) controlPlane() bool {
	for _, label := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if _, ok := n.Labels[label]; ok {
			return true
		}
	}
	return false
}

// kubernetes is a client by the usual rules: --kubeconfig, KUBECONFIG, ~/.kube/config, the pod's service account.
// An API server that does not answer within timeout counts as absent.
func (a *app) kubernetes(timeout time.Duration) (*kubernetes, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.global.kubeconfig
	if list := a.env.get(clientcmd.RecommendedConfigPathEnvVar); list != "" {
		rules.Precedence = filepath.SplitList(list)
	}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: a.global.kubeContext})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	config.Timeout = timeout
	config.QPS = -1
	api, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	name := a.global.kubeContext
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	return &kubernetes{nodes: api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "nodes"}), context: name}, nil
}

// list returns the nodes a selector selects, by name.
func (k *kubernetes) list(ctx context.Context, selector string) ([]node, error) {
	var nodes []node
	options := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page, err := k.nodes.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the nodes of the Kubernetes cluster: %w", err)
		}
		for _, item := range page.Items {
			nodes = append(nodes, node{Name: item.Name, Labels: item.Labels})
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortFunc(nodes, func(a, b node) int { return compareNames(a.Name, b.Name) })
	return nodes, nil
}

// get returns a node; missing is true only if the API server has said that there is none.
func (k *kubernetes) get(ctx context.Context, name string) (n node, missing bool, err error) {
	object, err := k.nodes.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return node{}, apierrors.IsNotFound(err), err
	}
	return node{Name: object.Name, Labels: object.Labels}, false, nil
}

// errNoNode says that there is no such node, and which one may be meant.
func (k *kubernetes) errNoNode(ctx context.Context, name string) error {
	err := fmt.Errorf("node %q does not exist", name)
	if k.context != "" {
		err = fmt.Errorf("node %q does not exist (Kubernetes context %q)", name, k.context)
	}
	nodes, listErr := k.list(ctx, "")
	if listErr != nil {
		return err
	}
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	if close := k8s.Similar(name, names); len(close) > 0 {
		return hint(err, "Did you mean %s?", orList(close))
	}
	return hint(err, "The cluster has %s: %s.", plural(len(names), "node"), someOf(names, 10))
}

// nodeCheckTimeout bounds the check of names, which is a courtesy: the worker finds out by itself.
const nodeCheckTimeout = 3 * time.Second

// checkNodes refuses names of nodes that the cluster does not have. Where Kubernetes does not answer it lets all
// pass.
func (a *app) checkNodes(ctx context.Context, names []string) error {
	k, err := a.kubernetes(nodeCheckTimeout)
	if err != nil {
		if a.global.kubeconfig != "" || a.global.kubeContext != "" {
			return usageError("%w", err)
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nodeCheckTimeout)
	defer cancel()
	for _, name := range names {
		_, missing, err := k.get(ctx, name)
		if missing {
			return hint(k.errNoNode(ctx, name), "Nothing was started. If Drydock's cluster is another one than this, use --skip-node-check.")
		}
		if err != nil {
			return nil
		}
	}
	return nil
}
