package profile

import (
	"context"
	"slices"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
)

// stray is the mark of a transition that is not known to run.
type stray struct {
	node   string
	holder k8s.Holder
}

// findMarks looks at the marks of transitions on a node. One that was terminated in a drain has left its own; one that drains the node
// wants it cordoned, also where somebody has lifted the cordon.
func (s *sorting) findMarks(node *corev1.Node) {
	mark, err := k8s.MarkOf(node)
	if err != nil {
		return
	}
	for _, h := range mark.Holders {
		if !s.Home.IsOfProfile(s.cluster, node.Name, h) {
			continue
		}
		i := slices.IndexFunc(s.in.UnderWay, func(u UnderWay) bool {
			return !u.Ended && u.Node == node.Name && h.WorkflowID == api.ProfileTransitionID(s.cluster, u.Profile, u.Node)
		})
		switch {
		case i < 0:
			s.strays = append(s.strays, stray{node.Name, h})
		case !node.Spec.Unschedulable && !s.in.UnderWay[i].Stopped:
			s.lifted = append(s.lifted, node)
		}
	}
}

// releaseStray takes marks off of transitions that do not run.
func (e *evaluator) releaseStray(ctx context.Context, all []stray) {
	for _, one := range all {
		first, err := execution.Running(ctx, e.Temporal, one.holder.WorkflowID)
		if err == nil && first == one.holder.RunID {
			continue
		}
		if err == nil {
			_, err = k8s.Release(ctx, e.Nodes.Client(), one.node, k8s.Caller{WorkflowID: one.holder.WorkflowID, RunID: one.holder.RunID}, k8s.Known{OnlyMarked: true})
		}
		if err != nil {
			activity.GetLogger(ctx).Warn("the mark of a transition that has ended is still on its node", "node", one.node, "error", err)
		}
	}
}

// cordonAgain cordons nodes that are being drained: with new pods no drain would end.
func (e *evaluator) cordonAgain(ctx context.Context, nodes []*corev1.Node) {
	for _, node := range nodes {
		should := node.DeepCopy()
		should.Spec.Unschedulable = true
		_, err := write(ctx, e.Nodes.Client(), node, should)
		switch {
		case err == nil:
			activity.GetLogger(ctx).Info("cordoned again: somebody has lifted the cordon of a node that is being drained", "node", node.Name)
		case apierrors.IsConflict(err), apierrors.IsNotFound(err): // the next evaluation does it
		default:
			activity.GetLogger(ctx).Warn("a node that is being drained is schedulable", "node", node.Name, "error", err)
		}
	}
}
