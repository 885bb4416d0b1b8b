package site

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
)

// ShippedAccount is an account that Drydock ships.
type ShippedAccount struct {
	// User is how the API server knows it.
	User string
	// Files grant what it may.
	Files []string
	// Unneeded are permissions that no test needs, with the reason why the account has them.
	Unneeded map[string]string
}

// ShippedAccounts are those of the programs whose tests' requests are compared with what their roles grant.
var ShippedAccounts = map[string]ShippedAccount{
	"worker": {User: AccountUser, Files: roleFiles},
	"bridge": {User: accounts + "drydock-bridge", Files: []string{
		"../../../deploy/kubernetes/bridge/rbac.yaml", "../../../deploy/kubernetes/maintenance-operator/rbac.yaml",
		"../../../deploy/kubernetes/node-healthcheck/rbac.yaml", "../../../deploy/kubernetes/pika/rbac.yaml", "../../../deploy/kubernetes/kep/rbac.yaml",
	}},
}

// accounts is in the records of all requests of these accounts.
const accounts = "system:serviceaccount:drydock:"

// Granted returns what the files grant to the account: the rules of the roles that it is bound to.
func (a ShippedAccount) Granted() (all []authorizationv1.ResourceAttributes, err error) {
	objects, err := ObjectsOfAll(a.Files)
	if err != nil {
		return nil, err
	}
	bound := map[string]bool{}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.ClusterRole:
			rules["/"+o.Name] = o.Rules
		case *rbacv1.Role:
			rules[o.Namespace+"/"+o.Name] = o.Rules
		case *rbacv1.ClusterRoleBinding:
			bound["/"+o.RoleRef.Name] = bound["/"+o.RoleRef.Name] || a.isAmong(o.Subjects)
		case *rbacv1.RoleBinding:
			name := o.Namespace + "/" + o.RoleRef.Name
			bound[name] = bound[name] || a.isAmong(o.Subjects)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		namespace, _, _ := strings.Cut(name, "/")
		for _, rule := range rules[name] {
			if bound[name] {
				all = append(all, attributesOf(namespace, rule)...)
			}
		}
	}
	return all, nil
}

func (a ShippedAccount) isAmong(subjects []rbacv1.Subject) bool {
	return slices.ContainsFunc(subjects, func(s rbacv1.Subject) bool {
		return s.Kind == rbacv1.ServiceAccountKind && a.User == "system:serviceaccount:"+s.Namespace+":"+s.Name
	})
}

func attributesOf(namespace string, rule rbacv1.PolicyRule) (all []authorizationv1.ResourceAttributes) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			resource, sub, _ := strings.Cut(resource, "/")
			for _, verb := range rule.Verbs {
				for _, name := range names {
					all = append(all, authorizationv1.ResourceAttributes{
						Namespace: namespace, Group: group, Resource: resource, Subresource: sub, Verb: verb, Name: name,
					})
				}
			}
		}
	}
	return all
}

// HasAll reports whether the API server goes by all that the files grant: it follows new roles by a watch of its own.
func (a ShippedAccount) HasAll(ctx context.Context, account kubernetes.Interface) error {
	granted, err := a.Granted()
	if err != nil {
		return err
	}
	for _, g := range granted {
		if ok, err := May(ctx, account, g); err != nil || !ok {
			return fmt.Errorf("%s: %s is not in force: %w", a.User, permissionOf(g), err)
		}
	}
	return nil
}

// usedPermissions is a folder to which each package's run writes which permissions its programs have used; empty for none. All of them
// together tell which no test needs (make e2e).
var usedPermissions = os.Getenv("DRYDOCK_PERMISSIONS")

// keepUsedPermissions writes those that the tests of this process have used.
func keepUsedPermissions() error {
	if usedPermissions == "" {
		return nil
	}
	used := map[string]bool{}
	err := Shared.Lanes.requests(func(r Request) {
		used[r.User.Name+" "+permission(r.Object.Group, r.Object.Resource, r.Object.Subresource, r.Verb)] = true
	}, accounts)
	if err != nil {
		return err
	}
	text := strings.Join(slices.Sorted(maps.Keys(used)), "\n")
	return os.WriteFile(filepath.Join(usedPermissions, filepath.Base(Shared.Dir)), []byte(text), 0o644)
}

// Unused are the permissions of the shipped role that no test's program has used, by what runs have written to a folder.
func (a ShippedAccount) Unused(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("%s has no permissions that a test's program used: %w", folder, err)
	}
	used := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for line := range strings.SplitSeq(string(text), "\n") {
			if name, ok := strings.CutPrefix(line, a.User+" "); ok {
				used[name] = true
			}
		}
	}
	granted, err := a.Granted()
	if err != nil {
		return nil, err
	}
	var unused []string
	for _, g := range granted {
		// client-go lists where an API server cannot stream what is there.
		watch := g
		watch.Verb = "watch"
		fallback := g.Verb == "list" && slices.Contains(granted, watch)
		if name := permissionOf(g); !used[name] && !fallback && a.Unneeded[name] == "" {
			unused = append(unused, name)
		}
	}
	return unused, nil
}

func permissionOf(a authorizationv1.ResourceAttributes) string {
	return permission(a.Group, a.Resource, a.Subresource, a.Verb)
}

func permission(group, resource, sub, verb string) string {
	return strings.TrimSuffix(resource+"/"+sub, "/") + "." + group + " " + verb
}
