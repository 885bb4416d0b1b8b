package doctor

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/doctor"
)

// dead makes sure that a chain of runs has ended. A request that waits has no mark: for that it is enough that it is not
// found.
func (d *Activities) dead(ctx context.Context, in HealInput) error {
	f := in.Finding
	ref := execution.HolderRef{WorkflowID: f.WorkflowID, RunID: f.RunID}
	if f.Since != nil {
		ref.Since = *f.Since
	}
	found, err := d.Home.FateOf(ctx, d.Temporal, ref)
	switch {
	case err != nil:
		return err
	case found.Fate == execution.Ended, found.Fate == execution.Unknown && f.Kind == doctor.PendingDead:
		return nil
	case found.Fate == execution.Unknown && len(in.Lost) > 0:
		return stillShown(ctx, d.Client, in)
	}
	return errNoLonger
}

// stillShown makes sure that a node still shows the mark, or the conditions, of a maintenance whose namespace is lost.
func stillShown(ctx context.Context, client kube.Interface, in HealInput) error {
	node, err := client.CoreV1().Nodes().Get(ctx, in.Finding.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return errNoLonger
	}
	if err != nil {
		return fmt.Errorf("reading node %s: %w", in.Finding.Node, err)
	}
	mark, _ := k8s.MarkOf(node) // what cannot be read names nobody
	claims, _ := k8s.ClaimsOn(node)
	for _, h := range mark.Holders {
		if h.WorkflowID == in.Finding.WorkflowID && h.RunID == in.Finding.RunID && in.lost(h.Namespace) {
			return nil
		}
	}
	for _, c := range claims {
		if c.WorkflowID == in.Finding.WorkflowID && c.RunID == in.Finding.RunID && in.lost(c.Namespace) {
			return nil
		}
	}
	return errNoLonger
}
