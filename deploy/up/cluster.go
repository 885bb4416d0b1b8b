package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/starter/terminal"
)

// cluster is the user's Kubernetes, seen with the user's own credentials.
type cluster struct {
	// files are where its context was read from, whole is what they say, of this context alone.
	files   []string
	whole   clientcmdapi.Config
	context string
	// current is the context that kubectl takes.
	current string
	server  string
	// id tells it from another one of the same name.
	id      string
	version string
	// nodes are their names, as far as they may be listed; the first is one to begin with.
	nodes []string
	// held are those that a Drydock holds.
	held []string
	// others are other Drydocks that serve it, as far as is known.
	others []string
	client kubernetes.Interface
}

// shownHeld are the held nodes that are named.
const shownHeld = 5

// answersWithin is how soon an API server answers that is there.
const answersWithin = 10 * time.Second

// findCluster reads the context: the one that is named, or the remembered one, or the current one.
func findCluster(ctx context.Context, name string, remembered state) (*cluster, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	if os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" && len(remembered.Kubeconfig) > 0 {
		rules.Precedence = remembered.Kubeconfig
	}
	whole, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	files := strings.Join(rules.Precedence, string(filepath.ListSeparator))
	if len(whole.Contexts) == 0 {
		return nil, fmt.Errorf("there is no kubeconfig (%s): set KUBECONFIG to the path of one; kubectl config get-contexts shows what is in it", files)
	}
	for _, next := range []string{remembered.Context, whole.CurrentContext} {
		if name == "" {
			name = next
		}
	}
	contexts := strings.Join(slices.Sorted(maps.Keys(whole.Contexts)), ", ")
	switch {
	case name == "":
		return nil, fmt.Errorf("%s has no current context: CONTEXT=name takes one of its contexts %s", files, contexts)
	case whole.Contexts[name] == nil:
		return nil, fmt.Errorf("context %s: %s has the contexts %s: CONTEXT=name takes one of them", name, files, contexts)
	}
	current := whole.CurrentContext
	whole.CurrentContext = name
	if err := clientcmdapi.MinifyConfig(whole); err != nil {
		return nil, fmt.Errorf("kubeconfig: context %s: %w", name, err)
	}
	c := &cluster{files: absolute(rules.Precedence), whole: *whole, context: name, current: current}
	if err := c.ask(ctx); err != nil {
		return c, err
	}
	c.others = others(ctx, c.client, remembered.ID)
	return c, nil
}

// reachable reports whether there is a cluster to work with.
func reachable(ctx context.Context, o options) error {
	remembered, err := folder(o.folder).load()
	if err != nil {
		return err
	}
	_, err = findCluster(ctx, o.context, remembered)
	return err
}

func absolute(paths []string) []string {
	var all []string
	for _, path := range paths {
		if whole, err := filepath.Abs(path); err == nil {
			path = whole
		}
		all = append(all, path)
	}
	return all
}

// ask finds out which cluster it is, and whether it answers.
func (c *cluster) ask(ctx context.Context) error {
	config, err := clientcmd.NewDefaultClientConfig(c.whole, nil).ClientConfig()
	if err != nil {
		return fmt.Errorf("kubeconfig: context %s: %w", c.context, err)
	}
	config.Timeout = answersWithin
	c.server, c.id = config.Host, config.Host
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("kubeconfig: context %s: %w", c.context, err)
	}
	c.client = client
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("context %s: the API server at %s cannot be asked: %w (CONTEXT=name takes another cluster)", c.context, c.server, err)
	}
	c.version = version.String()
	// Whoever may not look is told less: neither is needed.
	if system, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{}); err == nil {
		c.id = string(system.UID)
	}
	if nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err == nil {
		c.nodes = namesOf(nodes.Items)
		c.held = namesOf(slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return n.Annotations[api.HoldersAnnotation] == "" }))
	}
	return nil
}

// namesOf are the names of nodes, those of the control plane last.
func namesOf(nodes []corev1.Node) []string {
	controls := func(n corev1.Node) bool {
		_, ok := n.Labels["node-role.kubernetes.io/control-plane"]
		return ok
	}
	slices.SortFunc(nodes, func(a, b corev1.Node) int {
		if controls(a) != controls(b) {
			return map[bool]int{true: 1, false: -1}[controls(a)]
		}
		return strings.Compare(a.Name, b.Name)
	})
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	return names
}

func (c *cluster) String() string {
	text := fmt.Sprintf("context %s (%s, %s", c.context, c.server, c.version)
	if len(c.nodes) > 0 {
		text += ", " + number.Of(len(c.nodes), "node")
	}
	return text + ")"
}

// settle makes sure that it is the cluster that is meant: maintenances of one must never go on in another.
func (c *cluster) settle(o options, remembered state) error {
	switch {
	case remembered.Cluster == c.id:
		o.say("Kubernetes: %s, as the last time.", c)
		if c.current != c.context && c.current != "" {
			o.say("The current context is another one, %s. Its nodes are not this Drydock's.", c.current)
		}
		c.warnOfOthers(o)
		return nil
	case remembered.Cluster != "":
		return fmt.Errorf("%s has the maintenances of another cluster, context %s: %s is not that.\n"+
			"CONTEXT=%s goes on with that one; UP_DIR=folder keeps another one's in a folder of its own; where the cluster is gone for good, remove %s",
			o.folder, remembered.Context, c, remembered.Context, o.folder)
	}
	o.say("Kubernetes: %s.\nDrydock takes its nodes out of service when it is told to, and only then.", c)
	c.warnOfOthers(o)
	if len(c.held) > 0 {
		o.say("Warning: another Drydock works on it, and holds %s (annotation %s). Two keep limits of their own and know nothing of each\n"+
			"other's: go on with that one, by its UP_DIR or its Temporal server, unless it is gone for good.", terminal.SomeOf(c.held, shownHeld), api.HoldersAnnotation)
	}
	switch {
	case o.yes:
		return nil
	case !o.asks:
		return errors.New("there is no terminal to confirm on: YES=1 says that it is the right cluster, CONTEXT=name takes another one")
	case !o.confirm("Is it the right cluster?"):
		return errors.New("not confirmed; nothing was done (CONTEXT=name takes another one)")
	}
	return nil
}

// warnOfOthers says which Drydocks serve the cluster too.
func (c *cluster) warnOfOthers(o options) {
	for _, other := range c.others {
		o.say("Warning: another Drydock serves this cluster: %s. Two keep limits of their own and know nothing of each other's.", other)
	}
}

// kubeconfig is the worker's: the context alone, as the user or, by impersonation, as an account with fewer rights. Files
// and commands that it names stay where they are, so that credentials that are renewed there are new here.
func (c *cluster) kubeconfig(account string) ([]byte, error) {
	own := *c.whole.DeepCopy()
	if account != "" {
		name := own.Contexts[c.context].AuthInfo
		user := clientcmdapi.NewAuthInfo()
		if own.AuthInfos[name] != nil {
			user = own.AuthInfos[name].DeepCopy()
		}
		user.Impersonate, user.ImpersonateUID, user.ImpersonateGroups, user.ImpersonateUserExtra = account, "", nil, nil
		if own.AuthInfos == nil {
			own.AuthInfos = map[string]*clientcmdapi.AuthInfo{}
		}
		own.AuthInfos[name] = user
	}
	return clientcmd.Write(own)
}
