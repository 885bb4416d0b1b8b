package site

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"../../../deploy/kubernetes/rbac.yaml", "../../../deploy/kubernetes/rbac-delete-pods.yaml", "../../../deploy/kubernetes/rbac-volumes.yaml",
	"../../../deploy/kubernetes/rbac-eviction-requests.yaml",
}

const (
	accountName = "drydock-worker"
	// AccountUser is how the API server knows it.
	AccountUser = "system:serviceaccount:drydock:" + accountName
)

// ShippedObjects are what the files hold.
func ShippedObjects() ([]runtime.Object, error) { return ObjectsOfAll(roleFiles) }

// ObjectsOfAll are the objects that files hold.
func ObjectsOfAll(files []string) ([]runtime.Object, error) {
	var all []runtime.Object
	for _, file := range files {
		objects, err := ObjectsOf(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// ObjectsOf are the objects that a file holds.
func ObjectsOf(file string) ([]runtime.Object, error) {
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
	objects, err := ShippedObjects()
	if err != nil {
		return "", err
	}
	kube := cluster.Client
	for _, object := range objects {
		if err := CreateRole(ctx, kube, object); err != nil {
			return "", err
		}
	}
	file := filepath.Join(dir, "worker.kubeconfig")
	if err := WriteKubeconfig(ctx, cluster, "drydock", accountName, file); err != nil {
		return "", err
	}
	account, err := ClientOf(file)
	if err != nil {
		return "", err
	}
	// The API server follows new roles by a watch of its own.
	var last error
	err = wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, Patience, true, func(ctx context.Context) (ok bool, _ error) {
		ok, last = MayAll(ctx, account, "nodes", "pods", "volumeattachments.storage.k8s.io", "leases.coordination.k8s.io", "evictionrequests.lifecycle.k8s.io")
		return ok, nil
	})
	if err != nil {
		err = errors.Join(err, last)
	}
	return file, err
}

// CreateRole creates an object of the shipped files.
func CreateRole(ctx context.Context, kube kubernetes.Interface, object runtime.Object) error {
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

// Lasts are what the shipped roles grant last, by resource.
var Lasts = map[string]authorizationv1.ResourceAttributes{
	"nodes":                             {Resource: "nodes", Verb: "patch"},
	"pods":                              {Resource: "pods", Verb: "delete"},
	"volumeattachments.storage.k8s.io":  {Group: "storage.k8s.io", Resource: "volumeattachments", Verb: "list"},
	"leases.coordination.k8s.io":        {Group: "coordination.k8s.io", Resource: "leases", Verb: "get", Namespace: "kube-node-lease"},
	"evictionrequests.lifecycle.k8s.io": {Group: "lifecycle.k8s.io", Resource: "evictionrequests", Verb: "create"},
	"jobs.batch":                        {Group: "batch", Resource: "jobs", Verb: "create", Namespace: "drydock-jobs"},
	"daemonsets.apps":                   {Group: "apps", Resource: "daemonsets", Verb: "list"},
	"nodes/status":                      {Resource: "nodes", Subresource: "status", Verb: "patch"},
}

// MayAll reports whether the roles of all these resources are in force.
func MayAll(ctx context.Context, account kubernetes.Interface, resources ...string) (bool, error) {
	for _, name := range resources {
		if ok, err := May(ctx, account, Lasts[name]); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// WriteKubeconfig makes a kubeconfig with a token of a service account as its only credential.
func WriteKubeconfig(ctx context.Context, cluster *devstack.Cluster, namespace, account, file string) error {
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

// ClientOf is a client with the credentials of a kubeconfig.
func ClientOf(kubeconfig string) (kubernetes.Interface, error) {
	config, err := k8s.Config(k8s.Options{Kubeconfig: kubeconfig, QPS: 200, Burst: 400, UserAgent: "e2e"})
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// May asks the API server what an account may do.
func May(ctx context.Context, account kubernetes.Interface, what authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	answer, err := account.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	return err == nil && answer.Status.Allowed, err
}

// usedPermissions is a folder to which each package's run writes which permissions its workers have used; empty for none. All of them
// together tell which no test needs (make e2e).
var usedPermissions = os.Getenv("DRYDOCK_PERMISSIONS")

// keepUsedPermissions writes those that the tests of this process have used.
func keepUsedPermissions() error {
	if usedPermissions == "" {
		return nil
	}
	used := map[string]bool{}
	err := Shared.Lanes.requests(func(r Request) {
		if r.User.Name == AccountUser {
			used[permission(r.Object.Group, r.Object.Resource, r.Object.Subresource, r.Verb)] = true
		}
	}, AccountUser)
	if err != nil {
		return err
	}
	text := strings.Join(slices.Sorted(maps.Keys(used)), "\n")
	return os.WriteFile(filepath.Join(usedPermissions, filepath.Base(Shared.Dir)), []byte(text), 0o644)
}

// UnusedPermissions are those of the shipped role that no worker has used, by what runs have written to a folder.
func UnusedPermissions(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no permissions that a test's worker used: %w", folder, err)
	}
	used := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for name := range strings.SplitSeq(string(text), "\n") {
			used[name] = true
		}
	}
	objects, err := ShippedObjects()
	if err != nil {
		return nil, err
	}
	var unused []string
	for _, object := range objects {
		if role, ok := object.(*rbacv1.ClusterRole); ok {
			for _, rule := range role.Rules {
				unused = append(unused, unusedOf(rule, used)...)
			}
		}
	}
	return unused, nil
}

func unusedOf(rule rbacv1.PolicyRule, used map[string]bool) (unused []string) {
	resource, sub, _ := strings.Cut(rule.Resources[0], "/")
	for _, verb := range rule.Verbs {
		// client-go lists where an API server cannot stream what is there.
		fallback := verb == "list" && slices.Contains(rule.Verbs, "watch")
		if name := permission(rule.APIGroups[0], resource, sub, verb); !used[name] && !fallback {
			unused = append(unused, name)
		}
	}
	return unused
}

func permission(group, resource, sub, verb string) string {
	return strings.TrimSuffix(resource+"/"+sub, "/") + "." + group + " " + verb
}
