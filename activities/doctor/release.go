package doctor

import (
	"context"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/doctor"
)

// release takes a dead run's mark off its node. What the run has left running there, which may be about to restart the node, is
// ended first, and looked for once more: it may have been begun while the mark was being taken off.
func release(ctx context.Context, d *Activities, f doctor.Finding) (k8s.Released, error) {
	if err := endJobs(ctx, d.Jobs, f); err != nil {
		return k8s.Released{}, err
	}
	recalled, err := known(ctx, d, f)
	if err != nil {
		return k8s.Released{}, err
	}
	holder := k8s.Caller{WorkflowID: f.WorkflowID, RunID: f.RunID}
	recalled.GivenBack = d.Home.GivenBack(ctx, holder, "HealedByDoctor")
	released, err := k8s.Release(ctx, d.Client, f.Node, holder, recalled)
	if err == nil {
		err = endJobs(ctx, d.Jobs, f)
	}
	return released, err
}

// known is what a dead run's history says of its node. Anyone who can annotate nodes can have written the mark.
func known(ctx context.Context, d *Activities, f doctor.Finding) (k8s.Known, error) {
	found, err := d.Client.CoreV1().Nodes().Get(ctx, f.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return k8s.Known{}, nil
	}
	if err != nil {
		return k8s.Known{}, fmt.Errorf("reading node %s: %w", f.Node, err)
	}
	mark, err := k8s.MarkOf(found)
	if err != nil {
		return k8s.Known{}, err
	}
	for _, h := range mark.Holders {
		if h.WorkflowID == f.WorkflowID && h.RunID == f.RunID {
			return node.Recall(ctx, d.Temporal, h, f.Node, found.UID)
		}
	}
	return k8s.Known{}, nil
}

func endJobs(ctx context.Context, jobs Jobs, f doctor.Finding) error {
	if jobs == nil {
		return nil
	}
	err := jobs.End(ctx, f.WorkflowID, f.RunID)
	if errors.Is(err, job.ErrStillRuns) {
		return temporal.NewNonRetryableApplicationError(err.Error(), api.ErrorJobsRun, nil)
	}
	return err
}
