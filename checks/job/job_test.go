package job_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	kind "drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/period"
)

const manifestText = `
apiVersion: batch/v1
kind: Job
metadata: {name: ignored, labels: {team: gpu}}
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      tolerations: [{key: gpu, operator: Exists}]
      initContainers: [{name: warm, image: warm}]
      containers:
      - name: burn
        image: burn
        env: [{name: TARGET, value: $(DRYDOCK_NODE)}, {name: DRYDOCK_REASON, value: mine}]
`

func jobConfig(t *testing.T, manifest string) checks.Config {
	t.Helper()
	configured := func() *kind.Config {
		return &kind.Config{TemplateFile: checkstest.File(t, manifest), Namespace: "drydock"}
	}
	hook := checkstest.Hook("job", configured())
	hook.Deadline, hook.Cleanup = period.Duration(time.Hour), checkstest.Cleanup("job", configured())
	return checks.Config{
		Checks: map[string]checks.Check{"burn-in": checkstest.Check("job", configured())},
		Hooks:  map[string]checks.Hook{"firmware": hook},
	}
}

func jobRunner(t *testing.T, objects ...runtime.Object) (*checks.Runner, k8stest.Fake) {
	t.Helper()
	kube := k8stest.NewFake(objects...)
	r, err := checks.New(jobConfig(t, manifestText), kube, "test")
	if err != nil {
		t.Fatal(err)
	}
	return r, kube
}

func jobs(t *testing.T, kube k8stest.Fake) []batchv1.Job {
	t.Helper()
	list, err := kube.BatchV1().Jobs("drydock").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func end(t *testing.T, kube k8stest.Fake, job batchv1.Job, how batchv1.JobConditionType, message string) *batchv1.Job {
	t.Helper()
	job.Status.Conditions = append(job.Status.Conditions,
		batchv1.JobCondition{Type: batchv1.JobSuspended, Status: corev1.ConditionFalse},
		batchv1.JobCondition{Type: how, Status: corev1.ConditionTrue, Reason: "Reason", Message: message})
	updated, err := kube.All.BatchV1().Jobs("drydock").UpdateStatus(t.Context(), &job, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return updated
}

func TestACheckRunsOneJobPerKey(t *testing.T) {
	r, kube := jobRunner(t)
	ask := func(key, want string, ok bool) {
		t.Helper()
		got, err := r.Check(t.Context(), "burn-in", checkstest.Subject, key)
		if err != nil || got.OK != ok || !strings.Contains(got.Message, want) {
			t.Fatalf("got %+v, %v; want %q", got, err, want)
		}
	}
	ask("one", "is not finished", false)
	ask("one", "is not finished", false)
	all := jobs(t, kube)
	if len(all) != 1 {
		t.Fatalf("%d Jobs", len(all))
	}
	end(t, kube, all[0], batchv1.JobComplete, "")
	ask("one", "is complete", true)
	ask("two", "is not finished", false)
	if got := len(jobs(t, kube)); got != 2 {
		t.Fatalf("%d Jobs", got)
	}
	for range 2 { // again: it is gone already
		if err := r.AbandonCheck(t.Context(), "burn-in", "two"); err != nil {
			t.Fatal(err)
		}
	}
	if left := jobs(t, kube); len(left) != 1 || left[0].Name != all[0].Name {
		t.Fatalf("left %v", left)
	}
}

func TestAJobIsPinnedToItsNode(t *testing.T) {
	r, kube := jobRunner(t)
	s := checkstest.Subject
	s.Reason = "$(SECRET) costs $$5\x00"
	if _, err := r.Check(t.Context(), "burn-in", s, strings.Repeat("long/", 100)); err != nil {
		t.Fatal(err)
	}
	job := jobs(t, kube)[0]
	if token := job.Spec.Template.Spec.AutomountServiceAccountToken; token == nil || *token {
		t.Error("its pods get a token that its manifest does not ask for")
	}
	if wrong := utilvalidation.IsDNS1123Label(job.Name); len(wrong) > 0 || !strings.HasPrefix(job.Name, "drydock-burn-in-") {
		t.Errorf("name %q: %v", job.Name, wrong)
	}
	if *job.Spec.ActiveDeadlineSeconds != 600 || *job.Spec.TTLSecondsAfterFinished != 3600 || *job.Spec.BackoffLimit != 0 || len(job.OwnerReferences) != 0 {
		t.Errorf("got %+v", job.Spec)
	}
	for _, meta := range []metav1.ObjectMeta{job.ObjectMeta, job.Spec.Template.ObjectMeta} {
		if len(meta.Labels[kind.WorkflowLabel]) != 16 || meta.Annotations["drydock.dev/workflow"] != s.WorkflowID {
			t.Errorf("got %+v", meta)
		}
	}
	if job.Labels["team"] != "gpu" {
		t.Errorf("labels %v", job.Labels)
	}
	pod := job.Spec.Template.Spec
	wanted := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-01"}},
	}}}}
	if diff := cmp.Diff(wanted, pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution); diff != "" {
		t.Error(diff)
	}
	if len(pod.Tolerations) != 3 || pod.Tolerations[1].Key != "node.kubernetes.io/unschedulable" || pod.Tolerations[2].Key != "drydock.dev/maintenance" {
		t.Errorf("tolerations %v", pod.Tolerations)
	}
	for _, c := range []corev1.Container{pod.InitContainers[0], pod.Containers[0]} {
		values := map[string]string{}
		for _, v := range c.Env {
			if _, twice := values[v.Name]; twice {
				t.Errorf("%s: %s is there twice", c.Name, v.Name)
			}
			values[v.Name] = v.Value
		}
		if c.Env[0].Name != "DRYDOCK_NODE" || values["DRYDOCK_NODE"] != "worker-01" || values["DRYDOCK_REASON"] != "$$(SECRET) costs $$$$5" {
			t.Errorf("%s: %v", c.Name, c.Env)
		}
	}
	if last := pod.Containers[0].Env[len(pod.Containers[0].Env)-1]; last.Name != "TARGET" {
		t.Errorf("last is %v", last)
	}
}

func TestEveryAlternativeOfAnAffinityMeansTheNode(t *testing.T) {
	manifest := manifestText + `
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions: [{key: gpu, operator: Exists}]
            - matchExpressions: [{key: nic, operator: Exists}]
`
	kube := k8stest.NewFake()
	r, err := checks.New(jobConfig(t, manifest), kube, "test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context(), "burn-in", checkstest.Subject, "k"); err != nil {
		t.Fatal(err)
	}
	terms := jobs(t, kube)[0].Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 2 {
		t.Fatalf("got %v", terms)
	}
	for _, term := range terms {
		if len(term.MatchExpressions) != 1 || len(term.MatchFields) != 1 || term.MatchFields[0].Values[0] != "worker-01" {
			t.Errorf("got %v", term)
		}
	}
}

func TestManifestsThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ manifest, want string }{
		"another kind":      {"apiVersion: v1\nkind: Pod", "kind: v1 Pod: want batch/v1 Job"},
		"a typo":            {"apiVersion: batch/v1\nkind: Job\nspec: {template: {spec: {container: []}}}", "container"},
		"another namespace": {strings.Replace(manifestText, "name: ignored", "namespace: kube-system", 1), `metadata.namespace: "kube-system" is not the configured namespace`},
		"a node":            {manifestText + "      nodeName: other\n", "spec.template.spec.nodeName: leave it out"},
		"a selector":        {strings.Replace(manifestText, "backoffLimit: 0", "manualSelector: true", 1), "spec.selector: leave it out"},
		"nothing to run":    {"apiVersion: batch/v1\nkind: Job", "containers: required"},
		"gone at once":      {strings.Replace(manifestText, "backoffLimit: 0", "ttlSecondsAfterFinished: 0", 1), "ttlSecondsAfterFinished: 0: want at least 600"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := checks.New(jobConfig(t, c.manifest), k8stest.NewFake(), "test")
			if err == nil || !strings.Contains(err.Error(), "checks.burn-in.job: templateFile: ") || !strings.Contains(err.Error(), "hooks.firmware.closing.job: ") || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
	c := jobConfig(t, manifestText)
	c.Checks["burn-in"].Actions[0].Config.(*kind.Config).TemplateFile = "/does/not/exist"
	if err := c.Validate(); err != nil {
		t.Errorf("Validate reads files: %v", err)
	}
	if _, err := checks.New(c, k8stest.NewFake(), "test"); err == nil || !strings.Contains(err.Error(), "checks.burn-in.job: templateFile: open /does/not/exist") {
		t.Errorf("got %v", err)
	}
}

func TestAFailedJobSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"termination message": {corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
			{Name: "side", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: "fine"}}},
			{Name: "burn", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "gpu 3\nfell off the bus"}}},
		}}, "gpu 3 fell off the bus"},
		"log":         {corev1.PodStatus{}, "fake logs"},
		"pod message": {corev1.PodStatus{Message: "evicted"}, "evicted"},
	} {
		t.Run(name, func(t *testing.T) {
			r, kube := jobRunner(t)
			if _, err := r.Check(t.Context(), "burn-in", checkstest.Subject, "k"); err != nil {
				t.Fatal(err)
			}
			job := end(t, kube, jobs(t, kube)[0], batchv1.JobFailed, "Job has reached the specified backoff limit")
			for i, status := range []corev1.PodStatus{{Message: "older"}, c.status} {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
					Name: string(rune('z' - i)), Namespace: "drydock", Labels: map[string]string{batchv1.JobNameLabel: job.Name},
					CreationTimestamp: metav1.NewTime(time.Unix(int64(i), 0)),
				}, Spec: job.Spec.Template.Spec, Status: status}
				if _, err := kube.CoreV1().Pods("drydock").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			got, err := r.Check(t.Context(), "burn-in", checkstest.Subject, "k")
			if err != nil || got.OK || !strings.Contains(got.Message, "backoff limit: "+c.want) || !strings.Contains(got.Message, "delete it to run it again") {
				t.Fatalf("got %+v, %v", got, err)
			}
		})
	}
}

// watched gives a test the stream of a watch, once somebody watches.
func watched(kube k8stest.Fake) <-chan *watch.FakeWatcher {
	streams := make(chan *watch.FakeWatcher, 8)
	kube.PrependWatchReactor("jobs", func(clienttesting.Action) (bool, watch.Interface, error) {
		stream := watch.NewFakeWithChanSize(8, false)
		streams <- stream
		return true, stream, nil
	})
	return streams
}

type outcome struct {
	checks.Outcome
	err error
}

func call(ctx context.Context, r *checks.Runner, closing bool, key string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		got, err := r.Hook(ctx, "firmware", closing, checkstest.Subject, key)
		done <- outcome{got, err}
	}()
	return done
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case got := <-from:
		return got
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestAHookWaitsForItsJob(t *testing.T) {
	for name, c := range map[string]struct {
		how  batchv1.JobConditionType
		want error
	}{"complete": {batchv1.JobComplete, nil}, "failed": {batchv1.JobFailed, checks.ErrJobFailed}} {
		t.Run(name, func(t *testing.T) {
			r, kube := jobRunner(t)
			streams := watched(kube)
			done := call(t.Context(), r, false, "k")
			stream := receive(t, streams)
			job := jobs(t, kube)[0]
			if *job.Spec.ActiveDeadlineSeconds != 3600 {
				t.Errorf("deadline %d", *job.Spec.ActiveDeadlineSeconds)
			}
			other := job.DeepCopy()
			other.Name = "other"
			stream.Delete(other)
			stream.Modify(&job)
			stream.Modify(end(t, kube, job, c.how, "ended"))
			got := receive(t, done)
			if !errors.Is(got.err, c.want) || c.want == nil && !strings.Contains(got.Message, "is complete") {
				t.Fatalf("got %+v", got)
			}
			// A repeated call finds the Job.
			if again := receive(t, call(t.Context(), r, false, "k")); !errors.Is(again.err, c.want) || len(jobs(t, kube)) != 1 {
				t.Fatalf("again %+v, %d Jobs", again, len(jobs(t, kube)))
			}
		})
	}
}

func TestAWatchThatEndsIsBegunAnew(t *testing.T) {
	r, kube := jobRunner(t)
	streams := watched(kube)
	done := call(t.Context(), r, true, "k")
	receive(t, streams).Stop()
	receive(t, streams).Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
	stream := receive(t, streams)
	stream.Modify(end(t, kube, jobs(t, kube)[0], batchv1.JobComplete, ""))
	if got := receive(t, done); got.err != nil {
		t.Fatal(got.err)
	}
}

func TestAJobThatIsDeletedEndsTheWait(t *testing.T) {
	r, kube := jobRunner(t)
	streams := watched(kube)
	done := call(t.Context(), r, false, "k")
	stream := receive(t, streams)
	job := jobs(t, kube)[0]
	stream.Delete(&job)
	if got := receive(t, done); got.err == nil || !strings.Contains(got.err.Error(), "was deleted while it was waited for") || errors.Is(got.err, checks.ErrJobFailed) {
		t.Fatalf("got %+v", got)
	}
}

func TestAnEndedContextLeavesTheJobToWhoeverGoesOn(t *testing.T) {
	r, kube := jobRunner(t)
	streams := watched(kube)
	stopped := errors.New("the worker stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := call(ctx, r, false, "k")
	receive(t, streams)
	cancel(stopped)
	if got := receive(t, done); !errors.Is(got.err, stopped) {
		t.Fatalf("got %v", got.err)
	}
	if len(jobs(t, kube)) != 1 {
		t.Fatal("the Job is gone")
	}
	if err := r.AbandonHook(t.Context(), "firmware", true, "k"); err != nil || len(jobs(t, kube)) != 1 {
		t.Fatalf("the closing's is another Job: %v", err)
	}
	if err := r.AbandonHook(t.Context(), "firmware", false, "k"); err != nil || len(jobs(t, kube)) != 0 {
		t.Fatalf("%d Jobs left, %v", len(jobs(t, kube)), err)
	}
}

func TestErrorsOfTheAPIServer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", errors.New("no role"))
	invalid := apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", nil)
	for name, c := range map[string]struct {
		err           error
		misconfigured bool
	}{"forbidden": {forbidden, false}, "invalid": {invalid, true}} {
		r, kube := jobRunner(t)
		kube.PrependReactor("create", "jobs", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, c.err })
		_, err := r.Check(t.Context(), "burn-in", checkstest.Subject, "k")
		if !errors.Is(err, c.err) || errors.Is(err, checks.ErrMisconfigured) != c.misconfigured {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestAForeignJobIsNotTakenOver(t *testing.T) {
	r, kube := jobRunner(t)
	if _, err := r.Check(t.Context(), "burn-in", checkstest.Subject, "k"); err != nil {
		t.Fatal(err)
	}
	job := jobs(t, kube)[0]
	job.Annotations = nil
	if _, err := kube.All.BatchV1().Jobs("drydock").Update(t.Context(), &job, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Check(t.Context(), "burn-in", checkstest.Subject, "k"); err == nil || !strings.Contains(err.Error(), "is not Drydock's; delete it") {
		t.Fatalf("got %v", err)
	}
}
