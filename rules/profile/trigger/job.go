package trigger

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/rules/profile/conf"
)

// defaultDeadline is that of a Job.
const defaultDeadline = 10 * time.Minute

func readJob(o *conf.Object) Trigger {
	j := Job{
		TemplateFile: o.Required("templateFile", "the file with the manifest of a batch/v1 Job"),
		Namespace:    o.Required("namespace", "where the Job runs"), Deadline: o.Duration("deadline", defaultDeadline),
	}
	if wrong := validation.IsDNS1123Label(j.Namespace); j.Namespace != "" && len(wrong) > 0 {
		o.Refuse("namespace", wrong[0], "%.80q is not a namespace", j.Namespace)
	}
	if j.Deadline <= 0 {
		o.Refuse("deadline", "write how long the Job may take", "%s is no time", j.Deadline)
	}
	return j
}

// Job runs a Job of Kubernetes on the node.
type Job struct {
	// TemplateFile is the manifest of a batch/v1 Job, a file of the worker.
	TemplateFile, Namespace string
	Deadline                time.Duration
}

// Describe is part of Trigger.
func (j Job) Describe() string { return "run the Job of " + j.TemplateFile + " on the node" }
