package preflight

// HealthNeeds are the permissions that a health check needs besides those of the maintenances by which it remediates: to watch the
// nodes, and to take their leases in a namespace.
func HealthNeeds(leaseNamespace string) []Need {
	needs := all("", "nodes", "get", "list", "watch")
	for _, need := range all("coordination.k8s.io", "leases", "get", "list", "create", "patch", "delete") {
		need.Namespace = leaseNamespace
		needs = append(needs, need)
	}
	return needs
}

// Missing are the findings of permissions that an account lacks.
func Missing(denied []Need) []Finding {
	findings := []Finding{}
	for _, need := range denied {
		findings = append(findings, need.missing())
	}
	return findings
}

// missing says that the account lacks the permission, and what grants it.
func (n Need) missing() Finding {
	return Finding{MissingPermission, "permission", "the worker's account may not " + n.String() + ": grant it with " + n.Granting()}
}
