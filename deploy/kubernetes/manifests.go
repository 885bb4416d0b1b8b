// Package kubernetes has the manifests of the worker's account, what it needs in any case and a part for each feature, and those of the bridge.
package kubernetes

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// Folder is where the files are in the source tree.
const Folder = "deploy/kubernetes"

// Base is the part that every worker needs; the others are applied after it.
const Base = "base"

// Account is the user whom the parts give their permissions to.
const Account = "system:serviceaccount:drydock:drydock-worker"

//go:embed rbac*.yaml
var files embed.FS

// Part is one file of permissions.
type Part struct {
	// Name is "base", or that of a feature such as "volumes".
	Name string
	// File is its name in Folder.
	File string
	// Objects are what is in it, in its order.
	Objects []*unstructured.Unstructured
	// Grants are the rules of its roles.
	Grants []Grant
}

// Grant is a rule, cluster-wide where it has no namespace.
type Grant struct {
	Namespace string
	rbacv1.PolicyRule
}

// Parts are all there are: the base first, then by name.
func Parts() ([]Part, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var parts []Part
	for _, entry := range entries {
		content, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, err
		}
		part, err := read(entry.Name(), string(content))
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", Folder, entry.Name(), err)
		}
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b Part) int {
		if a.Name == Base || b.Name == Base {
			return map[bool]int{true: -1, false: 1}[a.Name == Base]
		}
		return strings.Compare(a.Name, b.Name)
	})
	return parts, nil
}

func read(file, content string) (Part, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(strings.TrimSuffix(file, ".yaml"), "rbac"), "-")
	if name == "" {
		name = Base
	}
	part := Part{Name: name, File: file}
	var err error
	if part.Objects, err = objects(content); err != nil {
		return part, err
	}
	for _, object := range part.Objects {
		if kind := object.GetKind(); kind != "ClusterRole" && kind != "Role" {
			continue
		}
		var role rbacv1.Role // a ClusterRole's rules have the same form
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role); err != nil {
			return part, err
		}
		for _, rule := range role.Rules {
			part.Grants = append(part.Grants, Grant{Namespace: role.Namespace, PolicyRule: rule})
		}
	}
	return part, nil
}

// objects are those of a file.
func objects(content string) (all []*unstructured.Unstructured, err error) {
	for document := range strings.SplitSeq(content, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, nil
}
