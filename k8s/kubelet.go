package k8s

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/k8s/lease"
	"drydock.dev/drydock/rules/nodestate"
)

// KubeletLease is one version of the lease that a kubelet renews while it runs. Two that differ say that the kubelet ran in
// between, whatever any clock says. The zero value is that of a node without a lease.
type KubeletLease struct {
	version string
	renewed time.Time
	// For is how long the kubelet says that the lease lasts; a kubelet renews it four times in that time.
	For time.Duration
}

// ReadKubeletLease reads the lease of a node.
func ReadKubeletLease(ctx context.Context, client kube.Interface, node string) (KubeletLease, error) {
	found, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return KubeletLease{}, nil
	case err != nil:
		return KubeletLease{}, fmt.Errorf("reading lease %s/%s, which the kubelet renews: %w", corev1.NamespaceNodeLease, node, err)
	}
	return KubeletLease{version: found.ResourceVersion, renewed: lease.Renewed(found), For: lease.For(found)}, nil
}

// Same reports whether nobody wrote the lease between two reads.
func (l KubeletLease) Same(other KubeletLease) bool {
	return l.version == other.version && l.renewed.Equal(other.renewed)
}

// Silence is what proves that a kubelet is silent: the lease as it was read last, and the boot after which the node was
// turned off.
type Silence struct {
	Lease KubeletLease
	// BootID is the node's before it was turned off; empty if it is not known.
	BootID string
}

// brokenBy reports whether a node's kubelet has said something since: it has renewed the lease, it has reported, or the node
// was booted.
func (s Silence) brokenBy(node *corev1.Node, now KubeletLease) bool {
	return !nodestate.IsSilent(node) || s.BootID != "" && node.Status.NodeInfo.BootID != s.BootID || !s.Lease.Same(now)
}

// Broken reads a node and its lease, and reports whether the kubelet has said something since.
func (s Silence) Broken(ctx context.Context, client kube.Interface, name string) (bool, error) {
	now, err := ReadKubeletLease(ctx, client, name)
	if err != nil {
		return false, err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, notFound(err)
	}
	return s.brokenBy(node, now), nil
}
