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
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/outbound"
)

const (
	// watchPause is the pause before a watch that ended is started again.
	watchPause = time.Second
	logLines   = 10
	logBytes   = 64 << 10
	maxSaid    = 400
)

func nameOf(job *batchv1.Job) string { return job.Namespace + "/" + job.Name }

// endOf is the condition with which a Job ended, and why; empty while it has not.
func endOf(job *batchv1.Job) (end batchv1.JobConditionType, why string) {
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			return c.Type, cmp.Or(c.Message, c.Reason, "no reason given")
		}
	}
	return "", ""
}

var errJobDeleted = errors.New("the Job was deleted while it was waited for")

// await waits until a Job ended.
func (r *run) await(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	jobs := r.kubernetes.BatchV1().Jobs(job.Namespace)
	uid := job.UID
	for {
		if end, _ := endOf(job); end != "" {
			return job, nil
		}
		stream, err := jobs.Watch(ctx, metav1.ListOptions{
			FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, job.Name).String(), ResourceVersion: job.ResourceVersion,
		})
		if err != nil {
			return nil, waiting(ctx, job, err)
		}
		_, err = watchtools.UntilWithoutRetry(ctx, stream, func(event watch.Event) (bool, error) { return isLast(event, job.Name) })
		if ctx.Err() != nil || errors.Is(err, errJobDeleted) {
			return nil, waiting(ctx, job, err)
		}
		if err != nil {
			// The API server ends watches from time to time; what was missed is read now.
			select {
			case <-time.After(watchPause):
			case <-ctx.Done():
			}
		}
		read, err := jobs.Get(ctx, job.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err), err == nil && read.UID != uid:
			return nil, waiting(ctx, job, errJobDeleted)
		case err != nil:
			return nil, waiting(ctx, job, err)
		}
		job = read
	}
}

func isLast(event watch.Event, name string) (bool, error) {
	if event.Type == watch.Error {
		return false, apierrors.FromObject(event.Object)
	}
	job, ok := event.Object.(*batchv1.Job)
	if !ok || job.Name != name {
		return false, nil
	}
	if event.Type == watch.Deleted {
		return false, errJobDeleted
	}
	end, _ := endOf(job)
	return end != "", nil
}

func waiting(ctx context.Context, job *batchv1.Job, err error) error {
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return fmt.Errorf("waiting for Job %s: %w", nameOf(job), err)
}

// explain says why a Job failed, with what its last pod said.
func (r *run) explain(ctx context.Context, job *batchv1.Job, why string) string {
	text := outbound.Excerpt(nil, why, checks.MaxExcerpt)
	said, err := r.said(ctx, job)
	switch {
	case err != nil:
		return text + " (" + err.Error() + ")"
	case said != "":
		return text + ": " + outbound.Excerpt(nil, tail(said, maxSaid), maxSaid)
	default:
		return text
	}
}

// said is what a Job's last pod said: the termination message, or else the end of its log. It is empty if there is no
// pod.
func (r *run) said(ctx context.Context, job *batchv1.Job) (string, error) {
	pods, err := r.kubernetes.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{batchv1.JobNameLabel: job.Name}.String(),
	})
	if err != nil {
		return "", fmt.Errorf("its pods could not be read: %w", err)
	}
	if len(pods.Items) == 0 {
		return "", nil
	}
	last := slices.MaxFunc(pods.Items, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	container, message := failedContainer(&last)
	if message == "" {
		return r.log(ctx, &last, container)
	}
	return message, nil
}

// failedContainer is the first container that failed, or else the first there is, and its termination message.
func failedContainer(pod *corev1.Pod) (name, message string) {
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, status := range statuses {
			if ended := status.State.Terminated; ended != nil && ended.ExitCode != 0 {
				return status.Name, ended.Message
			}
		}
	}
	if len(pod.Spec.Containers) > 0 {
		name = pod.Spec.Containers[0].Name
	}
	return name, pod.Status.Message
}

func (r *run) log(ctx context.Context, pod *corev1.Pod, container string) (string, error) {
	lines, bytes := int64(logLines), int64(logBytes)
	data, err := r.kubernetes.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{
		Container: container, TailLines: &lines, LimitBytes: &bytes,
	}).DoRaw(ctx)
	if err != nil {
		return "", fmt.Errorf("its log could not be read: %w", err)
	}
	return string(data), nil
}

// tail is the end of a text, at most n bytes without the mark of the cut: programs write last how they ended.
func tail(text string, n int) string {
	if text = strings.TrimRight(text, "\x00 \r\n"); len(text) <= n {
		return text
	}
	return "…" + strings.ToValidUTF8(text[len(text)-n+len("…"):], "")
}
