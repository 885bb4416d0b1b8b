package invocation

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/nodestate"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// Nodes knows nodes by name and labels. Only the metadata is asked for: the rest of a node is large, and the
// work on nodes is the worker's.
type Nodes struct {
	nodes, pods metadata.ResourceInterface
	context     string
}

// Node is what the command line needs to know of one.
type Node struct {
	Name                string
	Labels, Annotations map[string]string
}

// ControlPlane reports whether the node is one of the control plane.
func (n Node) ControlPlane() bool { return nodestate.IsControlPlane(n.Labels) }

// Cluster says which Kubernetes is meant where the flags do not.
type Cluster struct{ Kubeconfig, Context string }

// Kubernetes is the connection by the usual rules, with the name of its context: --kubeconfig and --context, what is meant
// otherwise, KUBECONFIG, ~/.kube/config, the pod's service account.
func (a *App) Kubernetes(otherwise Cluster) (*rest.Config, string, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = cmp.Or(a.Global.kubeconfig, otherwise.Kubeconfig)
	if list := a.Env.Get(clientcmd.RecommendedConfigPathEnvVar); list != "" {
		rules.Precedence = filepath.SplitList(list)
	}
	name := cmp.Or(a.Global.kubeContext, otherwise.Context)
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name})
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, name, fmt.Errorf("kubeconfig: %w", err)
	}
	if raw, err := loader.RawConfig(); err == nil && name == "" {
		name = raw.CurrentContext
	}
	return config, name, nil
}

// NamesKubernetes reports whether flags or the environment name a cluster, so that one which cannot be found is a mistake.
func (a *App) NamesKubernetes() bool {
	return cmp.Or(a.Global.kubeconfig, a.Global.kubeContext, a.Env.Get(clientcmd.RecommendedConfigPathEnvVar)) != ""
}

// Nodes is a client by the usual rules: --kubeconfig, KUBECONFIG, ~/.kube/config, the pod's service account.
// An API server that does not answer within timeout counts as absent.
func (a *App) Nodes(timeout time.Duration) (*Nodes, error) {
	config, name, err := a.Kubernetes(Cluster{})
	if err != nil {
		return nil, err
	}
	config.Timeout = timeout
	config.QPS = -1
	api, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	resource := func(name string) metadata.ResourceInterface {
		return api.Resource(schema.GroupVersionResource{Version: "v1", Resource: name})
	}
	return &Nodes{nodes: resource("nodes"), pods: resource("pods"), context: name}, nil
}

// List returns the nodes a selector selects, by name.
func (k *Nodes) List(ctx context.Context, selector string) ([]Node, error) {
	var nodes []Node
	options := metav1.ListOptions{LabelSelector: selector, Limit: 500}
	for {
		page, err := k.nodes.List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the nodes of the Kubernetes cluster: %w", err)
		}
		for _, item := range page.Items {
			nodes = append(nodes, Node{Name: item.Name, Labels: item.Labels})
		}
		if options.Continue = page.Continue; options.Continue == "" {
			break
		}
	}
	slices.SortFunc(nodes, func(a, b Node) int { return terminal.CompareNames(a.Name, b.Name) })
	return nodes, nil
}

// PodsOn are the pods on a node, "namespace/name", as many as one look shows.
func (k *Nodes) PodsOn(ctx context.Context, node string) ([]string, error) {
	page, err := k.pods.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(), Limit: 500})
	if err != nil {
		return nil, fmt.Errorf("listing the pods of %s: %w", node, err)
	}
	names := make([]string, len(page.Items))
	for i, item := range page.Items {
		names[i] = item.Namespace + "/" + item.Name
	}
	return names, nil
}

// ErrNoNode says that there is no such node, and which one may be meant.
func (k *Nodes) ErrNoNode(ctx context.Context, name string) error {
	err := fmt.Errorf("node %q does not exist", name)
	if k.context != "" {
		err = fmt.Errorf("node %q does not exist (Kubernetes context %q)", name, k.context)
	}
	nodes, listErr := k.List(ctx, "")
	if listErr != nil {
		return err
	}
	names := terminal.NamesOf(nodes, func(n Node) string { return n.Name })
	if close := k8s.Similar(name, names); len(close) > 0 {
		return exit.Hint(err, "Did you mean %s?", terminal.OrList(close))
	}
	return exit.Hint(err, "The cluster has %s: %s.", number.Of(len(names), "node"), terminal.SomeOf(names, 10))
}

// Find is a node by its name. If the API server says that there is none, missing says which one may be meant.
func (k *Nodes) Find(ctx context.Context, name string) (n Node, missing, err error) {
	object, err := k.nodes.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return n, k.ErrNoNode(ctx, name), err
	}
	if err != nil {
		return n, nil, err
	}
	return Node{Name: object.Name, Labels: object.Labels, Annotations: object.Annotations}, nil, nil
}

// nodeCheckTimeout bounds the check of names, which is a courtesy: the worker finds out by itself.
const nodeCheckTimeout = 3 * time.Second

// CheckNodes refuses names of nodes that the cluster does not have. Where Kubernetes does not answer it lets all
// pass; where nothing says where Kubernetes is, it says so.
func (a *App) CheckNodes(ctx context.Context, names []string) error {
	if _, err := a.Nodes(nodeCheckTimeout); err != nil && a.Global.kubeconfig == "" && a.Global.kubeContext == "" {
		fmt.Fprintf(a.Stderr, "Warning: whether there is such a node was not checked: %s\n", terminal.OneLine(err.Error()))
		return nil
	}
	_, err := a.FindNodes(ctx, names)
	return err
}

// FindNodes is CheckNodes, and returns the nodes that it has found: not all of them where Kubernetes does not answer.
func (a *App) FindNodes(ctx context.Context, names []string) ([]Node, error) {
	k, err := a.Nodes(nodeCheckTimeout)
	if err != nil {
		if a.Global.kubeconfig != "" || a.Global.kubeContext != "" {
			return nil, exit.UsageError("%w", err)
		}
		return nil, nil
	}
	return k.findAll(ctx, names)
}

func (k *Nodes) findAll(ctx context.Context, names []string) (found []Node, err error) {
	ctx, cancel := context.WithTimeout(ctx, nodeCheckTimeout)
	defer cancel()
	for _, name := range names {
		n, missing, err := k.Find(ctx, name)
		if missing != nil {
			return nil, exit.Hint(missing, "Nothing was started. If Drydock's cluster is another one than this, use --skip-node-check.")
		}
		if err != nil {
			return found, nil //nolint:nilerr // the check is a courtesy
		}
		found = append(found, n)
	}
	return found, nil
}

// PodsToMove counts the pods on a node that a drain would move: none of DaemonSets, none that are static, none that ended.
func (k *Nodes) PodsToMove(ctx context.Context, node string) (int, error) {
	options := metav1.ListOptions{FieldSelector: "spec.nodeName=" + node + ",status.phase!=Succeeded,status.phase!=Failed", Limit: 500}
	n := 0
	for {
		page, err := k.pods.List(ctx, options)
		if err != nil {
			return 0, fmt.Errorf("listing the pods of %s: %w", node, err)
		}
		for i := range page.Items {
			owner := metav1.GetControllerOf(&page.Items[i])
			_, static := page.Items[i].Annotations[corev1.MirrorPodAnnotationKey]
			if !static && (owner == nil || owner.Kind != "DaemonSet") {
				n++
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return n, nil
		}
	}
}
