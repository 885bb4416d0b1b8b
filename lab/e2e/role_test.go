package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/k8s"
)

// roleFiles are what Drydock ships for its worker's account, as far as all tests' workers run under it.
var roleFiles = []string{
	"../../deploy/kubernetes/rbac.yaml", "../../deploy/kubernetes/rbac-delete-pods.yaml", "../../deploy/kubernetes/rbac-volumes.yaml",
	"../../deploy/kubernetes/rbac-eviction-requests.yaml",
}

const (
	accountName = "drydock-worker"
	accountUser = "system:serviceaccount:drydock:" + accountName
)

// shippedObjects are what the files hold.
func shippedObjects() ([]runtime.Object, error) { return objectsOfAll(roleFiles) }

func objectsOfAll(files []string) ([]runtime.Object, error) {
	var all []runtime.Object
	for _, file := range files {
		objects, err := objectsOf(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

func objectsOf(file string) ([]runtime.Object, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, object)
	}
}

// createAccount creates the worker's account as shipped, and returns its kubeconfig.
func createAccount(ctx context.Context, cluster *devstack.Cluster, dir string) (string, error) {
	objects, err := shippedObjects()
	if err != nil {
		return "", err
	}
	kube := cluster.Client
	for _, object := range objects {
		if err := createRole(ctx, kube, object); err != nil {
			return "", err
		}
	}
	file := filepath.Join(dir, "worker.kubeconfig")
	if err := writeKubeconfig(ctx, cluster, "drydock", accountName, file); err != nil {
		return "", err
	}
	account, err := clientOf(file)
	if err != nil {
		return "", err
	}
	// The API server follows new roles by a watch of its own.
	var last error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (ok bool, _ error) {
		ok, last = mayAll(ctx, account, "nodes", "pods", "volumeattachments.storage.k8s.io", "leases.coordination.k8s.io", "evictionrequests.lifecycle.k8s.io")
		return ok, nil
	})
	if err != nil {
		err = errors.Join(err, last)
	}
	return file, err
}

// createRole creates an object of the shipped files.
func createRole(ctx context.Context, kube kubernetes.Interface, object runtime.Object) error {
	var err error
	switch o := object.(type) {
	case *corev1.Namespace:
		_, err = kube.CoreV1().Namespaces().Create(ctx, o, metav1.CreateOptions{})
	case *corev1.ServiceAccount:
		_, err = kube.CoreV1().ServiceAccounts(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRole:
		_, err = kube.RbacV1().ClusterRoles().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.ClusterRoleBinding:
		_, err = kube.RbacV1().ClusterRoleBindings().Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.Role:
		_, err = kube.RbacV1().Roles(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	case *rbacv1.RoleBinding:
		_, err = kube.RbacV1().RoleBindings(o.Namespace).Create(ctx, o, metav1.CreateOptions{})
	default:
		err = fmt.Errorf("%v have a %T", roleFiles, o)
	}
	return err
}

// lasts are what the shipped roles grant last, by resource.
var lasts = map[string]authorizationv1.ResourceAttributes{
	"nodes":                             {Resource: "nodes", Verb: "patch"},
	"pods":                              {Resource: "pods", Verb: "delete"},
	"volumeattachments.storage.k8s.io":  {Group: "storage.k8s.io", Resource: "volumeattachments", Verb: "list"},
	"leases.coordination.k8s.io":        {Group: "coordination.k8s.io", Resource: "leases", Verb: "get", Namespace: "kube-node-lease"},
	"evictionrequests.lifecycle.k8s.io": {Group: "lifecycle.k8s.io", Resource: "evictionrequests", Verb: "create"},
	"jobs.batch":                        {Group: "batch", Resource: "jobs", Verb: "create", Namespace: "drydock-jobs"},
	"daemonsets.apps":                   {Group: "apps", Resource: "daemonsets", Verb: "list"},
	"nodes/status":                      {Resource: "nodes", Subresource: "status", Verb: "patch"},
}

// mayAll tells whether the roles of all these resources are in force.
func mayAll(ctx context.Context, account kubernetes.Interface, resources ...string) (bool, error) {
	for _, name := range resources {
		if ok, err := may(ctx, account, lasts[name]); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// writeKubeconfig makes a kubeconfig with a token of a service account as its only credential.
func writeKubeconfig(ctx context.Context, cluster *devstack.Cluster, namespace, account, file string) error {
	seconds := int64((12 * time.Hour).Seconds())
	token, err := cluster.Client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return clientcmd.WriteToFile(*config, file)
}

func clientOf(kubeconfig string) (kubernetes.Interface, error) {
	config, err := k8s.Config(k8s.Options{Kubeconfig: kubeconfig, QPS: 200, Burst: 400, UserAgent: "e2e"})
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// may asks the API server what an account may do.
func may(ctx context.Context, account kubernetes.Interface, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := account.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

func TestTheWorkersRoleRefusesWhatItDoesNotNeed(t *testing.T) {
	t.Parallel()
	account, err := clientOf(shared.lanes.take(t).kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if ok, err := may(ctx, account, authorizationv1.ResourceAttributes{Resource: "pods", Subresource: "eviction", Verb: "create"}); !ok {
		t.Fatalf("it may not evict: %v", err)
	}
	for _, what := range []string{
		"* *", "nodes create", "nodes update", "nodes delete", "nodes deletecollection", "nodes/status patch", "nodes/proxy get",
		"pods get", "pods create", "pods update", "pods patch", "pods deletecollection", "pods/exec create", "pods/ephemeralcontainers patch",
		"pods/log get", "secrets get", "secrets list", "configmaps list", "serviceaccounts/token create", "namespaces delete",
		"persistentvolumeclaims delete", "events delete",
		"daemonsets.apps patch", "deployments.apps patch", "replicasets.apps delete", "statefulsets.apps patch",
		"poddisruptionbudgets.policy patch", "poddisruptionbudgets.policy delete", "volumeattachments.storage.k8s.io delete",
		"clusterroles.rbac.authorization.k8s.io bind", "clusterroles.rbac.authorization.k8s.io create",
	} {
		object, verb, _ := strings.Cut(what, " ")
		object, group, _ := strings.Cut(object, ".")
		resource, sub, _ := strings.Cut(object, "/")
		ok, err := may(ctx, account, authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub, Verb: verb})
		if err != nil || ok {
			t.Errorf("%s: allowed %v, %v", what, ok, err)
		}
	}
	if _, err := account.CoreV1().Secrets("kube-system").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("secrets: %v", err)
	}
	dry := metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
	if err := account.CoreV1().Nodes().Delete(ctx, "worker-01", dry); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a node: %v", err)
	}
}

// unusedPermissions are those of the shipped role that no test's worker has used. It can be told after all tests only.
func unusedPermissions() ([]string, error) {
	used := map[string]bool{}
	err := shared.lanes.requests(func(r request) {
		if r.User.Name == accountUser {
			used[permission(r.Object.Group, r.Object.Resource, r.Object.Subresource, r.Verb)] = true
		}
	}, accountUser)
	if err != nil {
		return nil, err
	}
	objects, err := shippedObjects()
	if err != nil {
		return nil, err
	}
	var unused []string
	for _, object := range objects {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			resource, sub, _ := strings.Cut(rule.Resources[0], "/")
			for _, verb := range rule.Verbs {
				// client-go lists where an API server cannot stream what is there.
				fallback := verb == "list" && slices.Contains(rule.Verbs, "watch")
				if name := permission(rule.APIGroups[0], resource, sub, verb); !used[name] && !fallback {
					unused = append(unused, name)
				}
			}
		}
	}
	return unused, nil
}

func permission(group, resource, sub, verb string) string {
	return strings.TrimSuffix(resource+"/"+sub, "/") + "." + group + " " + verb
}

// ranAll tells whether no flag chose among the tests.
func ranAll() bool {
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return !testing.Short()
}
