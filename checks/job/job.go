package job

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/k8s/kube"
)

// run makes the Jobs of one check, hook, cleanup or work, and reads how they end.
type run struct {
	config     Config
	at         checks.Place
	kubernetes kube.Interface
}

// Check creates the Job at the first call with its key, and reads its state at the others.
func (r *run) Check(ctx context.Context, c checks.Call) (checks.Verdict, error) {
	job, err := r.ensure(ctx, c, "")
	if err != nil {
		return checks.Verdict{}, err
	}
	end, why := endOf(job)
	switch end {
	case batchv1.JobComplete:
		return checks.Verdict{OK: true, Message: "Job " + nameOf(job) + " is complete"}, nil
	case batchv1.JobFailed:
		return checks.Verdict{Message: fmt.Sprintf("Job %s failed: %s; delete it to run it again", nameOf(job), r.explain(ctx, job, why))}, nil
	default:
		return checks.Verdict{Message: "Job " + nameOf(job) + " is not finished"}, nil
	}
}

// Call creates the Job at the first call with its key, and waits until it is complete.
func (r *run) Call(ctx context.Context, c checks.Call) (checks.Outcome, error) {
	job, err := r.ensure(ctx, c, "")
	if err == nil {
		job, err = r.await(ctx, job)
	}
	if err != nil {
		return checks.Outcome{}, err
	}
	if end, why := endOf(job); end == batchv1.JobFailed {
		return checks.Outcome{}, fmt.Errorf("%w: %s: %s", checks.ErrJobFailed, nameOf(job), r.explain(ctx, job, why))
	}
	return checks.Outcome{Message: "Job " + nameOf(job) + " is complete"}, nil
}

// identity identifies a Job.
type identity struct {
	role      checks.Role
	name, key string
}

func (r *run) identity(key string) identity { return identity{r.at.Role, r.at.Name, key} }

func (id identity) digest() string {
	sum := sha256.Sum256([]byte(string(id.role) + "\x00" + id.name + "\x00" + id.key))
	return hex.EncodeToString(sum[:8])
}

// jobName is the same for the same call, so that a retry finds the Job.
func (id identity) jobName() string { return fmt.Sprintf("drydock-%.36s-%s", id.name, id.digest()) }

// ensure finds the Job of a call or creates it, with a note.
func (r *run) ensure(ctx context.Context, c checks.Call, note string) (*batchv1.Job, error) {
	id, namespace := r.identity(c.Key), r.config.Namespace
	jobs := r.kubernetes.BatchV1().Jobs(namespace)
	misconfigured := func(err error) error {
		return &checks.Misconfigured{Field: fmt.Sprintf("job of %s %s", id.role, id.name), Err: err}
	}
	job, err := jobs.Get(ctx, id.jobName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		var wanted *batchv1.Job
		if wanted, err = r.build(id, c.Subject); err != nil {
			return nil, misconfigured(err)
		}
		if note != "" {
			noted(wanted, note)
		}
		job, err = jobs.Create(ctx, wanted, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			job, err = jobs.Get(ctx, id.jobName(), metav1.GetOptions{})
		}
	}
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return nil, misconfigured(err)
	case err != nil:
		return nil, fmt.Errorf("running Job %s/%s: %w", namespace, id.jobName(), err)
	case job.Annotations[keyAnnotation] != id.digest():
		return nil, fmt.Errorf("running Job %s/%s: a Job of that name exists that is not Drydock's; delete it", namespace, id.jobName())
	}
	return job, nil
}

// Abandon deletes the Job of a call, if there is one, and its pods.
func (r *run) Abandon(ctx context.Context, c checks.Call) error {
	namespace, name := r.config.Namespace, r.identity(c.Key).jobName()
	background := metav1.DeletePropagationBackground
	err := r.kubernetes.BatchV1().Jobs(namespace).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting Job %s/%s: %w", namespace, name, err)
	}
	return nil
}
