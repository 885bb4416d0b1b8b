package bridge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/lab/e2e/site"
)

// attributesOf are those of a permission such as "leases.coordination.k8s.io update".
func attributesOf(permission string) authorizationv1.ResourceAttributes {
	object, verb, _ := strings.Cut(permission, " ")
	object, group, _ := strings.Cut(object, ".")
	resource, sub, _ := strings.Cut(object, "/")
	return authorizationv1.ResourceAttributes{Group: group, Resource: resource, Subresource: sub, Verb: verb}
}

func TestTheBridgesRoleRefusesWhatItDoesNotNeed(t *testing.T) {
	b := newBridged(t, "")
	for _, permission := range []string{
		"* *", "nodes get", "nodes list", "nodes patch", "nodes maintain", "pods list", "pods delete", "pods/eviction create", "secrets get", "configmaps list",
		"nodemaintenances.drydock.dev create", "nodemaintenances.drydock.dev update", "nodemaintenances.drydock.dev delete",
		"nodemaintenances/status.drydock.dev update", "nodemaintenances/approve.drydock.dev update", "nodemaintenances/finalizers.drydock.dev update",
		"customresourcedefinitions.apiextensions.k8s.io get", "clusterroles.rbac.authorization.k8s.io bind", "serviceaccounts/token create",
		"events delete", "events.events.k8s.io delete", "leases.coordination.k8s.io create", "leases.coordination.k8s.io update",
	} {
		if ok, err := site.May(b.Ctx, b.account, attributesOf(permission)); err != nil || ok {
			t.Errorf("%s: allowed %v, %v", permission, ok, err)
		}
	}
	for name, want := range map[string]bool{"drydock-bridge": true, "another": false} {
		lease := authorizationv1.ResourceAttributes{Namespace: "drydock", Group: "coordination.k8s.io", Resource: "leases", Verb: "update", Name: name}
		if ok, err := site.May(b.Ctx, b.account, lease); err != nil || ok != want {
			t.Errorf("lease %s: allowed %v, %v", name, ok, err)
		}
	}
}

// What the roles of people grant, and what each of them does not.
var granted = map[string]struct{ yes, no []string }{
	"drydock-viewer": {
		[]string{"nodemaintenances get", "nodemaintenances list", "nodemaintenances watch", "maintenanceplans list", "healthchecks watch"},
		[]string{"nodemaintenances create", "nodemaintenances patch", "nodemaintenances delete", "nodemaintenances/approve update", "nodemaintenances/done update"},
	},
	"drydock-requestor": {
		[]string{"nodemaintenances create", "nodemaintenances delete", "nodemaintenances/done update", "nodemaintenances/failed update", "nodemaintenances/cancel update", "maintenanceplans create", "maintenanceplans/cancel update"},
		[]string{"healthchecks create", "maintenanceplans/approve update", "nodemaintenances/approve update", "nodemaintenances/retry update", "nodemaintenances/finalizers update", "nodemaintenances/status patch"},
	},
	"drydock-approver": {
		[]string{"nodemaintenances patch", "nodemaintenances/approve update", "nodemaintenances/deny update", "maintenanceplans/approve update"},
		[]string{"maintenanceplans create", "healthchecks patch", "nodemaintenances create", "nodemaintenances delete", "nodemaintenances/done update", "nodemaintenances/status patch"},
	},
	"drydock-operator": {
		[]string{"nodemaintenances patch", "nodemaintenances delete", "nodemaintenances/retry update", "nodemaintenances/cancel update", "nodemaintenances/finalizers update",
			"maintenanceplans/set-stage update", "healthchecks create", "healthchecks/remove update"},
		[]string{"maintenanceplans/approve update", "healthchecks/status patch", "nodemaintenances create", "nodemaintenances/approve update", "nodemaintenances/status patch"},
	},
	// Those of Kubernetes that they are a part of, or not.
	"view":  {[]string{"nodemaintenances get", "nodemaintenances list"}, []string{"nodemaintenances create", "nodemaintenances patch"}},
	"edit":  {[]string{"nodemaintenances get"}, []string{"nodemaintenances create", "nodemaintenances patch", "nodemaintenances/approve update"}},
	"admin": {[]string{"nodemaintenances get"}, []string{"nodemaintenances create", "nodemaintenances delete", "nodemaintenances/approve update"}},
}

func TestRolesOfPeopleGrantWhatTheyAreFor(t *testing.T) {
	b := newBridged(t, "")
	may := func(user, permission string) bool {
		resource, verb, _ := strings.Cut(permission, " ")
		attributes := attributesOf(resource + ".drydock.dev " + verb)
		review, err := b.Kube.AuthorizationV1().SubjectAccessReviews().Create(b.Ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &attributes},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return review.Status.Allowed
	}
	roles := slices.Sorted(maps.Keys(granted))
	for _, role := range roles {
		user := "only-" + role
		if _, err := b.Kube.RbacV1().ClusterRoleBindings().Create(b.Ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: b.ID + "-" + user},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range roles {
		user := "only-" + role
		for _, permission := range granted[role].yes {
			b.Eventually(role+" grants "+permission, func() error {
				if !may(user, permission) {
					return fmt.Errorf("it does not")
				}
				return nil
			})
		}
		for _, permission := range granted[role].no {
			if may(user, permission) {
				t.Errorf("%s grants %s", role, permission)
			}
		}
	}

	// A file of somebody else's adds to a role.
	more := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: b.ID + "-more", Labels: map[string]string{"rbac.drydock.dev/aggregate-to-operator": "true"}},
		Rules:      []rbacv1.PolicyRule{site.Rule("drydock.dev", "others", "patch")},
	}
	if _, err := b.Kube.RbacV1().ClusterRoles().Create(b.Ctx, more, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	b.Eventually("drydock-operator grants what was added", func() error {
		if !may("only-drydock-operator", "others patch") {
			return fmt.Errorf("it does not")
		}
		return nil
	})
	if err := b.Kube.RbacV1().ClusterRoles().Delete(b.Ctx, more.Name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}
