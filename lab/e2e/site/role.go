package site

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	texts, err := documents(file)
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for _, text := range texts {
		object, _, err := scheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// Manifests are the objects that a file holds, of whatever kinds.
func (s *Site) Manifests(file string) []*unstructured.Unstructured {
	s.Helper()
	texts, err := documents(file)
	s.NoError(err)
	var objects []*unstructured.Unstructured
	for _, text := range texts {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &o.Object); err != nil {
			s.Fatalf("%s: %v", file, err)
		}
		if len(o.Object) > 0 {
			objects = append(objects, o)
		}
	}
	return objects
}

// documents are the parts of a file of YAML.
func documents(file string) (texts [][]byte, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content))); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return texts, nil
		}
		if err != nil {
			return nil, err
		}
		texts = append(texts, text)
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
