package preflight

import (
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/rules/drainplan"
	"drydock.dev/drydock/rules/spec"
)

// Need is one permission.
type Need struct {
	authorizationv1.ResourceAttributes
	// Optional: a drain works without it.
	Optional bool
}

// String is "verb resource in API group group", with the namespace where it is one's.
func (n Need) String() string {
	resource := n.Resource
	if n.Subresource != "" {
		resource += "/" + n.Subresource
	}
	group := "the core API group"
	if n.Group != "" {
		group = "API group " + n.Group
	}
	text := n.Verb + " " + resource + " in " + group
	if n.Namespace != "" {
		text += " (namespace " + n.Namespace + ")"
	}
	return text
}

func (n Need) deletesPods() bool { return n.Group == "" && n.Resource == "pods" && n.Verb == "delete" }

// Needs are the permissions that a maintenance with such a drain needs: those for the node, those for its pods, which it may
// wait for before the drain too, and those to evict them.
func Needs(drain spec.Drain, waitsForPods bool) []Need {
	needs := all("", "nodes", "get", "list", "watch", "patch")
	for _, need := range all("", "events", "create") {
		need.Optional, need.Namespace = true, metav1.NamespaceDefault // Events on nodes live there
		needs = append(needs, need)
	}
	drains := drain.Mode == spec.ModeWait || drain.Mode == spec.ModeEvict
	if !drains && !waitsForPods {
		return needs
	}
	needs = append(needs, all("", "pods", "list", "watch")...)
	needs = append(needs, all("apps", "daemonsets", "get")...)
	if drains && drain.WaitForVolumeDetach {
		needs = append(needs, all("storage.k8s.io", "volumeattachments", "list", "watch")...)
		needs = append(needs, all("", "persistentvolumeclaims", "get")...)
	}
	if drain.Mode == spec.ModeEvict {
		needs = append(needs, evicting(drain)...)
	}
	return needs
}

func evicting(drain spec.Drain) []Need {
	eviction := all("", "pods", "create")
	eviction[0].Subresource = "eviction"
	needs := append(eviction, all("policy", "poddisruptionbudgets", "list", "watch")...)
	if deletes(drain) {
		needs = append(needs, all("", "pods", "delete")...)
	}
	if drain.Via == spec.ViaEvictionRequest {
		needs = append(needs, all("lifecycle.k8s.io", "evictionrequests", "list", "watch", "create", "patch", "delete")...)
		needs = append(needs, all("lifecycle.k8s.io", "evictions", "list", "watch")...)
	}
	// Events on pods.
	for _, need := range all("", "events", "create") {
		need.Optional = true
		needs = append(needs, need)
	}
	return needs
}

// deletes reports whether a drain may delete pods, past their budgets.
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
