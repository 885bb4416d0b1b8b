package node

import (
	"context"

	"go.temporal.io/sdk/activity"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s/clusterapi"
)

// Marks are those by which other remediators know that a node is not to be touched while a maintenance holds it.
type Marks struct {
	// Medik8s sets the label k8s.ExcludeLabel on the node, ClusterAPI the annotation clusterapi.SkipAnnotation on its Machine.
	Medik8s, ClusterAPI bool
}

// skipMachine has Cluster API leave the node's Machine alone, and the maintenance remember which that is. That it cannot
// keeps no node from being held.
func (n *Activities) skipMachine(ctx context.Context, in HoldInput, prior *Prior) {
	if prior == nil {
		return
	}
	machine := ""
	if in.Prior != nil && in.Prior.UID == prior.UID {
		machine = in.Prior.Machine
	}
	if prior.Machine = machine; !n.Marks.ClusterAPI {
		return
	}
	node, err := n.Client.CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
	if err == nil {
		if machine == "" {
			machine = clusterapi.MachineOf(node)
		}
		if prior.Machine = machine; machine == "" {
			return
		}
		err = n.machines().Skip(ctx, machine, node, in.RunID)
	}
	if err != nil {
		activity.GetLogger(ctx).Warn("Cluster API may remediate a node under maintenance", "node", in.Node, "error", err)
	}
}

// resumeMachine takes that back. What is left of it must not keep a node out of service: drydock doctor finds it.
func (n *Activities) resumeMachine(ctx context.Context, in ReleaseInput) {
	machine := ""
	if in.Prior != nil {
		machine = in.Prior.Machine
	} else if n.Marks.ClusterAPI {
		machine = n.machineOf(ctx, in.Node)
	}
	if machine == "" {
		return
	}
	if _, err := n.machines().Resume(ctx, machine, in.Node); err != nil {
		activity.GetLogger(ctx).Warn("Cluster API still leaves the machine of a node alone that was given back", "node", in.Node, "error", err)
	}
}

func (n *Activities) machines() clusterapi.Machines { return clusterapi.Machines{Client: n.Client} }

// machineOf is the Machine that a node is of, as far as that can be read; empty if it is of none.
func (n *Activities) machineOf(ctx context.Context, name string) string {
	node, err := n.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return ""
	}
	return clusterapi.MachineOf(node)
}
