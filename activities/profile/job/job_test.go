package job_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/activities/profile/job"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/profile/trigger"
)

const manifest = `
apiVersion: batch/v1
kind: Job
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers: [{name: flash, image: registry.example/flash:1}]
`

func node() *corev1.Node {
	n := activitytest.Node("n1")
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}
	return n
}

func prepare(t *testing.T) (k8stest.Fake, trigger.Job) {
	t.Helper()
	return k8stest.NewFake(), trigger.Job{TemplateFile: checkstest.File(t, manifest), Namespace: "drydock", Deadline: 5 * time.Minute}
}

func jobs(t *testing.T, kube k8stest.Fake) []batchv1.Job {
	t.Helper()
	list, err := kube.BatchV1().Jobs("drydock").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// begin has an attempt create the Job, and go away.
func begin(t *testing.T, kube k8stest.Fake, j trigger.Job) batchv1.Job {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- job.Run(ctx, kube, j, node(), "key") }()
	deadline := time.Now().Add(30 * time.Second)
	for len(jobs(t, kube)) == 0 {
		if time.Now().After(deadline) {
			t.Fatal("no Job is created")
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	return jobs(t, kube)[0]
}

func end(t *testing.T, kube k8stest.Fake, j batchv1.Job, how batchv1.JobConditionType) {
	t.Helper()
	j.Status.Conditions = []batchv1.JobCondition{{Type: how, Status: corev1.ConditionTrue, Message: "it has ended"}}
	if _, err := kube.All.BatchV1().Jobs("drydock").UpdateStatus(t.Context(), &j, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherAttemptAdoptsItsJob(t *testing.T) {
	kube, j := prepare(t)
	begun := begin(t, kube, j)
	if *begun.Spec.ActiveDeadlineSeconds != 300 || !strings.HasPrefix(begun.Name, "drydock-profile-") {
		t.Errorf("%s: %+v", begun.Name, begun.Spec)
	}
	values := map[string]string{}
	for _, v := range begun.Spec.Template.Spec.Containers[0].Env {
		values[v.Name] = v.Value
	}
	if values["DRYDOCK_NODE"] != "n1" || values["DRYDOCK_INTERNAL_IP"] != "192.0.2.1" {
		t.Errorf("%v", values)
	}
	end(t, kube, begun, batchv1.JobComplete)
	for range 2 { // also where its first answer was lost
		if err := job.Run(t.Context(), kube, j, node(), "key"); err != nil || len(jobs(t, kube)) != 1 {
			t.Fatalf("%v, %d Jobs", err, len(jobs(t, kube)))
		}
	}
	j.TemplateFile = "gone"
	for range 2 {
		if err := job.Remove(t.Context(), kube, j, "key"); err != nil || len(jobs(t, kube)) != 0 {
			t.Fatalf("%v, %d Jobs", err, len(jobs(t, kube)))
		}
	}
}

func TestTheJobNamesItsWorkflow(t *testing.T) {
	kube, j := prepare(t)
	kube.PrependReactor("create", "jobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		created := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
		created.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
		return false, nil, nil
	})
	err := activitytest.Execute(t, activitytest.Environment(), func(ctx context.Context) error { return job.Run(ctx, kube, j, node(), "key") })
	if err != nil {
		t.Fatal(err)
	}
	if of := jobs(t, kube)[0].Annotations["drydock.dev/workflow"]; of != activitytest.WorkflowID {
		t.Errorf("it is of %q", of)
	}
}

func TestAJobThatFailsSaysWhy(t *testing.T) {
	kube, j := prepare(t)
	begun := begin(t, kube, j)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "drydock", Labels: map[string]string{batchv1.JobNameLabel: begun.Name}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "flash", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Message: "no such firmware",
	}}}}
	if _, err := kube.CoreV1().Pods("drydock").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	end(t, kube, begun, batchv1.JobFailed)
	err := job.Run(t.Context(), kube, j, node(), "key")
	if !errors.Is(err, checks.ErrJobFailed) || !strings.Contains(err.Error(), "no such firmware") {
		t.Errorf("%v", err)
	}
	j.TemplateFile = "gone"
	if err := job.Run(t.Context(), kube, j, node(), "other"); !errors.Is(err, checks.ErrMisconfigured) || !strings.Contains(err.Error(), "templateFile") {
		t.Errorf("%v", err)
	}
}
