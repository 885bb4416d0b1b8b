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

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/checkstest"
	"drydock.dev/drydock/checks/http"
	kind "drydock.dev/drydock/checks/job"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/validation"
)

func workConfig(t *testing.T, manifest string) checks.Config {
	t.Helper()
	hook := checkstest.Hook("job", &kind.Config{TemplateFile: checkstest.File(t, manifest), Namespace: "drydock"})
	return checks.Config{Work: checks.Works{"flash": {Actions: hook.Actions}}}
}

func workRunner(t *testing.T) (*checks.Runner, k8stest.Fake) {
	t.Helper()
	kube := k8stest.NewFake()
	r, err := checks.New(workConfig(t, manifestText), kube, "test")
	if err != nil {
		t.Fatal(err)
	}
	return r, kube
}

func flash(key string) checks.WorkCall {
	return checks.WorkCall{Work: "flash", Key: key, Subject: checkstest.Subject}
}

// A work is begun once under each key, whatever is noted later, and is never begun by whoever waits for it.
func TestWorkIsBegunOnce(t *testing.T) {
	r, kube := workRunner(t)
	begin := func(key, note string) checks.Begun {
		t.Helper()
		begun, err := r.BeginWork(t.Context(), flash(key), note)
		if err != nil {
			t.Fatal(err)
		}
		return begun
	}
	first := begin("run-1/work/flash/1", "boot-1")
	if again := begin("run-1/work/flash/1", "boot-2"); again != first || first.Note != "boot-1" {
		t.Errorf("begun as %+v, and again as %+v", first, again)
	}
	if other := begin("run-1/work/flash/2", "boot-2"); other.Name == first.Name {
		t.Errorf("both are %s", other.Name)
	}
	all := jobs(t, kube)
	if len(all) != 2 {
		t.Fatalf("%d Jobs", len(all))
	}
	for _, job := range all {
		if env := job.Spec.Template.Spec.Containers[0].Env; env[0].Name != "DRYDOCK_BOOT_ID" || env[0].Value != job.Annotations["drydock.dev/note"] || env[0].Value == "" {
			t.Errorf("environment %+v", env)
		}
		if s := job.Spec; *s.BackoffLimit != 0 || *s.TTLSecondsAfterFinished < 3600*24 || *s.ActiveDeadlineSeconds != 30*60 {
			t.Errorf("spec %+v", s)
		}
	}
	if _, err := r.AwaitWork(t.Context(), flash("never begun")); err != nil {
		t.Fatal(err)
	}
	if got := len(jobs(t, kube)); got != 2 {
		t.Errorf("%d Jobs after a wait", got)
	}
}

func TestHowWorkEnds(t *testing.T) {
	for name, c := range map[string]struct {
		how  batchv1.JobConditionType
		ok   bool
		says string
	}{
		"complete": {batchv1.JobComplete, true, "is complete"},
		"failed":   {batchv1.JobFailed, false, "failed: no space"},
		"deleted":  {"", false, "was deleted, and how it ended is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			r, kube := workRunner(t)
			if _, err := r.BeginWork(t.Context(), flash("key"), ""); err != nil {
				t.Fatal(err)
			}
			if state, known, err := r.LookAtWork(t.Context(), flash("key")); err != nil || !known || state.Ended {
				t.Fatalf("%+v, %v, %v", state, known, err)
			}
			job := jobs(t, kube)[0]
			if c.how == "" {
				if err := kube.BatchV1().Jobs("drydock").Delete(t.Context(), job.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				end(t, kube, job, c.how, "no space")
			}
			state, err := r.AwaitWork(t.Context(), flash("key"))
			if err != nil || !state.Ended || state.OK != c.ok || !strings.Contains(state.Message, c.says) {
				t.Errorf("%+v, %v", state, err)
			}
		})
	}
}

func TestWorkIsEndedWithItsPods(t *testing.T) {
	r, kube := workRunner(t)
	if _, err := r.BeginWork(t.Context(), flash("key"), ""); err != nil {
		t.Fatal(err)
	}
	for range 2 { // again: it is gone already
		if err := r.EndWork(t.Context(), flash("key")); err != nil {
			t.Fatal(err)
		}
	}
	if left := jobs(t, kube); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestAWaitForWorkEndsWithItsContext(t *testing.T) {
	r, _ := workRunner(t)
	if _, err := r.BeginWork(t.Context(), flash("key"), ""); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.AwaitWork(ctx, flash("key")); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

func TestWorkThatCouldRunTwiceIsRefused(t *testing.T) {
	for change, want := range map[[2]string]string{
		{"backoffLimit: 0", "backoffLimit: 3"}:                                    "spec.backoffLimit: 3: want 0",
		{"restartPolicy: Never", "restartPolicy: OnFailure"}:                      "spec.template.spec.restartPolicy: \"OnFailure\": want Never",
		{"backoffLimit: 0", "parallelism: 2"}:                                     "spec.parallelism: 2: want 1",
		{"backoffLimit: 0", "completions: 2"}:                                     "spec.completions: 2: want 1",
		{"backoffLimit: 0", "ttlSecondsAfterFinished: 700"}:                       "spec.ttlSecondsAfterFinished: 700: want at least 7200",
		{"backoffLimit: 0", "podFailurePolicy: {rules: [{action: Ignore}]}"}:      "spec.podFailurePolicy: leave it out",
		{"backoffLimit: 0", "completionMode: Indexed\n  backoffLimitPerIndex: 1"}: "spec.backoffLimitPerIndex: leave it out",
	} {
		_, err := checks.New(workConfig(t, strings.Replace(manifestText, change[0], change[1], 1)), k8stest.NewFake(), "test")
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "work.flash.job") {
			t.Errorf("%s: %v", change[1], err)
		}
	}
}

// What was begun is looked after where it was begun, whatever the configuration says of the work by now.
func TestWorkIsLookedAfterWhereItWasBegun(t *testing.T) {
	r, kube := workRunner(t)
	begun, err := r.BeginWork(t.Context(), flash("key"), "boot-1")
	if err != nil {
		t.Fatal(err)
	}
	hook := checkstest.Hook("job", &kind.Config{TemplateFile: checkstest.File(t, manifestText), Namespace: "elsewhere"})
	call := checkstest.Hook("http", &http.Config{URL: "http://127.0.0.1:1/"})
	for name, c := range map[string]checks.Config{
		"another namespace": {Work: checks.Works{"flash": {Actions: hook.Actions}}}, "another kind": {Work: checks.Works{"flash": {Actions: call.Actions}}}, "gone": {},
	} {
		t.Run(name, func(t *testing.T) {
			later, err := checks.New(c, kube, "test")
			if err != nil {
				t.Fatal(err)
			}
			later.LookAfter(checks.Kinds{http.Kind, kind.Kind}, checks.Environment{Kubernetes: kube})
			of := flash("key")
			of.Kind, of.Begun = validation.KindJob, begun.Name
			if state, known, err := later.LookAtWork(t.Context(), of); err != nil || !known || state.Ended {
				t.Errorf("%+v, %v, %v", state, known, err)
			}
			of.Begun = ""
			if _, err := later.BeginWork(t.Context(), of, ""); name != "another namespace" && !errors.Is(err, checks.ErrMisconfigured) {
				t.Errorf("begun anew: %v", err)
			}
		})
	}
	of := flash("key")
	of.Kind, of.Begun = validation.KindJob, begun.Name
	gone, err := checks.New(checks.Config{}, kube, "test")
	if err != nil {
		t.Fatal(err)
	}
	gone.LookAfter(checks.Kinds{kind.Kind}, checks.Environment{Kubernetes: kube})
	if err := gone.EndWork(t.Context(), of); err != nil {
		t.Error(err)
	}
	if state, _, err := r.LookAtWork(t.Context(), flash("key")); err != nil || !state.Ended {
		t.Errorf("%+v, %v", state, err)
	}
}

func TestAJobOfTheNameThatIsNotDrydocksIsLeftAlone(t *testing.T) {
	r, kube := workRunner(t)
	begun, err := r.BeginWork(t.Context(), flash("key"), "")
	if err != nil {
		t.Fatal(err)
	}
	_, name, _ := strings.Cut(begun.Name, "/")
	foreign := jobs(t, kube)[0]
	foreign.Annotations = nil
	if _, err := kube.All.BatchV1().Jobs("drydock").Update(t.Context(), &foreign, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := r.EndWork(t.Context(), flash("key")); err != nil {
		t.Fatal(err)
	}
	if _, err := kube.BatchV1().Jobs("drydock").Get(t.Context(), name, metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, found, err := r.FindWork(t.Context(), flash("key")); found || err != nil {
		t.Errorf("found %v, %v", found, err)
	}
}

// Whoever writes much says at the end how it went.
func TestTheEndOfALongOutputIsKept(t *testing.T) {
	r, kube := workRunner(t)
	if _, err := r.BeginWork(t.Context(), flash("key"), ""); err != nil {
		t.Fatal(err)
	}
	job := jobs(t, kube)[0]
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "drydock", Labels: map[string]string{batchv1.JobNameLabel: job.Name}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "burn", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, Message: strings.Repeat("löading ", 500) + "\x1b[31mno space left\n",
	}}}}
	if _, err := kube.CoreV1().Pods("drydock").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	end(t, kube, job, batchv1.JobFailed, "it failed")
	state, err := r.AwaitWork(t.Context(), flash("key"))
	if err != nil || !strings.HasPrefix(state.Output, "…") || !strings.HasSuffix(state.Output, "löading [31mno space left") || len(state.Output) > checks.MaxOutput {
		t.Errorf("%d bytes, %+v, %v", len(state.Output), state, err)
	}
}
