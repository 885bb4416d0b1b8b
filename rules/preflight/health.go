package preflight

import "slices"

// HealthNeeds are the permissions that a health check needs besides those of the maintenances by which it remediates: to watch the
// nodes, and to take their leases in a namespace.
func HealthNeeds(leaseNamespace string) []Need {
	needs := all("", "nodes", "get", "list", "watch")
	return append(needs, LeaseNeeds(leaseNamespace, "get", "list", "create", "patch", "delete")...)
}

// LeaseNeeds are the permissions to do something with the leases of a namespace.
func LeaseNeeds(namespace string, verbs ...string) []Need {
	return in(namespace, all("coordination.k8s.io", "leases", verbs...))
}

// JobNeeds are the permissions to run Jobs in a namespace.
func JobNeeds(namespace string) []Need {
	needs := append(all("batch", "jobs", "get", "list", "create", "watch", "delete"), all("", "pods", "list")...)
	logs := all("", "pods", "get")
	logs[0].Subresource = "log"
	return in(namespace, append(needs, logs...))
}

func in(namespace string, needs []Need) []Need {
	for i := range needs {
		needs[i].Namespace = namespace
	}
	return needs
}

// Required are those without which something does not work, each once.
func Required(needs []Need) []Need {
	var all []Need
	for _, need := range needs {
		if !need.Optional && !slices.Contains(all, need) {
			all = append(all, need)
		}
	}
	return all
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
