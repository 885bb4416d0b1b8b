package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/deploy/kubernetes"
)

// inForce is how long an API server may take to serve new definitions, and to go by new roles.
const inForce = 30 * time.Second

// bridge is what the bridge of this cluster runs with.
type bridge struct {
	// account is whom it acts as; empty for the user.
	account string
	// approvals means that the policies are there without which nobody may approve by an annotation.
	approvals bool
}

// runBridge makes sure that a bridge runs where one is wanted, and that none runs otherwise. worker is the account of the worker.
func (s *site) runBridge(ctx context.Context, r *state, worker string) (began bool, err error) {
	if s.wantsBridge != nil {
		r.Bridge = *s.wantsBridge
	}
	if !r.Bridge {
		return false, s.endBridge(ctx)
	}
	b, err := s.prepareBridge(ctx, r, worker)
	if err != nil {
		return false, err
	}
	kubeconfig, err := s.cluster.kubeconfig(b.account)
	if err == nil {
		err = s.folder.write(bridgeKubeconfigFile, kubeconfig)
	}
	if err != nil {
		return false, err
	}
	args, err := s.bridgeArgs(b)
	if err != nil {
		return false, err
	}
	r.BridgeAccount = b.account
	return s.startBridge(ctx, r, args)
}

// endBridge stops a bridge that is not wanted any more. It says nothing where there never was one.
func (s *site) endBridge(ctx context.Context) error {
	is := s.folder.service("bridge")
	if !is.wasStarted() {
		return nil
	}
	stopped, _, err := is.stop(ctx)
	if stopped {
		s.say("bridge is stopped; its objects, and what was applied for it, stay in the cluster.")
	}
	return err
}

// bridgeArgs are the flags of the bridge: the cluster and the task queue are those of the worker's configuration.
func (s *site) bridgeArgs(b bridge) ([]string, error) {
	text, err := os.ReadFile(s.folder.path(configFile))
	if err != nil {
		return nil, err
	}
	var config struct{ Cluster, TaskQueue string }
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", s.folder.path(configFile), err)
	}
	var args []string
	if config.Cluster != "" {
		args = append(args, "--cluster="+config.Cluster)
	}
	if config.TaskQueue != "" {
		args = append(args, "--task-queue="+config.TaskQueue)
	}
	if b.account == "" {
		args = append(args, "--leader-election=false") // the namespace of its Lease need not be there
	} else {
		args = append(args, "--lease-namespace="+kubernetes.BridgeNamespace)
	}
	if b.approvals {
		args = append(args, "--approvals")
	}
	return args, nil
}

// startBridge starts the bridge, unless it runs already.
func (s *site) startBridge(ctx context.Context, r *state, args []string) (began bool, err error) {
	is := s.folder.service("bridge")
	binary, err := devstack.Binary("drydock-bridge")
	if err != nil {
		return false, err
	}
	made, err := madeOf(binary, s.folder.path(bridgeKubeconfigFile), s.folder.path(profileFile))
	if err != nil {
		return false, err
	}
	made += " " + s.temporal.Address + " " + strings.Join(args, " ")
	file, err := s.ready(ctx, is, made)
	if err != nil {
		return false, err
	}
	if file == nil {
		return false, errors.Join(keeps(bridgePort, s.ports.Bridge, r.Ports.Bridge), keeps(bridgeProbesPort, s.ports.BridgeProbes, r.Ports.BridgeProbes),
			s.polls(ctx, "bridge", r.Ports.BridgeProbes))
	}
	defer file.Close()
	if err := errors.Join(
		s.choose("the bridge", bridgePort, &r.Ports.Bridge, s.ports.Bridge, usual.Bridge, r.Ports),
		s.choose("the bridge's probes", bridgeProbesPort, &r.Ports.BridgeProbes, s.ports.BridgeProbes, usual.BridgeProbes, r.Ports),
		s.folder.save(*r),
	); err != nil {
		return false, err
	}
	s.say("Starting drydock-bridge.")
	started, err := devstack.LaunchBridge(devstack.BridgeOptions{
		Dir: string(s.folder), Name: "bridge", Kubeconfig: s.folder.path(bridgeKubeconfigFile), Temporal: s.temporal, Args: args,
		Port: r.Ports.Bridge, ProbesPort: r.Ports.BridgeProbes, Detach: true, Held: file,
	})
	if err != nil {
		return false, err
	}
	if err := is.started(file, running{PID: started.PID(), Made: made}); err != nil {
		return false, err
	}
	return true, started.Ready(ctx)
}

// wasStarted reports whether the service was ever started from this folder.
func (s service) wasStarted() bool {
	_, err := os.Stat(s.file)
	return !errors.Is(err, fs.ErrNotExist)
}

// prepareBridge applies what the bridge needs: the definitions in any case, its account and the policies where the user lets it.
func (s *site) prepareBridge(ctx context.Context, r *state, worker string) (b bridge, err error) {
	manifests, err := kubernetes.Bridge()
	if err != nil {
		return b, err
	}
	a, err := newApplier(s.cluster)
	if err != nil {
		return b, err
	}
	definitions, err := a.lacking(ctx, manifests.Definitions)
	if err != nil {
		return b, err
	}
	if len(definitions) > 0 {
		s.say("\nThe bridge serves objects of Kubernetes. Their definitions are applied, as you:")
		s.list(definitions)
		if err := a.apply(ctx, definitions); err != nil {
			return b, err
		}
	}
	if err := s.cluster.serves(ctx, manifests.Definitions); err != nil {
		return b, err
	}
	more := []kubernetes.Manifest{manifests.Account}
	if b.approvals, err = s.cluster.hasPolicies(); err != nil {
		return b, err
	}
	if b.approvals {
		more = append(more, manifests.Policies)
	} else {
		s.say("The policies that say who may approve by an annotation need Kubernetes 1.36: annotations do not approve here.")
	}
	switch own, err := s.bridgeMay(ctx, r, worker, a, more); {
	case err != nil:
		return b, err
	case !own:
		s.say("The bridge works with your own credentials of that context. Annotations do not approve.")
		return bridge{}, nil
	}
	b.account = kubernetes.BridgeAccount
	if err := s.cluster.goesBy(ctx, b.account); err != nil {
		return b, err
	}
	if a.changed && b.approvals {
		s.awaitPolicies(ctx, a)
	}
	return b, nil
}

// awaitPolicies waits until the API server takes objects under the policies, of which it learns later than of the objects' definition.
func (s *site) awaitPolicies(ctx context.Context, a *applier) {
	var last error
	if err := s.cluster.await(ctx, "", func(ctx context.Context) (bool, error) {
		last = a.tryObject(ctx)
		return last == nil, nil
	}); err != nil {
		s.say("The API server takes no object yet: %v.", last)
	}
}

// bridgeMay applies what the account of the bridge needs, and reports whether the bridge has that account. A no is remembered.
func (s *site) bridgeMay(ctx context.Context, r *state, worker string, a *applier, manifests []kubernetes.Manifest) (bool, error) {
	if worker == "" {
		return false, nil
	}
	lacking, err := a.lacking(ctx, manifests)
	switch {
	case err != nil:
		return false, err
	case len(lacking) == 0:
		return true, nil
	case r.BridgeDeclined && s.applyRBAC == nil:
		s.say("As you have said, the bridge gets no account of its own (APPLY_RBAC=1 gives it one).")
		return false, nil
	}
	s.say("\nThe bridge can have an account of its own, with no more permissions than it needs, and policies that say who may ask and approve.\nTo be applied, as you:")
	s.list(lacking)
	s.say("The bridge then acts as %s, by impersonation with your credentials.", kubernetes.BridgeAccount)
	apply := false
	switch {
	case s.applyRBAC != nil:
		apply = *s.applyRBAC
	case s.asks:
		apply = s.confirm("Apply it?")
	default:
		s.say("APPLY_RBAC=1 applies it.")
	}
	r.BridgeDeclined = !apply && (s.asks || s.applyRBAC != nil)
	if !apply {
		return false, nil
	}
	return true, a.apply(ctx, lacking)
}

// list says what is in manifests.
func (s *site) list(manifests []kubernetes.Manifest) {
	for _, m := range manifests {
		s.say("  %s/%s", kubernetes.Folder, m.File)
		for _, object := range m.Objects {
			s.say("    %s %s", object.GetKind(), strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
		}
	}
}

// hasPolicies reports whether the API server has policies that write into objects.
func (c *cluster) hasPolicies() (bool, error) {
	resources, err := c.client.Discovery().ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1")
	if err != nil {
		return false, fmt.Errorf("finding the kinds of admission policies: %w", err)
	}
	return slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Kind == "MutatingAdmissionPolicy" }), nil
}

// serves waits until the API server serves the objects of definitions.
func (c *cluster) serves(ctx context.Context, definitions []kubernetes.Manifest) error {
	return c.await(ctx, "the definitions were applied, and the API server does not serve their objects", func(context.Context) (bool, error) {
		for _, d := range definitions {
			for _, object := range d.Objects {
				plural, group, _ := strings.Cut(object.GetName(), ".")
				resources, err := c.client.Discovery().ServerResourcesForGroupVersion(group + "/" + versionOf(object))
				if apierrors.IsNotFound(err) {
					return false, nil
				}
				if err != nil {
					return false, err
				}
				if !slices.ContainsFunc(resources.APIResources, func(r metav1.APIResource) bool { return r.Name == plural }) {
					return false, nil
				}
			}
		}
		return true, nil
	})
}

// versionOf is the version of a definition that is stored.
func versionOf(definition *unstructured.Unstructured) string {
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// goesBy waits until the API server goes by the roles of the bridge's account.
func (c *cluster) goesBy(ctx context.Context, account string) error {
	config, err := clientcmd.NewDefaultClientConfig(c.whole, nil).ClientConfig()
	if err != nil {
		return err
	}
	config.Timeout, config.Impersonate.UserName = answersWithin, account
	as, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	return c.await(ctx, "the roles of "+account+" were applied, and the API server does not go by them", func(ctx context.Context) (bool, error) {
		for _, need := range []authorizationv1.ResourceAttributes{
			{Group: "drydock.dev", Resource: "nodemaintenances", Verb: "watch"},
			{Group: "coordination.k8s.io", Resource: "leases", Verb: "create", Namespace: kubernetes.BridgeNamespace},
		} {
			review, err := as.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &need},
			}, metav1.CreateOptions{})
			if err != nil || !review.Status.Allowed {
				return false, err
			}
		}
		return true, nil
	})
}

// await waits until something holds.
func (c *cluster) await(ctx context.Context, otherwise string, holds wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, inForce, true, holds)
	if wait.Interrupted(err) {
		return errors.New(cmp.Or(otherwise, err.Error()))
	}
	return err
}
