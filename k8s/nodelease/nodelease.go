// Package nodelease takes the lease of a node. It keeps operators of medik8s, and others that honour it, from working on a node at
// the same time. Names, times and the rules of a takeover are those of medik8s.
package nodelease

import (
	"context"
	"fmt"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/k8s/lease"
	"drydock.dev/drydock/k8s/objects"
)

const (
	// DefaultNamespace is where medik8s' operators have their leases.
	DefaultNamespace = "medik8s-leases"
	// DefaultFor is how long a remediation without a timeout wants its node.
	DefaultFor = 10 * time.Minute
	// buffer is added to what is wanted.
	buffer = time.Minute
	// patience is how many times as long as it was wanted a lease may be kept.
	patience = 3
)

var namespaces = objects.Kind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Resource: "namespaces"}

// Leases are those of the nodes of a cluster.
type Leases struct {
	Objects *objects.Client
	// Namespace is where they are; empty is DefaultNamespace. It is created where it is missing.
	Namespace string
}

// Want is who wants a node, and for how long.
type Want struct {
	Node   string
	UID    types.UID
	Holder string
	// For is the timeout of the present step, 0 where it has none. Before is the sum of the timeouts of the steps before.
	For, Before time.Duration
}

func (w Want) duration() time.Duration {
	if w.For <= 0 {
		return DefaultFor
	}
	return w.For
}

// State is what became of a lease.
type State struct {
	// Held: the holder has it, until Until if it is not renewed before.
	Held bool
	// HeldBy is who else has it; empty if there is no lease.
	HeldBy string
	// Overdue: it was kept for too long, and was given back.
	Overdue bool
	Until   time.Time
}

// Name is the lease's name of a node.
func Name(node string) string { return strings.ToLower("node-" + node) }

// Take takes the lease of a node, or prolongs it. One that somebody else has is taken over only where it has expired, was renewed
// in the future, or does not say.
func (l Leases) Take(ctx context.Context, w Want) (state State, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, at, err := l.get(ctx, w.Node)
		switch {
		case apierrors.IsNotFound(err):
			state, err = l.create(ctx, w, at)
			return err
		case err != nil:
			return err
		case w.owns(found):
			state, err = l.prolong(ctx, found, w, at)
			return err
		case !isFree(found, at):
			state = State{HeldBy: lease.Holder(found), Until: expiry(found)}
			return nil
		}
		now := metav1.NewMicroTime(at.Earliest)
		spec := map[string]any{
			"holderIdentity": w.Holder, "leaseDurationSeconds": w.seconds(), "acquireTime": now, "renewTime": now,
			"leaseTransitions": transitions(found) + 1,
		}
		state, err = l.change(ctx, found, spec)
		return err
	})
	if err != nil {
		return State{}, fmt.Errorf("taking the lease of node %s: %w", w.Node, err)
	}
	return state, nil
}

// Renew prolongs a lease that was taken. One that is gone, or somebody else's, stays so: it is not taken anew. One that was kept
// for longer than three times what it was wanted for, and the steps before, is given back.
func (l Leases) Renew(ctx context.Context, w Want) (state State, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, at, err := l.get(ctx, w.Node)
		switch {
		case apierrors.IsNotFound(err):
			state = State{}
			return nil
		case err != nil:
			return err
		case !w.owns(found):
			state = State{HeldBy: lease.Holder(found), Until: expiry(found)}
			return nil
		case w.isOverdue(found, at.Earliest):
			state = State{Overdue: true}
			return l.delete(ctx, found)
		}
		state, err = l.prolong(ctx, found, w, at)
		return err
	})
	if err != nil {
		return State{}, fmt.Errorf("renewing the lease of node %s: %w", w.Node, err)
	}
	return state, nil
}

// GiveBack deletes the lease of a node if the holder has it, or nobody.
func (l Leases) GiveBack(ctx context.Context, node, holder string) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, _, err := l.get(ctx, node)
		switch {
		case apierrors.IsNotFound(err):
			return nil
		case err != nil:
			return err
		case lease.Holder(found) != "" && lease.Holder(found) != holder:
			return nil
		}
		return l.delete(ctx, found)
	})
	if err != nil {
		return fmt.Errorf("giving back the lease of node %s: %w", node, err)
	}
	return nil
}

// IsHeld reports whether a holder has the lease of a node, expired or not.
func (l Leases) IsHeld(ctx context.Context, node, holder string) (bool, error) {
	found, _, err := l.get(ctx, node)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the lease of node %s: %w", node, err)
	}
	return lease.Holder(found) == holder, nil
}

// Lasts reports whether a holder has the lease of a node, and it has not expired.
func (l Leases) Lasts(ctx context.Context, node, holder string) (bool, error) {
	found, at, err := l.get(ctx, node)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("reading the lease of node %s: %w", node, err)
	}
	return lease.Holder(found) == holder && !isFree(found, at), nil
}

// HeldBy are the names of the nodes whose lease a holder has. They are lower case.
func (l Leases) HeldBy(ctx context.Context, holder string) (nodes []string, err error) {
	all, err := l.Holders(ctx)
	for _, one := range all {
		if one.Holder == holder {
			nodes = append(nodes, one.Node)
		}
	}
	return nodes, err
}

// Held is a node, in lower case, and who has its lease.
type Held struct{ Node, Holder string }

// Holders are all who have leases of nodes, expired or not.
func (l Leases) Holders(ctx context.Context) (held []Held, err error) {
	all, _, err := l.leases().List(ctx, l.namespace())
	if err != nil {
		return nil, fmt.Errorf("listing the leases of nodes: %w", err)
	}
	for _, one := range all {
		if node, ok := strings.CutPrefix(one.Name, "node-"); ok && lease.Holder(one) != "" {
			held = append(held, Held{node, lease.Holder(one)})
		}
	}
	return held, nil
}

func (l Leases) namespace() string {
	if l.Namespace == "" {
		return DefaultNamespace
	}
	return l.Namespace
}

func (l Leases) leases() lease.Client { return lease.Client{Objects: l.Objects} }

func (l Leases) get(ctx context.Context, node string) (*coordinationv1.Lease, lease.Clock, error) {
	return l.leases().Get(ctx, l.namespace(), Name(node))
}

// create writes a lease, and the namespace where that is missing. Somebody may be faster: that is a conflict.
func (l Leases) create(ctx context.Context, w Want, at lease.Clock) (State, error) {
	now := metav1.NewMicroTime(at.Earliest)
	wanted := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: Name(w.Node), Namespace: l.namespace(),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: w.Node, UID: w.UID}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &w.Holder, LeaseDurationSeconds: new(int32(w.seconds())), AcquireTime: &now, RenewTime: &now, LeaseTransitions: new(int32),
		},
	}
	created, err := l.leases().Create(ctx, wanted)
	if apierrors.IsNotFound(err) {
		namespace := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": l.namespace()},
		}}
		if _, err := l.Objects.Create(ctx, namespaces, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return State{}, fmt.Errorf("creating namespace %s: %w", l.namespace(), err)
		}
		created, err = l.leases().Create(ctx, wanted)
	}
	if err != nil {
		return State{}, err
	}
	return heldAs(created), nil
}

// prolong renews a lease of the holder's that would expire before what is wanted is over. When it was acquired does not change, and
// it never gets shorter.
func (l Leases) prolong(ctx context.Context, found *coordinationv1.Lease, w Want, at lease.Clock) (State, error) {
	now := at.Earliest
	if until := expiry(found); !until.Before(now.Add(w.duration())) {
		return State{Held: true, Until: until}, nil
	}
	return l.change(ctx, found, map[string]any{"leaseDurationSeconds": w.seconds(), "renewTime": metav1.NewMicroTime(now)})
}

func (l Leases) change(ctx context.Context, found *coordinationv1.Lease, spec map[string]any) (State, error) {
	changed, err := l.leases().Change(ctx, found, spec)
	if err != nil {
		return State{}, err
	}
	return heldAs(changed), nil
}

func (l Leases) delete(ctx context.Context, found *coordinationv1.Lease) error {
	err := l.leases().Delete(ctx, found)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func heldAs(l *coordinationv1.Lease) State { return State{Held: true, Until: expiry(l)} }

// seconds is how long the lease is said to last.
func (w Want) seconds() int64 { return int64((w.duration() + buffer) / time.Second) }

func (w Want) owns(l *coordinationv1.Lease) bool { return lease.Holder(l) == w.Holder }

func (w Want) isOverdue(lease *coordinationv1.Lease, now time.Time) bool {
	acquired := lease.Spec.AcquireTime
	return acquired != nil && now.After(acquired.Add(patience*w.duration()+w.Before))
}

func transitions(lease *coordinationv1.Lease) int64 {
	if lease.Spec.LeaseTransitions == nil {
		return 0
	}
	return int64(*lease.Spec.LeaseTransitions)
}

// expiry is zero if the lease does not say.
func expiry(l *coordinationv1.Lease) time.Time {
	if l.Spec.RenewTime == nil || l.Spec.LeaseDurationSeconds == nil {
		return time.Time{}
	}
	return lease.Renewed(l).Add(lease.For(l))
}

// isFree reports whether a lease of somebody else's may be taken over.
func isFree(l *coordinationv1.Lease, at lease.Clock) bool {
	until := expiry(l)
	return lease.Holder(l) == "" || until.IsZero() || until.Before(at.Earliest) || l.Spec.RenewTime.After(at.Latest)
}
