package kubernetes_test

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"drydock.dev/drydock/deploy/kubernetes"
)

const rolesOfBridge = "bridge/rbac.yaml"

// The definitions are those of the objects that the account of the bridge watches.
func TestTheBridgeHasTheDefinitionsOfWhatItServes(t *testing.T) {
	m, err := kubernetes.Bridge()
	if err != nil {
		t.Fatal(err)
	}
	_, objects := read(t, rolesOfBridge)
	var want, got []string
	for _, object := range objects {
		if role, ok := object.(*rbacv1.ClusterRole); ok && role.Name == "drydock-bridge" {
			for _, r := range role.Rules {
				if r.APIGroups[0] == "drydock.dev" && slices.Contains(r.Verbs, "watch") {
					want = append(want, r.Resources...)
				}
			}
		}
	}
	for _, d := range m.Definitions {
		for _, object := range d.Objects {
			got = append(got, strings.TrimSuffix(object.GetName(), ".drydock.dev"))
		}
	}
	slices.Sort(want)
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("definitions of %q, want %q", got, want)
	}
	for _, file := range m.Files() {
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	if len(m.Account.Objects) != len(objects) || len(m.Policies.Objects) == 0 {
		t.Errorf("%d objects of the account, %d policies", len(m.Account.Objects), len(m.Policies.Objects))
	}
}

// Each role of people adds up ClusterRoles by a label of its own, at least one is in the file, and only the viewer's is a part of Kubernetes' own.
func TestRolesOfPeopleAddUpOthers(t *testing.T) {
	_, objects := read(t, rolesOfBridge)
	parts, sums := map[string]int{}, map[string]bool{}
	for _, object := range objects {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for label := range role.Labels {
			if whose, ok := strings.CutPrefix(label, "rbac.drydock.dev/aggregate-to-"); ok {
				parts["drydock-"+whose]++
			} else if label != "rbac.authorization.k8s.io/aggregate-to-view" || role.Name != "drydock-viewer" {
				t.Errorf("%s has label %s", role.Name, label)
			}
		}
		if role.AggregationRule == nil {
			continue
		}
		sums[role.Name] = true
		selectors := role.AggregationRule.ClusterRoleSelectors
		label := "rbac.drydock.dev/aggregate-to-" + strings.TrimPrefix(role.Name, "drydock-")
		if len(role.Rules) > 0 || len(selectors) != 1 || selectors[0].MatchLabels[label] != "true" {
			t.Errorf("%s adds up %v, and has %v; want label %s and nothing of its own", role.Name, selectors, role.Rules, label)
		}
	}
	if want := []string{"drydock-approver", "drydock-operator", "drydock-requestor", "drydock-viewer"}; !slices.Equal(slices.Sorted(maps.Keys(sums)), want) ||
		!slices.Equal(slices.Sorted(maps.Keys(parts)), want) {
		t.Errorf("roles %v add up %v, want %q", sums, parts, want)
	}
}

// Every message that the policies know can be said by somebody.
func TestEachMessageIsInARoleOfPeople(t *testing.T) {
	text, err := os.ReadFile("bridge/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, declared, _ := strings.Cut(string(text), "- name: messages\n")
	declared, _, _ = strings.Cut(declared, "- name: ")
	_, objects := read(t, rolesOfBridge)
	granted := granted(objects)
	found := 0
	for _, list := range regexp.MustCompile(`(?:"(\w+)":\s*)?\[([^\]]*)\]`).FindAllStringSubmatch(declared, -1) {
		resource := cmp.Or(list[1], "nodemaintenances")
		for _, message := range regexp.MustCompile(`"([\w-]+)"`).FindAllStringSubmatch(list[2], -1) {
			found++
			if permission := resource + "/" + message[1] + ".drydock.dev update"; !slices.Contains(granted, permission) {
				t.Errorf("no role grants %s", permission)
			}
		}
	}
	if found < 6 {
		t.Errorf("the policies have %d messages in\n%s", found, declared)
	}
}
