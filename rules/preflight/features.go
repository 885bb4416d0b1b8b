package preflight

import (
	_ "embed" // for granted
	"encoding/json"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/bounds"
)

// base is the part of the manifests that every worker needs.
const base = "base"

// grants is a rule of a part of the manifests.
type grants struct {
	Part      string   `json:"part"`
	Namespace string   `json:"namespace,omitempty"`
	Group     string   `json:"group,omitempty"`
	Resources []string `json:"resources"`
	Verbs     []string `json:"verbs"`
}

// granted has the rules of deploy/kubernetes, made of these files by a test there: the base first, then the parts by name.
//
//go:embed granted.json
var granted []byte

var parts = readParts()

func readParts() (all []grants) {
	if err := json.Unmarshal(granted, &all); err != nil {
		panic(err) // it is part of the program
	}
	return all
}

func (g grants) fit(n Need) bool {
	resource := n.Resource
	if n.Subresource != "" {
		resource += "/" + n.Subresource
	}
	return g.Group == n.Group && (g.Namespace == "" || g.Namespace == n.Namespace) &&
		slices.Contains(g.Resources, resource) && slices.Contains(g.Verbs, n.Verb)
}

// part is the part of the manifests that grants the permission, empty if none does: the base, or the one for the namespace, or the first.
func (n Need) part() string {
	first := ""
	for _, g := range parts {
		switch fits := g.fit(n); {
		case fits && (g.Part == base || g.Namespace != ""):
			return g.Part
		case fits && first == "":
			first = g.Part
		}
	}
	return first
}

// Feature is the part of the manifests that grants the permission: rbac-<feature>.yaml, and rbac.features of the chart. It is empty
// for what rbac.yaml grants to every worker, and for what no part grants.
func (n Need) Feature() string {
	if part := n.part(); part != base {
		return part
	}
	return ""
}

// Granting names what grants the permission, as a command where there is one.
func (n Need) Granting() string {
	switch part := n.part(); part {
	case base:
		return "`kubectl apply -f deploy/kubernetes/rbac.yaml`, or the chart's rbac.create: true"
	case "":
		switch {
		case n.Group == "batch" || n.Resource == "pods":
			return "a Role like that of deploy/kubernetes/rbac-jobs.yaml in namespace " + n.Namespace
		case n.Group == "coordination.k8s.io":
			return "a Role like that of deploy/kubernetes/rbac-health.yaml in namespace " + n.Namespace
		}
		return `a ClusterRole that allows it and has the label rbac.ext-remediation/aggregate-to-ext-remediation: "true", which deploy/kubernetes/rbac-health.yaml gives to the worker`
	default:
		return "`kubectl apply -f deploy/kubernetes/rbac-" + part + ".yaml`, or " + part + " in the chart's rbac.features"
	}
}

// Ungranted are permissions that an account lacks, and what grants all of them: Permissions is "verb, verb resource in API group group", more
// of these after semicolons.
type Ungranted struct {
	Permissions string `json:"permissions"`
	By          string `json:"by"`
}

// ByGrant are permissions that an account lacks, by what grants them, each in the order of its first. What does not fit into one text is in
// several.
func ByGrant(denied []Need) []Ungranted {
	type place struct {
		by string
		of Need
	}
	var places []place
	verbs := map[place][]string{}
	for _, need := range denied {
		at := place{need.Granting(), need}
		at.of.Verb = ""
		if verbs[at] == nil {
			places = append(places, at)
		}
		verbs[at] = append(verbs[at], need.Verb)
	}
	all, last := []Ungranted{}, map[string]int{}
	for _, at := range places {
		need := at.of
		need.Verb = strings.Join(verbs[at], ", ")
		if i, known := last[at.by]; known && len(all[i].Permissions)+len("; ")+len(need.String()) <= bounds.Text {
			all[i].Permissions += "; " + need.String()
			continue
		}
		last[at.by] = len(all)
		all = append(all, Ungranted{Permissions: need.String(), By: at.by})
	}
	return all
}
