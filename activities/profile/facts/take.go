package facts

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/k8s/lease"
	"drydock.dev/drydock/rules/profile/check"
)

// ErrTaken says that somebody else has a Lease that a transition claims.
var ErrTaken = errors.New("the lease is taken")

// Take takes the Leases that a transition claims, one after the other. Those that the same claim has taken before are taken
// already. Where one is somebody else's, those before it stay taken until they expire. Errors: ErrTaken.
func (g *Gatherer) Take(ctx context.Context, claims []check.Claim) error {
	leases := g.leases()
	for _, c := range claims {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return take(ctx, leases, c) })
		if err != nil {
			return fmt.Errorf("taking lease %s/%s for %s: %w", c.Namespace, c.Name, c.Holder, err)
		}
	}
	return nil
}

func take(ctx context.Context, leases lease.Client, c check.Claim) error {
	claim := lease.Claim{Namespace: c.Namespace, Name: c.Name, Holder: c.Holder, At: c.At, For: c.For}
	found, _, err := leases.Get(ctx, c.Namespace, c.Name)
	switch {
	case apierrors.IsNotFound(err):
		return leases.Take(ctx, nil, claim)
	case err != nil:
		return err
	case claim.Taken(found):
		return nil
	case !factOf(found).Expired(c.At):
		return fmt.Errorf("%w by %s since %s", ErrTaken, lease.Holder(found), lease.Renewed(found).UTC().Format(time.RFC3339))
	}
	return leases.Take(ctx, found, claim)
}
