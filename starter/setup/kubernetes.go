package setup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	manifests "drydock.dev/drydock/deploy/kubernetes"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/setup"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

const (
	// answersWithin is how soon an API server answers that is there.
	answersWithin = 10 * time.Second
	// inForce is how long an API server may take to go by new roles, which it follows by a watch.
	inForce = 30 * time.Second
)

// cluster is a Kubernetes, seen by the person who runs this, and by the account whose permissions are asked for.
type cluster struct {
	context, server string
	own             *rest.Config
	account         kube.Interface
}

// openCluster is nil if nobody names a cluster, and none is found. Whoever asks for permissions (as, with) wants one.
func openCluster(app *invocation.App, otherwise invocation.Cluster, as string, with bool) (*cluster, error) {
	config, name, err := app.Kubernetes(otherwise)
	switch {
	case clientcmd.IsEmptyConfig(errors.Unwrap(err)) && !app.NamesKubernetes() && otherwise == (invocation.Cluster{}) && as == "" && !with:
		return nil, nil // there is none to look at
	case err != nil:
		return nil, exit.UsageError("%w", err)
	}
	config.Timeout, config.QPS = answersWithin, -1
	config.UserAgent = "drydock-setup"
	asked := rest.CopyConfig(config)
	if as != "" {
		asked.Impersonate = rest.ImpersonationConfig{UserName: as}
	}
	account, err := kube.NewForConfig(asked)
	if err != nil {
		return nil, exit.UsageError("kubeconfig: %w", err)
	}
	return &cluster{context: name, server: config.Host, own: config, account: account}, nil
}

func (c *cluster) look(ctx context.Context, parts []setup.Part) setup.Cluster {
	found := setup.Cluster{Context: c.context, Server: c.server}
	own, err := kube.NewForConfig(c.own)
	if err == nil {
		var info version.Info
		if info, err = kube.ServerVersion(ctx, own); err == nil {
			found.Version = info.String()
		}
	}
	if err != nil {
		found.Unreachable = reason(fmt.Errorf("the API server at %s cannot be asked: %w", c.server, err))
		return found
	}
	who, err := c.account.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		found.Unasked = reason(err)
		return found
	}
	found.Account = who.Status.UserInfo.Username
	found.Denied, err = c.denied(ctx, parts)
	found.Unasked = reason(err)
	return found
}

// denied are the permissions that the account lacks, by part.
func (c *cluster) denied(ctx context.Context, parts []setup.Part) (map[string][]preflight.Need, error) {
	var requests []authorizationv1.ResourceAttributes
	for _, part := range parts {
		for _, need := range part.Needs {
			requests = append(requests, need.ResourceAttributes)
		}
	}
	allowed, err := k8s.MayDo(ctx, c.account, requests)
	if err != nil {
		return nil, err
	}
	denied, at := map[string][]preflight.Need{}, 0
	for _, part := range parts {
		for _, need := range part.Needs {
			if !allowed[at] {
				denied[part.Name] = append(denied[part.Name], need)
			}
			at++
		}
	}
	return denied, nil
}

// partsOf are manifests as what is asked for.
func partsOf(files []manifests.Part) []setup.Part {
	var parts []setup.Part
	for _, file := range files {
		part := setup.Part{Name: file.Name, File: manifests.Folder + "/" + file.File}
		for _, grant := range file.Grants {
			part.Needs = append(part.Needs, needsOf(grant)...)
		}
		parts = append(parts, part)
	}
	return parts
}

func needsOf(grant manifests.Grant) []preflight.Need {
	var needs []preflight.Need
	for _, group := range grant.APIGroups {
		for _, name := range grant.Resources {
			resource, sub, _ := strings.Cut(name, "/")
			for _, verb := range grant.Verbs {
				needs = append(needs, preflight.Need{ResourceAttributes: authorizationv1.ResourceAttributes{
					Group: group, Resource: resource, Subresource: sub, Verb: verb, Namespace: grant.Namespace,
				}})
			}
		}
	}
	return needs
}

// resources are those of the kinds that the manifests have.
var resources = map[string]string{
	"Namespace": "namespaces", "ServiceAccount": "serviceaccounts", "ClusterRole": "clusterroles",
	"ClusterRoleBinding": "clusterrolebindings", "Role": "roles", "RoleBinding": "rolebindings", "NetworkPolicy": "networkpolicies",
}

// apply applies the manifests of parts as the person who runs this, and waits until what they give is in force.
func (c *cluster) apply(ctx context.Context, files []manifests.Part, parts []setup.Part, names []string) error {
	client, err := dynamic.NewForConfig(c.own)
	if err != nil {
		return err
	}
	for _, file := range files {
		if !slices.Contains(names, file.Name) {
			continue
		}
		for _, object := range file.Objects {
			if err := applyObject(ctx, client, object); err != nil {
				return fmt.Errorf("%s: %w", file.File, err)
			}
		}
	}
	wanted := slices.DeleteFunc(slices.Clone(parts), func(p setup.Part) bool { return !slices.Contains(names, p.Name) })
	return await(ctx, inForce, "they were applied, and the API server does not go by them", func(ctx context.Context) (bool, error) {
		denied, err := c.denied(ctx, wanted)
		return len(denied) == 0, err
	})
}

func applyObject(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured) error {
	resource, ok := resources[object.GetKind()]
	if !ok {
		return errors.New("a manifest has a " + object.GetKind())
	}
	kind := object.GroupVersionKind()
	_, err := client.Resource(schema.GroupVersionResource{Group: kind.Group, Version: kind.Version, Resource: resource}).
		Namespace(object.GetNamespace()).Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: "drydock-setup", Force: true})
	return err
}
