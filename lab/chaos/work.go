package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
)

// rebootJob is work that reboots its node, as the played nodes do it. Its label tells it from what runs on the node.
const rebootJob = `apiVersion: batch/v1
kind: Job
spec:
  template:
    metadata:
      labels: {app: ` + batchApp + `}
      annotations: {devcluster.drydock.dev/reboot: 2s, devcluster.drydock.dev/completion-delay: 1s}
    spec:
      restartPolicy: Never
      containers: [{name: reboot, image: "registry.example/reboot:v1"}]
`

// longJob is work that is not done before a run of chaos is.
var longJob = strings.NewReplacer("devcluster.drydock.dev/reboot: 2s, ", "", "completion-delay: 1s", "completion-delay: 1h").Replace(rebootJob)

// briefJob is work that leaves its node as it is.
var briefJob = strings.Replace(rebootJob, "devcluster.drydock.dev/reboot: 2s, ", "", 1)

// What the worker does on a node: by their names in its configuration.
const (
	reboots = "reboot"
	goesOn  = "long"
	// brief is a profile's.
	brief = "brief"
)

func (l *lane) workFile(name string) string { return filepath.Join(l.dir, l.name, name+".yaml") }

// writeWork writes the templates of the Jobs that do the work.
func (l *lane) writeWork() error {
	return errors.Join(os.WriteFile(l.workFile(brief), []byte(briefJob), 0o600), os.WriteFile(l.workFile(reboots), []byte(rebootJob), 0o600), os.WriteFile(l.workFile(goesOn), []byte(longJob), 0o600))
}

// workConfig is the part of a worker's configuration that names the work.
func (l *lane) workConfig() string {
	return fmt.Sprintf(`work:
  reboot: {job: {templateFile: %q, namespace: %s}, success: newBootID, deadline: 4m}
  long: {job: {templateFile: %q, namespace: %s}, deadline: 1h}
  fence: {http: {url: "%s/fence"}, deadline: 4m}
`, l.workFile(reboots), l.name, l.workFile(goesOn), l.name, l.receiver.server.URL)
}

// works means that the maintenances of the attempt have the worker do the work.
func works(a *attempt) bool { return a.cell.step.work != "" }

// mustWork means that nobody says done of a maintenance: its work does, or has to be begun before somebody does.
func mustWork(ctx context.Context, a *attempt, m *maintained) bool {
	if !works(a) || !m.whole() {
		return false
	}
	if a.cell.step.work == reboots {
		return true
	}
	if !m.done.IsZero() || !a.isReady(m) {
		return false
	}
	list, err := a.kube.BatchV1().Jobs(a.name).List(ctx, metav1.ListOptions{LabelSelector: api.WorkflowLabel})
	return err != nil || !slices.ContainsFunc(list.Items, func(job batchv1.Job) bool { return job.Annotations["drydock.dev/workflow"] == m.id })
}

// workedOnce looks whether each maintenance had one Job, and that one pod; and none any more where the work was ended.
func (a *attempt) workedOnce(ctx context.Context) error {
	if !works(a) {
		return nil
	}
	list, err := a.kube.BatchV1().Jobs(a.name).List(ctx, metav1.ListOptions{LabelSelector: api.WorkflowLabel})
	if err != nil {
		return err
	}
	wanted := 0
	for _, m := range a.maintained() {
		if m.whole() && a.cell.step.work == reboots {
			wanted++
		}
	}
	var problems []error
	if got := len(list.Items); got != wanted {
		problems = append(problems, fmt.Errorf("%d maintenances had %d Jobs", wanted, got))
	}
	pods, err := a.kube.CoreV1().Pods(a.name).List(ctx, metav1.ListOptions{LabelSelector: api.WorkflowLabel})
	if got := len(pods.Items); err == nil && got != wanted {
		err = fmt.Errorf("%d Jobs had %d pods", wanted, got)
	}
	return errors.Join(append(problems, err)...)
}
