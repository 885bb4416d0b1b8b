package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/k8s/kube"
)

// ErrStillRuns says that a Job was to be ended, and that pods of it still run.
var ErrStillRuns = errors.New("its Jobs are deleted, and pods of them still run")

// leftEndsWithin is shorter than the time that an activity has.
const leftEndsWithin = 15 * time.Second

// maxNamed is how many pods an error names.
const maxNamed = 5

// Left ends what a maintenance has left behind that can end nothing any more: the Jobs of its work, hooks and checks, any of
// which may be about to restart its node.
type Left struct {
	Kubernetes kube.Interface
	// Namespaces are those in which the configuration has Jobs run. Without any, nothing is asked.
	Namespaces []string
	// Patience is how long the pods of Jobs that are ended are waited for, before an error says that they still run; 0 is leftEndsWithin.
	Patience time.Duration
}

// End deletes the Jobs of a maintenance's run that have not ended, and returns once none of their pods runs.
// Errors: ErrStillRuns.
func (l Left) End(ctx context.Context, workflowID, runID string) error {
	waiting, cancel := context.WithTimeout(ctx, cmp.Or(l.Patience, leftEndsWithin))
	defer cancel()
	for {
		var running []string
		for _, namespace := range l.Namespaces {
			left, err := l.endIn(ctx, namespace, workflowID, runID)
			if err != nil {
				return err
			}
			running = append(running, left...)
		}
		if len(running) == 0 {
			return nil
		}
		select {
		case <-time.After(endedPause):
		case <-waiting.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("ending the Jobs of %s: %w", workflowID, context.Cause(ctx))
			}
			return fmt.Errorf("%s: %w: %s", workflowID, ErrStillRuns, strings.Join(running[:min(len(running), maxNamed)], ", "))
		}
	}
}

// endIn deletes the Jobs of one namespace, and returns what is left of them.
func (l Left) endIn(ctx context.Context, namespace, workflowID, runID string) (left []string, err error) {
	selected := metav1.ListOptions{LabelSelector: labels.Set{WorkflowLabel: labelOf(workflowID)}.String()}
	jobs, err := l.Kubernetes.BatchV1().Jobs(namespace).List(ctx, selected)
	if err != nil {
		return nil, fmt.Errorf("looking for Jobs of %s in %s: %w", workflowID, namespace, err)
	}
	for _, job := range jobs.Items {
		if end, _ := endOf(&job); end != "" || !isOf(&job, workflowID, runID) {
			continue
		}
		left = append(left, "Job "+nameOf(&job))
		if err := l.delete(ctx, &job); err != nil {
			return nil, err
		}
	}
	// A Job may be deleted, by anybody, before its pods are gone.
	pods, err := l.Kubernetes.CoreV1().Pods(namespace).List(ctx, selected)
	if err != nil {
		return nil, fmt.Errorf("looking for pods of %s in %s: %w", workflowID, namespace, err)
	}
	for _, pod := range pods.Items {
		if over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed; !over && isOf(&pod, workflowID, runID) {
			left = append(left, fmt.Sprintf("pod %s/%s on %s", namespace, pod.Name, cmp.Or(pod.Spec.NodeName, "no node")))
		}
	}
	slices.Sort(left)
	return left, nil
}

// delete deletes a Job after its pods.
func (l Left) delete(ctx context.Context, job *batchv1.Job) error {
	if job.DeletionTimestamp != nil {
		return nil
	}
	foreground := metav1.DeletePropagationForeground
	err := l.Kubernetes.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &job.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Job %s: %w", nameOf(job), err)
	}
	return nil
}

// isOf reports whether a Job, or a pod of one, is of a maintenance's run. What does not say of which run it is was made by a
// version that did not write that.
func isOf(o metav1.Object, workflowID, runID string) bool {
	have := o.GetAnnotations()
	return have[workflowAnnotation] == workflowID && (have[runAnnotation] == "" || have[runAnnotation] == runID)
}
