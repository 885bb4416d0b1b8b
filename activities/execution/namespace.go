package execution

import (
	"context"
	"time"

	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config/namespace"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/bounds"
)

// maxWritten is how much is shown of what somebody may have written on a node.
const maxWritten = 512

// Namespace is the Temporal namespace that a worker's workflows live in.
type Namespace struct {
	// ID is a UUID, which distinguishes the namespace from one of the same name on another server. A mark with another
	// ID, or none, is not ours.
	ID string
	// Retention is how long what has ended is kept: only a mark that is older can say by itself that its workflow ended.
	Retention time.Duration
}

// DescribeNamespace asks a server for a namespace.
func DescribeNamespace(ctx context.Context, temporal client.Client, name string) (Namespace, error) {
	described, err := namespace.Describe(ctx, temporal, name)
	if err != nil {
		return Namespace{}, err
	}
	return Namespace{ID: described.ID, Retention: described.Retention}, nil
}

// Owns reports whether a holder on a node's mark is one of this namespace's workflows.
func (n Namespace) Owns(h k8s.Holder) bool { return h.Namespace == n.ID }

// Classify returns why a mark on a cluster's node is nobody's of ours, and nothing where it may be ours.
func (n Namespace) Classify(cluster, node string, h k8s.Holder) (mark api.StrayMark) {
	mark = api.StrayMark{
		Node: node, WorkflowID: bounds.Cut(h.WorkflowID, maxWritten), RunID: bounds.Cut(h.RunID, maxWritten), Requestor: bounds.Cut(h.Requestor, maxWritten),
		Namespace: bounds.Cut(h.Namespace, maxWritten), Since: h.Since,
	}
	ofCluster, _, _, err := api.ParseMaintenanceID(h.WorkflowID)
	switch {
	case !n.Owns(h), err == nil && ofCluster != cluster:
		mark.Kind = api.StrayForeign
	case mark.Validate(cluster) != nil:
		mark.Kind = api.StrayMalformed
	}
	return mark
}

// IsOfProfile reports whether a holder is a transition of a profile of this cluster, which holds its node for a drain: it has no slot.
func (n Namespace) IsOfProfile(cluster, node string, h k8s.Holder) bool {
	ofCluster, _, of, err := api.ParseProfileTransitionID(h.WorkflowID)
	return err == nil && n.Owns(h) && ofCluster == cluster && of == node
}

// Unreadable is a mark that cannot be read.
func Unreadable(node string) api.StrayMark {
	return api.StrayMark{Node: node, Kind: api.StrayMalformed}
}
