// Package job runs the Jobs that are triggers of profiles.
package job

import (
	"context"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/profile/trigger"
)

// name is a part of the names of Jobs.
const name = "profile"

// Run runs a Job on the node, and returns once it is complete: the one of the key where that is there already, as after another
// attempt. It stays when it has ended, so that an attempt after one whose answer was lost does not run it twice: Remove it once
// its end is recorded. A Job that is removed by nobody goes by its TTL. How long it may take is its activeDeadlineSeconds, which is
// the trigger's deadline where the manifest has none. Errors: checks.ErrMisconfigured, checks.ErrJobFailed, which trying again
// does not heal.
func Run(ctx context.Context, client kube.Interface, j trigger.Job, node *corev1.Node, key string) error {
	caller, err := ready(client, j)
	if err != nil {
		return &checks.Misconfigured{Field: "trigger job", Err: err}
	}
	subject := checks.Subject{}.Of(node)
	if activity.IsActivity(ctx) {
		of := activity.GetInfo(ctx).WorkflowExecution
		subject.WorkflowID, subject.RunID = of.ID, of.RunID
	}
	_, err = caller.Call(ctx, checks.Call{Subject: subject, Key: key})
	return err
}

// Check returns what is wrong with the manifest of a Job, which a worker reads each time that it runs one.
func Check(j trigger.Job) error {
	_, err := ready(nil, j)
	return err
}

// Remove deletes the Job of a key, if there is one, and its pods. That the manifest is wrong by now does not keep it.
func Remove(ctx context.Context, client kube.Interface, j trigger.Job, key string) error {
	caller, _ := ready(client, j)
	return caller.(checks.Abandoner).Abandon(ctx, checks.Call{Key: key})
}

// ready is also there where the manifest is wrong, to remove what ran by an earlier one.
func ready(client kube.Interface, j trigger.Job) (checks.Caller, error) {
	config := &job.Config{TemplateFile: j.TemplateFile, Namespace: j.Namespace, Deadline: period.Duration(j.Deadline)}
	return config.Caller(checks.Place{Field: "trigger.job", Role: checks.RoleTrigger, Name: name}, checks.Environment{Kubernetes: client})
}
