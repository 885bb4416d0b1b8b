package health

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/k8s/nodelease"
	"drydock.dev/drydock/k8s/objects"
)

func isNoKind(err error) bool { return errors.Is(err, objects.ErrNoKind) }

func (in LeaseInput) want() nodelease.Want {
	return nodelease.Want{Node: in.Node, UID: types.UID(in.UID), Holder: LeaseHolder(in.Check), For: in.For, Before: in.Before}
}

// TakeLease takes a node's lease for a step that makes no object, or prolongs it. That somebody else has it is no error.
// RemoveObjects gives it back.
func (a *Activities) TakeLease(ctx context.Context, in LeaseInput) (LeaseState, error) {
	if in.UID == "" { // the lease goes with the node
		node, err := a.Objects.Kube().CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
		if err != nil {
			return LeaseState{}, failure.Translate(ctx, a.Objects.Kube(), fmt.Errorf("reading node %s: %w", in.Node, err))
		}
		in.UID = string(node.UID)
	}
	state, err := a.leases().Take(ctx, in.want())
	if err != nil {
		return LeaseState{}, failure.Translate(ctx, a.Objects.Kube(), err)
	}
	return LeaseState{Held: state.Held, HeldBy: state.HeldBy}, nil
}
