// Package health has the side effects of health checks: it watches nodes for them, tells them what it sees, and makes, marks, watches
// and removes what remediates a node.
package health

import (
	"go.temporal.io/sdk/client"

	"drydock/activities/execution"
	"drydock/api"
	"drydock/k8s"
	"drydock/k8s/nodelease"
	"drydock/k8s/objects"
	rules "drydock/rules/health"
)

// Activities are the side effects of health checks.
type Activities struct {
	Nodes    *k8s.Nodes
	Objects  *objects.Client
	Temporal client.Client
	// Namespace is the Temporal namespace of the workflows, and Home what tells it from others.
	Namespace string
	Home      execution.Namespace
	Settings  Settings

	watches watches
}

// Settings are the worker's for all health checks.
type Settings struct {
	// LeaseNamespace is where the leases of nodes are; empty is medik8s' own, medik8s-leases.
	LeaseNamespace string
	// Upgrades are objects whose conditions say that the cluster is being upgraded, beside OpenShift's ClusterVersion.
	Upgrades []UpgradeSign
	// IgnoreMachineHealthChecks lets checks run where a MachineHealthCheck takes care of the same nodes.
	IgnoreMachineHealthChecks bool
}

// UpgradeSign is a condition of an object that says that the cluster is being upgraded while its status is Status.
type UpgradeSign struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	Type       string `json:"type"`
	Status     string `json:"status"`
}

// WatchInput is what WatchHealth looks for, and what the workflow was told before.
type WatchInput struct {
	Checks []WatchedCheck `json:"checks"`
	// Overlaps is the digest of the Overlaps that were told last; empty is none.
	Overlaps string `json:"overlaps,omitempty"`
	// Denied is what was told last that the account may not look at.
	Denied string `json:"denied,omitempty"`
	// Permits are the control-plane nodes that wait for a permit, with the answers that were told last.
	Permits []AskedPermit `json:"permits,omitempty"`
	// Ended are the workflow IDs of checks and remediations whose end was told.
	Ended api.List[string] `json:"ended,omitempty"`
}

// WatchedCheck is a check, and what is known of its nodes.
type WatchedCheck struct {
	Name string `json:"name"`
	// RunID is the first run of its chain.
	RunID  string       `json:"runId"`
	Intent rules.Intent `json:"intent"`
	Known  Known        `json:"known,omitzero"`
}

// Known is what the workflow knows of the nodes of a check: it keeps it by Take, and drops it for whoever is to be told all anew, and
// where the selector, the conditions or the groups change.
type Known struct {
	// All: everything was told once, or is being told.
	All bool `json:"all,omitempty"`
	// Digest is that of the counts, of upgrades and of what disables.
	Digest string `json:"digest,omitempty"`
	// Nodes are the hashes of the facts told, by node. Nodes that are not there are healthy.
	Nodes map[string]string `json:"nodes,omitempty"`
}

// Take adds what was seen.
func (k *Known) Take(seen CheckSeen) {
	if seen.Observation.Full {
		*k = Known{}
	}
	if k.Nodes == nil {
		k.Nodes = map[string]string{}
	}
	k.All, k.Digest = true, seen.Digest
	for i, facts := range seen.Observation.Nodes {
		if seen.Hashes[i] == "" {
			delete(k.Nodes, facts.Name)
		} else {
			k.Nodes[facts.Name] = seen.Hashes[i]
		}
	}
}

// AskedPermit is a control-plane node that a check wants to remediate, and what was answered last.
type AskedPermit struct {
	Check string              `json:"check"`
	Node  string              `json:"node"`
	Etcd  *rules.EtcdQuestion `json:"etcd,omitempty"`
	// Last is nil before the first answer.
	Last *Permitted `json:"last,omitempty"`
}

// Permitted tells whether the control plane can lose a node.
type Permitted struct {
	Allowed bool   `json:"allowed"`
	Why     string `json:"why,omitempty"`
}

// WatchResult is what WatchHealth saw. Everything empty is that its time was over.
type WatchResult struct {
	// Checks are those with news.
	Checks []CheckSeen `json:"checks,omitempty"`
	// Overlaps are set where they have changed.
	Overlaps *Overlaps `json:"overlaps,omitempty"`
	// Denied says what the worker's account may not look at, set where it has changed; empty is nothing any more.
	Denied *string `json:"denied,omitempty"`
	// Permits are the answers that have changed.
	Permits []PermitSeen `json:"permits,omitempty"`
	// EndedChecks and EndedRemediations do not run, though they did not say that they end.
	EndedChecks       []string           `json:"endedChecks,omitempty"`
	EndedRemediations []EndedRemediation `json:"endedRemediations,omitempty"`
	// More: there is more than one result takes; the next watch tells the rest at once.
	More bool `json:"more,omitempty"`
}

func (r WatchResult) empty() bool {
	return len(r.Checks)+len(r.Permits)+len(r.EndedChecks)+len(r.EndedRemediations) == 0 && r.Overlaps == nil && r.Denied == nil
}

// CheckSeen is what is new for a check. Its Observation lacks Revision, Sequence and the permit, which the workflow knows.
type CheckSeen struct {
	Name        string            `json:"name"`
	Observation rules.Observation `json:"observation"`
	// Refused says what is wrong with the check's intent; empty is nothing.
	Refused string `json:"refused,omitempty"`
	// Digest and Hashes, one for each of the Observation's Nodes, are for Known.Take.
	Digest string   `json:"digest"`
	Hashes []string `json:"hashes,omitempty"`
}

// Overlaps are the sets of checks that select a same node, each with the first node of which that is so.
type Overlaps struct {
	Digest      string             `json:"digest"`
	Memberships []rules.Membership `json:"memberships,omitempty"`
}

// PermitSeen is whether a control-plane node may be remediated, as far as etcd is concerned.
type PermitSeen struct {
	Check string `json:"check"`
	Node  string `json:"node"`
	Permitted
}

// EndedRemediation is a remediation that a check believes to run, and that does not.
type EndedRemediation struct {
	Check string `json:"check"`
	Node  string `json:"node"`
}

// lookout looks at what is there, and hand acts on it.
type (
	lookout struct{ *Activities }
	hand    struct{ lookout }
)

// leases are those of the nodes.
func (a *Activities) leases() nodelease.Leases {
	return nodelease.Leases{Objects: a.Objects, Namespace: a.Settings.LeaseNamespace}
}

// LeaseHolder is by what name a check has the lease of a node: the one that medik8s gives a NodeHealthCheck of that name.
func LeaseHolder(check string) string { return api.LeaseHolderPrefix + check }
