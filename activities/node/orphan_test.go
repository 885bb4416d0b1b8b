package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s/k8stest"
)

// leftBy is the metadata of what a run has left, as checks/job writes it.
func leftBy(name, run string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: "works", Name: name, Labels: map[string]string{job.WorkflowLabel: "96122cccee582c23"},
		Annotations: map[string]string{"drydock.dev/workflow": activitytest.WorkflowID, "drydock.dev/run": run},
	}
}

func podBy(run string, phase corev1.PodPhase) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: leftBy("pod", run), Spec: corev1.PodSpec{NodeName: "n1"}, Status: corev1.PodStatus{Phase: phase}}
}

// orphans are the activities where the maintenance that holds n1 was terminated.
func orphans(t *testing.T, s *k8stest.Server) (*Activities, ReleaseInput) {
	kube := s.Client(t)
	n := &Activities{
		Client: kube, Jobs: job.Left{Kubernetes: kube, Namespaces: []string{"works"}, Patience: time.Second},
		Temporal: telling(activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
			activitytest.WorkflowID + "/" + activitytest.RunID: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		}), heldByHistory(t)),
	}
	return n, ReleaseInput{Node: "n1", WorkflowID: activitytest.WorkflowID, RunID: activitytest.RunID, Orphan: true}
}

func marked(s *k8stest.Server) bool { return s.Node("n1").Annotations[api.HoldersAnnotation] != "" }

func TestWhatAnOrphanHasLeftEndsBeforeItsNodeIsReleased(t *testing.T) {
	ended := &batchv1.Job{ObjectMeta: leftBy("ended", activitytest.RunID), Status: batchv1.JobStatus{
		Conditions: []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}},
	}}
	s := k8stest.New(activitytest.HeldNode(), ended, podBy(activitytest.RunID, corev1.PodFailed),
		&batchv1.Job{ObjectMeta: leftBy("waits", activitytest.RunID)},
		&batchv1.Job{ObjectMeta: leftBy("of-an-older-version", "")},
		&batchv1.Job{ObjectMeta: leftBy("of-another-run", "another")})
	n, in := orphans(t, s)
	if released, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || released.Foreign || marked(s) {
		t.Fatalf("released %+v, %v", released, err)
	}
	all := s.Requests("")
	deleted := slices.DeleteFunc(slices.Clone(all), func(r string) bool { return !strings.HasPrefix(r, "DELETE ") })
	const jobs = "DELETE /apis/batch/v1/namespaces/works/jobs/"
	if want := []string{jobs + "of-an-older-version", jobs + "waits"}; !slices.Equal(deleted, want) {
		t.Errorf("deleted %q, want %q", deleted, want)
	}
	if first := slices.IndexFunc(all, func(r string) bool { return strings.HasPrefix(r, "PATCH ") }); first < slices.Index(all, jobs+"waits") {
		t.Errorf("the mark was taken off first: %q", all)
	}
}

func TestANodeStaysHeldWhileAnOrphansPodRuns(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode(), podBy(activitytest.RunID, corev1.PodRunning))
	n, in := orphans(t, s)
	if _, err := activitytest.Call(t, n.ReleaseNode, in); activitytest.ErrorType(err) != api.ErrorJobsRun || !strings.Contains(fmt.Sprint(err), "pod works/pod on n1") || !marked(s) {
		t.Fatalf("%v; marked %t", err, marked(s))
	}
	s.Set(podBy(activitytest.RunID, corev1.PodSucceeded))
	if _, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || marked(s) {
		t.Errorf("%v; marked %t", err, marked(s))
	}
}

func TestWhatAnOrphanHasLeftEndsAlsoWhereItsMarkIsUnconfirmed(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode(), podBy(activitytest.RunID, corev1.PodRunning), &batchv1.Job{ObjectMeta: leftBy("waits", activitytest.RunID)})
	n, in := orphans(t, s)
	n.Temporal = telling(activitytest.Statuses(map[string]enums.WorkflowExecutionStatus{
		activitytest.WorkflowID + "/" + activitytest.RunID: enums.WORKFLOW_EXECUTION_STATUS_TERMINATED,
	}), nil) // its history is gone
	if _, err := activitytest.Call(t, n.ReleaseNode, in); activitytest.ErrorType(err) != api.ErrorJobsRun || !marked(s) {
		t.Fatalf("%v; marked %t", err, marked(s))
	}
	if !slices.Contains(s.Requests("DELETE"), "DELETE /apis/batch/v1/namespaces/works/jobs/waits") {
		t.Errorf("deleted %q", s.Requests("DELETE"))
	}
	s.Set(podBy(activitytest.RunID, corev1.PodSucceeded))
	if _, err := activitytest.Call(t, n.ReleaseNode, in); activitytest.ErrorType(err) != api.ErrorMarkUnconfirmed || !marked(s) {
		t.Errorf("%v; marked %t", err, marked(s))
	}
}

func TestWithoutThePermissionAnOrphanKeepsItsNode(t *testing.T) {
	s := k8stest.New(activitytest.HeldNode())
	s.Deny("list", "jobs")
	n, in := orphans(t, s)
	if _, err := activitytest.Call(t, n.ReleaseNode, in); activitytest.ErrorType(err) != api.ErrorMissingPermission || !strings.Contains(fmt.Sprint(err), "cannot list resource \"jobs\"") || !marked(s) {
		t.Fatalf("%v; marked %t", err, marked(s))
	}
	// Somebody has taken the mark off: nothing is kept back by it.
	s.Set(activitytest.Node("n1"))
	if released, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || !released.Foreign {
		t.Errorf("released %+v, %v", released, err)
	}
	// A release by the maintenance itself asks for no Jobs: it ends them as its work.
	s.Set(activitytest.HeldNode())
	in.Orphan = false
	if _, err := activitytest.Call(t, n.ReleaseNode, in); err != nil || marked(s) {
		t.Errorf("%v; marked %t", err, marked(s))
	}
}
