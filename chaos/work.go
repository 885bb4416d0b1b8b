package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock/api"
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

func (l *lane) workFile() string { return filepath.Join(l.dir, l.name, "reboot.yaml") }

// workConfig is the part of a worker's configuration that names the work.
func (l *lane) workConfig() string {
	return fmt.Sprintf("work: {reboot: {job: {templateFile: %q, namespace: %s}, success: newBootID, deadline: 4m}}\n", l.workFile(), l.name)
}

// works tells that the maintenances of the attempt have the worker do the work.
func works(a *attempt) bool { return a.cell != nil && a.cell.step.work }

// workedOnce looks whether each maintenance had one Job, and that one pod.
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
		if m.whole() {
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
