package preflight

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"

	"drydock/workflows/drainplan"
	"drydock/workflows/spec"
)

// Need is one permission.
type Need struct {
	authorizationv1.ResourceAttributes
	// Optional: a drain works without it.
	Optional bool
}

// String is "verb resource in API group group".
func (n Need) String() string {
	resource := n.Resource
	if n.Subresource != "" {
		resource += "/" + n.Subresource
	}
	group := "the core API group"
	if n.Group != "" {
		group = "API group " + n.Group
	}
	return n.Verb + " " + resource + " in " + group
}

// Needs are the permissions that a maintenance with such a drain needs.
func Needs(drain spec.Drain) []Need {
	needs := all("", "nodes", "get", "list", "watch", "patch")
	needs = append(needs, Need{Optional: true, ResourceAttributes: authorizationv1.ResourceAttributes{
		Verb: "create", Resource: "events", Namespace: "default"}})
	if drain.Mode == spec.ModeNone || drain.Mode == spec.ModeExternal {
		return needs
	}
	needs = append(needs, all("", "pods", "list", "watch")...)
	needs = append(needs, all("apps", "daemonsets", "get")...)
	if drain.WaitForVolumeDetach {
		needs = append(needs, all("storage.k8s.io", "volumeattachments", "list", "watch")...)
	}
	if drain.Mode == spec.ModeWait {
		return needs
	}
	eviction := Need{ResourceAttributes: authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "eviction"}}
	needs = append(needs, eviction)
	needs = append(needs, all("policy", "poddisruptionbudgets", "list", "watch")...)
	if deletes(drain) {
		needs = append(needs, all("", "pods", "delete")...)
	}
	if drain.Via == spec.ViaEvictionRequest {
		needs = append(needs, all("lifecycle.k8s.io", "evictionrequests", "create")...)
		needs = append(needs, all("lifecycle.k8s.io", "evictions", "list", "watch")...)
	}
	return needs
}

// deletes tells whether a drain may delete pods, past their budgets.
func deletes(drain spec.Drain) bool {
	if slices.ContainsFunc(drain.Escalation, func(r spec.Rung) bool { return r.Do == spec.BypassBudget || r.Do == spec.Kill }) {
		return true
	}
	plan, err := drain.Tiers()
	return err == nil && slices.ContainsFunc(plan.Entries(), func(e drainplan.Entry) bool { return e.PodType == drainplan.DaemonSet })
}

func all(group, resource string, verbs ...string) []Need {
	var needs []Need
	for _, verb := range verbs {
		needs = append(needs, Need{ResourceAttributes: authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: verb}})
	}
	return needs
}
