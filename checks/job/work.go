package job

import (
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

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/sections"
)

var _ checks.Beginner = &run{}

// The Job of a work stays for workKeptFor seconds, and at least for leastWorkKept: a worker that finds none creates it, and
// has to find it for longer than it may take to note that it was created.
const (
	workKeptFor   = 24 * 3600
	leastWorkKept = 2 * 3600
)

// endedPause is the interval between checks whether what was deleted is gone.
const endedPause = 500 * time.Millisecond

// checkOnce refuses what would run a pod of a work twice: whatever was half done, somebody has to look at first.
func checkOnce(job *batchv1.Job, at func(string) string, p *sections.Problems) {
	const once = "work runs once, and somebody looks at what has failed"
	spec := job.Spec
	if spec.BackoffLimit != nil && *spec.BackoffLimit != 0 {
		p.Add(at("spec.backoffLimit"), "%d: want 0, or leave it out: %s", *spec.BackoffLimit, once)
	}
	if policy := spec.Template.Spec.RestartPolicy; policy != corev1.RestartPolicyNever {
		p.Add(at("spec.template.spec.restartPolicy"), "%q: want Never: %s", policy, once)
	}
	for _, field := range []struct {
		name  string
		value *int32
	}{{"spec.completions", spec.Completions}, {"spec.parallelism", spec.Parallelism}} {
		if field.value != nil && *field.value != 1 {
			p.Add(at(field.name), "%d: want 1, or leave it out: %s", *field.value, once)
		}
	}
	for _, field := range []struct {
		name string
		set  bool
	}{{"spec.podFailurePolicy", spec.PodFailurePolicy != nil}, {"spec.backoffLimitPerIndex", spec.BackoffLimitPerIndex != nil}} {
		if field.set {
			p.Add(at(field.name), "leave it out: %s", once)
		}
	}
	if ttl := spec.TTLSecondsAfterFinished; ttl != nil && *ttl < leastWorkKept {
		p.Add(at("spec.ttlSecondsAfterFinished"), "%d: want at least %d, or leave it out: a Job that is gone too early could run again", *ttl, leastWorkKept)
	}
}

// bootIDVariable has the node's boot ID before the work. A work that restarts the node sees by it that it has done so.
const bootIDVariable = "DRYDOCK_BOOT_ID"

// noted is a Job with its note, which of a work is the node's boot ID.
func noted(job *batchv1.Job, note string) {
	job.Annotations[noteAnnotation] = note
	pod := &job.Spec.Template.Spec
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			own := func(v corev1.EnvVar) bool { return v.Name == bootIDVariable }
			containers[i].Env = append([]corev1.EnvVar{{Name: bootIDVariable, Value: strings.ReplaceAll(note, "$", "$$")}}, slices.DeleteFunc(containers[i].Env, own)...)
		}
	}
}

// Begin creates the Job at the first call with its key, and finds it at the others.
func (r *run) Begin(ctx context.Context, c checks.Call, note string) (checks.Begun, error) {
	job, err := r.ensure(ctx, c, note)
	if err != nil {
		return checks.Begun{}, err
	}
	return checks.Begun{Name: nameOf(job), Note: job.Annotations[noteAnnotation]}, nil
}

// Find finds the Job of a call.
func (r *run) Find(ctx context.Context, c checks.Call) (begun checks.Begun, found bool, err error) {
	job, err := r.find(ctx, c)
	switch {
	case apierrors.IsNotFound(err):
		return checks.Begun{}, false, nil
	case err != nil:
		return checks.Begun{}, false, err
	}
	return checks.Begun{Name: nameOf(job), Note: job.Annotations[noteAnnotation]}, true, nil
}

// Look returns the state of the Job of a call.
func (r *run) Look(ctx context.Context, c checks.Call) (checks.State, error) {
	job, err := r.find(ctx, c)
	if err != nil {
		return r.gone(c, err)
	}
	return r.state(ctx, job), nil
}

// Await waits until the Job of a call has ended. One that is gone has ended too.
func (r *run) Await(ctx context.Context, c checks.Call) (checks.State, error) {
	job, err := r.find(ctx, c)
	if err == nil {
		job, err = r.await(ctx, job)
	}
	if err != nil {
		return r.gone(c, err)
	}
	return r.state(ctx, job), nil
}

// place is where the Job of a call is: where it was begun, as far as that is known, whatever the configuration says by now.
func (r *run) place(c checks.Call) (namespace, name string) {
	if namespace, name, known := strings.Cut(c.Begun, "/"); known {
		return namespace, name
	}
	return r.config.Namespace, r.identity(c.Key).jobName()
}

// find reads the Job of a call. One that is not Drydock's is none.
func (r *run) find(ctx context.Context, c checks.Call) (*batchv1.Job, error) {
	namespace, name := r.place(c)
	job, err := r.kubernetes.BatchV1().Jobs(namespace).Get(ctx, name, metav1.GetOptions{})
	if err == nil && job.Annotations[keyAnnotation] == "" {
		err = apierrors.NewNotFound(batchv1.Resource("jobs"), name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Job %s/%s: %w", namespace, name, err)
	}
	return job, nil
}

// gone is the end of a Job that somebody deleted; any other error stays one.
func (r *run) gone(c checks.Call, err error) (checks.State, error) {
	if !apierrors.IsNotFound(err) && !errors.Is(err, errJobDeleted) {
		return checks.State{}, err
	}
	namespace, name := r.place(c)
	return checks.State{Ended: true, Message: fmt.Sprintf("Job %s/%s was deleted, and how it ended is not known", namespace, name)}, nil
}

func (r *run) state(ctx context.Context, job *batchv1.Job) checks.State {
	end, why := endOf(job)
	said, err := r.said(ctx, job)
	if err != nil && end != batchv1.JobComplete {
		said = err.Error()
	}
	s := checks.State{Output: outbound.Excerpt(nil, tail(said, checks.MaxOutput), checks.MaxOutput)}
	switch end {
	case batchv1.JobComplete:
		s.Ended, s.OK, s.Message = true, true, "Job "+nameOf(job)+" is complete"
	case batchv1.JobFailed:
		s.Ended, s.Message = true, fmt.Sprintf("Job %s failed: %s", nameOf(job), outbound.Excerpt(nil, why, checks.MaxExcerpt))
	default:
		s.Message = "Job " + nameOf(job) + " has not ended"
	}
	return s
}

// End deletes the Job of a call after its pods, and waits until all of them are gone.
func (r *run) End(ctx context.Context, c checks.Call) error {
	namespace, name := r.place(c)
	jobs, foreground := r.kubernetes.BatchV1().Jobs(namespace), metav1.DeletePropagationForeground
	job, err := r.find(ctx, c)
	if err == nil {
		err = jobs.Delete(ctx, name, metav1.DeleteOptions{
			PropagationPolicy: &foreground, Preconditions: &metav1.Preconditions{UID: &job.UID},
		})
	}
	for {
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("deleting Job %s/%s: %w", namespace, name, err)
		}
		select {
		case <-time.After(endedPause):
		case <-ctx.Done():
			return fmt.Errorf("deleting Job %s/%s: its pods are still there: %w", namespace, name, context.Cause(ctx))
		}
		_, err = jobs.Get(ctx, name, metav1.GetOptions{})
	}
}
