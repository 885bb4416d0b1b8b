package preflight

import (
	"slices"
	"strings"

	"drydock.dev/drydock/rules/bounds"
)

// base is the part of the manifests that every worker needs.
const base = "base"

// grants says which part of the manifests grants a request. Empty fields fit everything.
type grants struct {
	part, namespace, group string
	resources, verbs       []string
}

// parts holds each part of deploy/kubernetes by what it grants; the first row that fits counts. A test compares it with the files.
var parts = []grants{
	{part: "delete-pods", resources: []string{"pods"}, verbs: []string{"delete"}},
	{part: "node-conditions", resources: []string{"nodes/status"}},
	{part: "volumes", resources: []string{"persistentvolumeclaims"}},
	{part: "volumes", group: "storage.k8s.io"},
	{part: "eviction-requests", group: "lifecycle.k8s.io"},
	{part: "daemonsets", group: "apps", resources: []string{"daemonsets"}, verbs: []string{"list"}},
	{part: "profiles", group: "apps", resources: []string{"replicasets", "statefulsets"}},
	{part: "metrics", group: "authentication.k8s.io", resources: []string{"tokenreviews"}},
	{part: "metrics", group: "authorization.k8s.io", resources: []string{"subjectaccessreviews"}},
	{part: "volumes", namespace: "kube-node-lease", group: "coordination.k8s.io"},
	{part: "health", namespace: "medik8s-leases", group: "coordination.k8s.io"},
	{part: "profiles", group: "coordination.k8s.io", verbs: []string{"get", "list", "create", "patch"}},
	{part: "health", group: "remediation.medik8s.io", resources: []string{"nodehealthchecks"}},
	{part: "health", group: "config.openshift.io", resources: []string{"clusterversions"}},
	{part: "health", group: "machine.openshift.io", resources: []string{"machines", "machinehealthchecks"}},
	{part: "health", group: "cluster.x-k8s.io", resources: []string{"machinehealthchecks"}},
	{part: "cluster-api", group: "cluster.x-k8s.io", resources: []string{"machines"}},
	{part: "jobs", namespace: "drydock-jobs", group: "batch"},
	{part: "jobs", namespace: "drydock-jobs", resources: []string{"pods/log"}},
	{part: "work", namespace: "drydock-work", group: "batch"},
	{part: "work", namespace: "drydock-work", resources: []string{"pods/log"}},
	{part: base, resources: []string{"nodes", "pods", "pods/eviction", "events"}},
	{part: base, group: "apps", resources: []string{"daemonsets"}},
	{part: base, group: "policy", resources: []string{"poddisruptionbudgets"}},
}

func (g grants) fit(n Need) bool {
	resource := n.Resource
	if n.Subresource != "" {
		resource += "/" + n.Subresource
	}
	return g.group == n.Group && (g.namespace == "" || g.namespace == n.Namespace) &&
		(len(g.resources) == 0 || slices.Contains(g.resources, resource)) && (len(g.verbs) == 0 || slices.Contains(g.verbs, n.Verb))
}

// part is the part of the manifests that grants the permission, empty where none does.
func (n Need) part() string {
	i := slices.IndexFunc(parts, func(g grants) bool { return g.fit(n) })
	if i < 0 {
		return ""
	}
	return parts[i].part
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
