package migration

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/rules/health/nhc"
	"drydock.dev/drydock/rules/nodestate"
)

// medik8s is node-healthcheck-operator: its objects stay, or become health checks of Drydock.
type medik8s struct{}

var nodeHealthChecks = schema.GroupVersionResource{Group: nhc.Group, Version: "v1alpha1", Resource: "nodehealthchecks"}

const (
	excludeLabel = nhc.Group + "/exclude-from-remediation"
	confirmed    = nhc.Group + "/manually-confirmed-healthy"
)

func (medik8s) Lease() string { return LeaseOfMedik8s }

func (medik8s) Reads() []schema.GroupVersionResource {
	return []schema.GroupVersionResource{nodeHealthChecks, leases}
}

// medik8sFields are what becomes of the fields of a NodeHealthCheck.
var medik8sFields = []field{
	{[]string{"selector"}, to("selector")},
	{[]string{"unhealthyConditions"}, to("unhealthyConditions")},
	{[]string{"minHealthy"}, to("minHealthy")},
	{[]string{"maxUnhealthy"}, to("maxUnhealthy")},
	{[]string{"remediationTemplate"}, to("remediationTemplate")},
	{[]string{"escalatingRemediations"}, to("escalatingRemediations")},
	{[]string{"healthyDelay"}, to("healthyDelay, counted from the latest recovery, and there from the first")},
	{[]string{"pauseRequests"}, to("pauseRequests")},
	{[]string{"stormCooldownDuration"}, to("stormCooldownDuration")},
}

// check is a NodeHealthCheck with what Drydock reads of it.
type check struct {
	object *unstructured.Unstructured
	spec   health.Spec
	err    error
}

func checks(c Cluster) (all []check) {
	for i := range c.Objects[nodeHealthChecks] {
		o := &c.Objects[nodeHealthChecks][i]
		one := check{object: o}
		read, err := nhc.Read(o.Object)
		if err == nil {
			err = health.CheckName(o.GetName())
		}
		if err == nil {
			one.spec, err = health.Decode(read[0].Spec)
		}
		one.err = err
		all = append(all, one)
	}
	return all
}

func (m medik8s) Report(c Cluster) Report {
	r := Report{From: Medik8s, Claims: m.Claims(c)}
	is := c.operator(&r, m.Lease(), operator{"node-healthcheck-operator", "node-healthcheck-controller-manager"})
	objects := c.objects(&r, nodeHealthChecks, "NodeHealthCheck")
	r.fields("NodeHealthCheck", objects, medik8sFields)
	for _, one := range checks(c) {
		name := one.object.GetName()
		if one.err != nil {
			r.Problems = append(r.Problems, fmt.Sprintf("NodeHealthCheck %s: %s", name, oneLine(one.err)))
		}
		shown := func(field string) string { return cmp.Or(text(one.object.Object, "status", field), "0") }
		r.Found = append(r.Found, fmt.Sprintf("NodeHealthCheck %s: %s, %s of %s nodes healthy", name, text(one.object.Object, "status", "phase"),
			shown("healthyNodes"), shown("observedNodes")))
		spec, _, err := unstructured.NestedMap(one.object.Object, "spec")
		if err == nil {
			r.input(name+".yaml", "drydock health start --file "+name+".yaml --paused \"moving over\"", map[string]any{
				"apiVersion": nhc.APIVersion, "kind": nhc.Kind, "metadata": map[string]any{"name": name}, "spec": spec,
			})
		}
	}
	r.Take = []string{
		"sed 's/namespace: node-healthcheck-operator$/namespace: " + is.namespace + "/' deploy/kubernetes/node-healthcheck/rbac.yaml | kubectl apply -f -",
		"kubectl apply -f deploy/kubernetes/node-healthcheck/admission.yaml",
		"drydock-bridge --cluster NAME --lease-namespace drydock --node-healthcheck " + is.namespace,
		"kubectl -n " + is.namespace + " scale deployment " + is.deployment + " --replicas 0",
		"# Delete the operator's ValidatingWebhookConfiguration. The bridge takes the operator's lease once it is free.",
		"# Without objects: drydock health start with the files above, one check after the other, while the operator's is paused.",
	}
	r.Back = []string{
		"# Pause the objects (spec.pauseRequests), and wait until nothing is remediated. Stop the bridge.",
		"kubectl delete -f deploy/kubernetes/node-healthcheck/admission.yaml",
		"# Remove the checks (drydock health remove NAME).",
		"drydock migrate --from medik8s --back",
		"# Restore the operator's webhook, start the operator, and take the pause off.",
	}
	return r
}

func (m medik8s) Claims(c Cluster) (claims []Claim) {
	for _, one := range checks(c) {
		name := one.object.GetName()
		seen := map[string]bool{}
		shown, err := as[[]unhealthyNode](one.object.Object, "status", "unhealthyNodes")
		if err != nil {
			shown = nil // what the operator does not show it does not do
		}
		for _, n := range shown {
			if len(n.Remediations) == 0 {
				continue
			}
			seen[n.Name] = true
			first := n.Remediations[0]
			claims = append(claims, Claim{
				Node: n.Name, For: name, Asked: first.Started.UTC(), State: "remediated by " + first.Resource.Kind, Out: true,
				Becomes: "its remediation object and its lease are the check's",
			})
		}
		if one.err != nil {
			continue
		}
		in := one.input(c, nil)
		for i := range in.State.Nodes {
			n := &in.State.Nodes[i]
			e := health.Explain(in, n.Name)
			if e.State != health.NodeUnhealthy || seen[n.Name] {
				continue
			}
			claim := Claim{Node: n.Name, For: name, State: "unhealthy", Becomes: e.Summary}
			for _, condition := range e.Conditions {
				if condition.Over && (claim.Asked.IsZero() || condition.IllAt.Before(claim.Asked)) {
					claim.Asked = condition.IllAt.UTC()
				}
			}
			claims = append(claims, claim)
		}
	}
	return claims
}

// unhealthyNode is what the operator shows of one.
type unhealthyNode struct {
	Name         string `json:"name"`
	Remediations []struct {
		Resource struct {
			Kind string `json:"kind"`
		} `json:"resource"`
		Started metav1.Time `json:"started"`
	} `json:"remediations"`
}

// input is what Drydock's check would decide on: the cluster as it is, where some nodes are remediated.
func (k check) input(c Cluster, remediated []string) health.Input {
	o := health.Observation{Full: true, At: c.At}
	selector, err := metav1.LabelSelectorAsSelector(&k.spec.Selector)
	if err != nil {
		selector = labels.Nothing() // Decode has refused it
	}
	by := health.IntentOf(k.spec, health.State{}).GroupBy
	counts := map[string]*health.GroupCount{"": {}}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if !selector.Matches(labels.Set(n.Labels)) {
			continue
		}
		f := k.facts(n, by)
		for _, group := range slices.Compact([]string{"", f.Group}) {
			if counts[group] == nil {
				counts[group] = &health.GroupCount{Group: group}
			}
			counts[group].Nodes++
			if len(f.Matches) > 0 {
				counts[group].Matching++
			}
		}
		if len(f.Matches) > 0 || slices.Contains(remediated, n.Name) {
			o.Nodes = append(o.Nodes, f)
		}
	}
	for _, count := range counts {
		o.Groups = append(o.Groups, *count)
	}
	in := health.Input{Spec: k.spec, Now: c.At}
	in.State.Observe(o)
	for i := range in.State.Nodes {
		if n := &in.State.Nodes[i]; slices.Contains(remediated, n.Name) {
			n.Remediation = &health.Running{BeganAt: c.At}
		}
	}
	return in
}

// facts are what a check sees of a node.
func (k check) facts(n *corev1.Node, by []string) health.Facts {
	f := health.Facts{Name: n.Name, UID: string(n.UID), Group: health.GroupOf(n.Labels, by), CreatedAt: n.CreationTimestamp.UTC()}
	f.ControlPlane = nodestate.IsControlPlane(n.Labels)
	f.Exclude, f.Excluded = n.Labels[excludeLabel], false
	_, f.Excluded = n.Labels[excludeLabel]
	_, f.Confirmed = n.Annotations[confirmed]
	for i, unhealthy := range k.spec.UnhealthyConditions {
		if since, has := unhealthy.Since(n); has {
			f.Matches = append(f.Matches, health.Match{Index: i, Since: since})
		}
	}
	return f
}

// Refusals are those of a health check with the same fields. Etcd is not asked here, nor whether a template is there.
func (m medik8s) Refusals(c Cluster, asked []Claim) (map[string]string, error) {
	why := map[string]string{}
	for _, one := range checks(c) {
		name := one.object.GetName()
		wanted := func(node string) bool {
			return slices.ContainsFunc(asked, func(a Claim) bool { return a.For == name && a.Node == node })
		}
		var remediated []string
		for _, claim := range m.Claims(c) {
			if claim.For == name && claim.Out && !wanted(claim.Node) {
				remediated = append(remediated, claim.Node)
			}
		}
		begins := map[string]bool{}
		var decided health.Input
		if one.err == nil {
			decided = one.input(c, remediated)
			d := health.Decide(decided)
			for _, b := range d.Begin {
				begins[b.Node] = true
			}
		}
		for _, claim := range asked {
			if claim.For != name || begins[claim.Node] {
				continue
			}
			if one.err != nil {
				why[claim.Key()] = "Drydock cannot read the check: " + oneLine(one.err)
				continue
			}
			e := health.Explain(decided, claim.Node)
			why[claim.Key()] = strings.Join(append([]string{"it is " + e.State}, e.Blocks...), ": ")
		}
	}
	return why, nil
}
