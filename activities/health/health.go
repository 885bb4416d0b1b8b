// Package health has the side effects of health checks: it watches nodes for them, and makes, marks, watches and removes what remediates
// a node.
package health

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/nodelease"
	"drydock.dev/drydock/k8s/objects"
	rules "drydock.dev/drydock/rules/health"
)

// Activities are the side effects of health checks.
type Activities struct {
	Nodes    *k8s.Nodes
	Objects  *objects.Client
	Temporal client.Client
	// Namespace is the Temporal namespace of the workflows, and Home its identity.
	Namespace string
	Home      execution.Namespace
	Settings  Settings

	surroundings surroundings
	// watches are those that run on this worker.
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

// WatchInput is a check, what it has watched, and what it knows already.
type WatchInput struct {
	Check string `json:"check"`
	// RunID is the first run of the check's chain, CreatedAt when that began: of two checks the one that was created first is the older.
	RunID     string       `json:"runId"`
	CreatedAt time.Time    `json:"createdAt"`
	Intent    rules.Intent `json:"intent"`
	// Remediating are the nodes under remediation: facts of them are wanted though they match nothing, or left.
	Remediating api.List[string] `json:"remediating,omitempty"`
	// Runs are remediations whose end has to be reported: the check does not learn of it otherwise.
	Runs  api.List[RunningRemediation] `json:"runs,omitempty"`
	Known Known                        `json:"known,omitzero"`
}

// About implements caller.Input.
func (in WatchInput) About() caller.Subject { return caller.Subject{Check: in.Check, RunID: in.RunID} }

// Known is what the workflow knows of the nodes of its check: it keeps it by Take, and drops it where it has to see everything anew.
type Known struct {
	// All: everything was reported once, or is being reported.
	All bool `json:"all,omitempty"`
	// Digest is that of the counts, of upgrades, of what disables and of what overlaps.
	Digest string `json:"digest,omitempty"`
	// Around is what was reported beside the nodes: a worker that cannot find it out reports it as it was.
	Around Around `json:"around,omitzero"`
	// Denied is what the worker's account may not look at.
	Denied string `json:"denied,omitempty"`
	// Nodes are the hashes of the facts that were reported, by node. Nodes that are not there are healthy.
	Nodes Hashes `json:"nodes,omitempty"`
}

// Around is what a check depends on beside its nodes. See rules.Observation.
type Around struct {
	Upgrading      string        `json:"upgrading,omitempty"`
	Disabled       string        `json:"disabled,omitempty"`
	DisabledReason string        `json:"disabledReason,omitempty"`
	Overlap        rules.Overlap `json:"overlap,omitzero"`
	// MachineChecks: there is a MachineHealthCheck.
	MachineChecks bool `json:"machineChecks,omitempty"`
}

// Hashes are the hashes of facts, by node. They are written compressed where they are many.
type Hashes map[string]string

// nodeHash is an entry of Hashes as it is written.
type nodeHash struct {
	Node string `json:"n"`
	Hash string `json:"h"`
}

// MarshalJSON implements json.Marshaler.
func (h Hashes) MarshalJSON() ([]byte, error) {
	list := make(api.List[nodeHash], 0, len(h))
	for _, node := range slices.Sorted(maps.Keys(h)) {
		list = append(list, nodeHash{node, h[node]})
	}
	return json.Marshal(list)
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *Hashes) UnmarshalJSON(data []byte) error {
	var list api.List[nodeHash]
	if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*h = make(Hashes, len(list))
	for _, one := range list {
		(*h)[one.Node] = one.Hash
	}
	return nil
}

// Take adds what was seen.
func (k *Known) Take(seen WatchResult) {
	if seen.Denied != nil {
		k.Denied = *seen.Denied
	}
	if seen.Observation == nil {
		return
	}
	if seen.Observation.Full {
		k.Nodes = nil
	}
	if k.Nodes == nil {
		k.Nodes = Hashes{}
	}
	o := seen.Observation
	k.All, k.Digest = true, seen.Digest
	k.Around = Around{
		Upgrading: o.Upgrading, Disabled: o.Disabled, DisabledReason: o.DisabledReason, Overlap: o.Overlap, MachineChecks: seen.MachineChecks,
	}
	for i, facts := range seen.Observation.Nodes {
		if seen.Hashes[i] == "" {
			delete(k.Nodes, facts.Name)
		} else {
			k.Nodes[facts.Name] = seen.Hashes[i]
		}
	}
}

// WatchResult is what WatchHealth has seen. Everything empty is that its time was over.
type WatchResult struct {
	// Observation is what is new, nil if nothing is. Digest and Hashes, one for each of its Nodes, are for Known.Take.
	Observation *rules.Observation `json:"observation,omitempty"`
	Digest      string             `json:"digest,omitempty"`
	Hashes      []string           `json:"hashes,omitempty"`
	// MachineChecks, with an observation: see Around.
	MachineChecks bool `json:"machineChecks,omitempty"`
	// Denied says what the worker's account may not look at, set where it has changed; empty is nothing any more.
	Denied *string `json:"denied,omitempty"`
	// Ended are nodes whose remediation has ended.
	Ended []string `json:"ended,omitempty"`
}

func (r WatchResult) empty() bool {
	return r.Observation == nil && r.Denied == nil && len(r.Ended) == 0
}

// leases are those of the nodes.
func (a *Activities) leases() nodelease.Leases {
	return nodelease.Leases{Objects: a.Objects, Namespace: a.Settings.LeaseNamespace}
}

// LeaseHolder is by what name a check has the lease of a node: the one that medik8s gives a NodeHealthCheck of that name.
func LeaseHolder(check string) string { return api.LeaseHolderPrefix + check }
