package lease

import (
	"context"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Claim is a Lease as somebody wants to have it.
type Claim struct {
	Namespace, Name string
	Holder          string
	At              time.Time
	For             time.Duration
}

// Taken reports whether a Lease is as the claim wants it.
func (c Claim) Taken(found *coordinationv1.Lease) bool {
	return Holder(found) == c.Holder && Renewed(found).Equal(c.at().Time)
}

// at is the time of a claim as it is written, in microseconds.
func (c Claim) at() metav1.MicroTime { return metav1.NewMicroTime(c.At.Truncate(time.Microsecond)) }

// seconds are what a Lease can say: whole ones, and at least one.
func (c Claim) seconds() int32 { return int32(min(max(c.For/time.Second, 1), math.MaxInt32)) }

// Take writes a claim into the very version of a Lease that was read, or a new one where found is nil. Somebody may be faster: that
// is a conflict.
func (c Client) Take(ctx context.Context, found *coordinationv1.Lease, claim Claim) error {
	at, seconds := claim.at(), claim.seconds()
	if found == nil {
		_, err := c.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name},
			Spec: coordinationv1.LeaseSpec{
				HolderIdentity: &claim.Holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at, LeaseTransitions: new(int32),
			},
		})
		return err
	}
	transitions := int32(0)
	if before := found.Spec.LeaseTransitions; before != nil {
		transitions = *before + 1
	}
	_, err := c.Change(ctx, found, map[string]any{
		"holderIdentity": claim.Holder, "leaseDurationSeconds": seconds, "acquireTime": at, "renewTime": at, "leaseTransitions": transitions,
	})
	return err
}
