package health

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"

	"drydock/activities/failure"
	"drydock/k8s/nodelease"
	"drydock/k8s/objects"
)

func isNoKind(err error) bool { return errors.Is(err, objects.ErrNoKind) }

func (in LeaseInput) want() nodelease.Want {
	return nodelease.Want{Node: in.Node, UID: types.UID(in.UID), Holder: LeaseHolder(in.Check), For: in.For, Before: in.Before}
}

// TakeLease takes a node's lease for a step that makes no object, or prolongs it. That somebody else has it is no error.
// RemoveObjects gives it back.
func (a *Activities) TakeLease(ctx context.Context, in LeaseInput) (LeaseState, error) {
	state, err := a.leases().Take(ctx, in.want())
	if err != nil {
		return LeaseState{}, failure.Translate(ctx, a.Objects.Kube(), err)
	}
	return LeaseState{Held: state.Held, HeldBy: state.HeldBy}, nil
}
