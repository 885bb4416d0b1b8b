package kubernetes_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"

	"drydock.dev/drydock/deploy/kubernetes"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
)

func TestThePartsAreTheFiles(t *testing.T) {
	parts, err := kubernetes.Parts()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	permissions := map[string][]string{}
	for _, part := range parts {
		names = append(names, part.Name)
		var want []string
		_, objects := read(t, part.File)
		if len(objects) != len(part.Objects) {
			t.Errorf("%s: %d objects, want %d", part.File, len(part.Objects), len(objects))
		}
		want = granted(objects)
		var got []string
		for _, g := range part.Grants {
			before := ""
			if g.Namespace != "" {
				before = g.Namespace + ": "
			}
			for _, resource := range g.Resources {
				for _, verb := range g.Verbs {
					got = append(got, before+strings.TrimSuffix(resource+"."+g.APIGroups[0], ".")+" "+verb)
				}
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s grants %q, want %q", part.File, got, want)
		}
		permissions[part.Name] = got
	}
	if want := []string{"base", "cluster-api", "daemonsets", "delete-pods", "eviction-requests", "health", "jobs", "metrics", "node-conditions", "objects", "profiles", "volumes", "work"}; !slices.Equal(names, want) {
		t.Errorf("parts %q, want %q", names, want)
	}
	// What a preflight asks for is what the files give, each the one that its finding names.
	drain := spec.Drain{Mode: spec.ModeEvict, WaitForVolumeDetach: true, Via: spec.ViaEvictionRequest, Escalation: []spec.Rung{{Do: spec.Kill}}}
	for _, need := range preflight.Needs(drain, true) {
		resource := strings.TrimSuffix(need.Resource+"/"+need.Subresource, "/")
		if name := strings.TrimSuffix(resource+"."+need.Group, ".") + " " + need.Verb; !slices.Contains(permissions[cmp.Or(need.Feature(), "base")], name) {
			t.Errorf("%s: part %q does not give it", name, need.Feature())
		}
	}
	// Every permission that a part grants names a part that grants it, so that no error leaves out the command.
	for _, part := range parts {
		for _, g := range part.Grants {
			for _, name := range g.Resources {
				resource, sub, _ := strings.Cut(name, "/")
				for _, verb := range g.Verbs {
					need := preflight.Need{ResourceAttributes: authorizationv1.ResourceAttributes{
						Namespace: g.Namespace, Group: g.APIGroups[0], Resource: resource, Subresource: sub, Verb: verb,
					}}
					granted := strings.TrimSuffix(name+"."+g.APIGroups[0], ".") + " " + verb
					named := permissions[cmp.Or(need.Feature(), "base")]
					if !slices.Contains(named, granted) && !slices.Contains(named, g.Namespace+": "+granted) {
						t.Errorf("%s of part %s: %q does not grant it", granted, part.Name, need.Granting())
					}
				}
			}
		}
	}
}
