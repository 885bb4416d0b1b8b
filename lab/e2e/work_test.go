package e2e

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/api"
)

// workNamespace is a namespace in which the worker may run the Jobs of works, by the role that Drydock ships.
func (s *site) workNamespace() string {
	s.Helper()
	ns := s.namespace()
	objects, err := objectsOfAll([]string{"../../deploy/kubernetes/rbac-work.yaml"})
	if err != nil {
		s.Fatal(err)
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *rbacv1.Role:
			o.Namespace = ns
			_, err = s.kube.RbacV1().Roles(ns).Create(s.ctx, o, metav1.CreateOptions{})
		case *rbacv1.RoleBinding:
			o.Namespace, o.Subjects = ns, []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: accountName, Namespace: "drydock"}}
			_, err = s.kube.RbacV1().RoleBindings(ns).Create(s.ctx, o, metav1.CreateOptions{})
		}
		if err != nil {
			s.Fatal(err)
		}
	}
	return ns
}

// exampleJob is a shipped manifest of a Job, played by the nodes as the annotations say.
func (s *site) exampleJob(name string, annotations map[string]string) string {
	s.Helper()
	text, err := os.ReadFile("../../deploy/kubernetes/examples/" + name + "-job.yaml")
	if err != nil {
		s.Fatal(err)
	}
	var job batchv1.Job
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		s.Fatal(err)
	}
	job.Spec.Template.Annotations = annotations
	if text, err = yaml.Marshal(job); err != nil {
		s.Fatal(err)
	}
	return s.file(name+"-job.yaml", string(text))
}

// worksOf are the Jobs that were created in a namespace.
func (s *site) worksOf(ns string) (created []string) {
	for _, r := range s.requests("/jobs", func(r request) bool { return r.Verb == "create" && r.Object.Namespace == ns && r.Status.Code < 300 }) {
		created = append(created, r.Object.Name)
	}
	return created
}

func (s *site) jobsIn(ns string) []batchv1.Job {
	s.Helper()
	list, err := s.kube.BatchV1().Jobs(ns).List(s.ctx, metav1.ListOptions{})
	if err != nil {
		s.Fatal(err)
	}
	return list.Items
}

func workRuns(status api.Status) bool { return status.RunningWork() != nil }

// TestWorkRebootsANode has the shipped Job reboot the node that it runs on, with the shipped permissions.
func TestWorkRebootsANode(t *testing.T) {
	s := prepareSite(t, "")
	ns := s.workNamespace()
	audit := filepath.Join(s.options.Dir, "audit.jsonl")
	s.options.Config += fmt.Sprintf(`
audit: {file: {path: %s}}
work:
  reboot: {job: {templateFile: %s, namespace: %s}, success: newBootID, deadline: 3m}
`, audit, s.exampleJob("reboot", map[string]string{"devcluster.drydock.dev/reboot": "15s", "devcluster.drydock.dev/completion-delay": "1h"}), ns)
	s.startWorker()
	const node = "worker-01"
	before, bootID := s.imprint(node), s.node(node).Status.NodeInfo.BootID
	s.daemonSet(s.namespace(), "agent")
	s.exits(s.drydock("start", node, "--work", "no-such", "--requestor", "other"), 2, `there is no "no-such"; the worker knows reboot`)
	s.exits(s.drydock("exec", node, "--work", "reboot", "--", "true"), 125, "leave --work out")
	s.exits(s.drydock("start", node, "--work", "reboot", "--wait"), 0, "the worker does reboot")
	run := s.runOf(node)
	begun := func(s api.Status) bool { return workRuns(s) && s.RunningWork().BootIDBefore != "" }
	if status := s.untilStatus(run, "the work runs", begun); status.WaitingFor == "" || status.RunningWork().BootIDBefore != bootID {
		t.Errorf("waits for %q, work %+v", status.WaitingFor, status.Work)
	}
	s.exits(s.drydock("status", node), 0, "work reboot, which runs since")
	s.undelayWork(ns, node)
	s.eventually("the node is away", func() error {
		for _, c := range s.node(node).Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return fmt.Errorf("it is Ready")
			}
		}
		return nil
	})
	s.mustEnd(run, api.Completed)
	s.back(node, before)
	if now := s.node(node).Status.NodeInfo.BootID; now == bootID {
		t.Errorf("boot ID %s as before", now)
	}
	if created := s.worksOf(ns); len(created) != 1 {
		t.Errorf("created %v", created)
	}
	for _, job := range s.jobsIn(ns) {
		if job.Status.Failed != 1 {
			t.Errorf("the Job was not killed by its reboot: %+v", job.Status)
		}
	}
	for _, from := range [][]string{nil, {"--from", audit}} {
		s.eventually("the record tells of the work", func() error {
			for form, want := range map[string]string{"table": "the node was restarted and is Ready", "markdown": "| reboot |", "json": `"bootIdBefore"`} {
				if r := s.drydock(append([]string{"history", node, "-o", form, "--details"}, from...)...); r.status != 0 || !strings.Contains(r.out(), want) {
					return fmt.Errorf("%s: %s", form, r.out())
				}
			}
			return nil
		})
	}
}

// TestWorkByAJob has an upgrade fail, tried again, killed half way with its worker, and taken back.
func TestWorkByAJob(t *testing.T) {
	slow(t)
	s := prepareSite(t, "")
	ns := s.workNamespace()
	const delay = "devcluster.drydock.dev/completion-delay"
	s.options.Config += fmt.Sprintf(`
work:
  upgrade: {job: {templateFile: %[1]s, namespace: %[3]s}, deadline: 2m}
  endless: {job: {templateFile: %[2]s, namespace: %[3]s}, deadline: 1h}
  short: {job: {templateFile: %[4]s, namespace: %[3]s}, deadline: 15s}
`, s.exampleJob("upgrade", map[string]string{delay: "500ms", "devcluster.drydock.dev/failure": "no space\n\x1b[31mleft <b>on</b> device"}),
		s.exampleJob("reboot", map[string]string{delay: "1h"}), ns, s.file("short-job.yaml", `{apiVersion: batch/v1, kind: Job, spec: {activeDeadlineSeconds: 3600, template: {
    metadata: {annotations: {devcluster.drydock.dev/completion-delay: 1h}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`))
	s.startWorker()

	s.sub("fails, and is tried again", func(s *site) {
		run := s.beginWith("worker-01", `"work":"upgrade"`)
		status := s.until(run, api.RequestorFailed)
		if w := status.Work[0]; !strings.HasPrefix(status.Failure, "work upgrade failed: Job "+ns+"/drydock-upgrade-") || w.Output != "no space [31mleft <b>on</b> device" {
			s.Errorf("%s; work %+v", status.Failure, w)
		}
		s.exits(s.drydock("status", "worker-01"), 0, "no space", "RequestorFailed")
		// What the Job was given is read anew for each: somebody has mended it.
		s.exampleJob("upgrade", map[string]string{delay: "1h"})
		s.mustDrydock("retry", "worker-01")
		s.untilStatus(run, "the work runs again", func(status api.Status) bool {
			return workRuns(status) && status.RunningWork().Job != "" && len(status.Work) == 2
		})
		s.worker.Kill()
		s.startWorker()
		s.undelayWork(ns, "worker-01")
		result := s.mustEnd(run, api.Completed)
		if created := s.worksOf(ns); len(created) != 2 || created[0] == created[1] {
			s.Errorf("created %v", created)
		}
		s.untilSays([]string{"history", "worker-01", "-o", "markdown", "--details"}, `no space \[31mleft &lt;b&gt;on`, "is complete")
		if result.Phase != api.Completed {
			s.Errorf("%+v", result)
		}
	})
	s.sub("overdue", func(s *site) {
		s.exits(s.drydock("start", "worker-04", "--work", "endless", "--ready-timeout", "10m"), 2, "readyTimeout: 10m0s is shorter than the deadline of work endless (1h0m0s)")
		run := s.beginWith("worker-04", `"work":"short"`)
		status := s.until(run, api.RequestorFailed)
		if !strings.Contains(status.Failure, "has not ended within") || !strings.Contains(status.Failure, "and was deleted") {
			s.Errorf("%s", status.Failure)
		}
		s.endless(run.GetID(), ns)
		s.mustDrydock("retry", "worker-04")
		s.untilStatus(run, "the next Job is there", func(status api.Status) bool { return len(status.Work) == 2 && status.Work[1].Job != "" })
		s.mustDrydock("done", "worker-04")
		s.mustEnd(run, api.Completed)
	})
	s.sub("done by hand", func(s *site) {
		run := s.beginWith("worker-02", `"work":"endless"`)
		s.untilStatus(run, "the Job runs", func(status api.Status) bool { return workRuns(status) && status.RunningWork().Job != "" })
		s.eventually("its pod runs", func() error {
			if n := len(s.podsOn(ns, "worker-02")); n != 1 {
				return fmt.Errorf("%d pods", n)
			}
			return nil
		})
		s.mustDrydock("done", "worker-02")
		s.mustEnd(run, api.Completed)
		s.endless(run.GetID(), ns)
	})
	s.sub("terminated", func(s *site) {
		before := s.imprint("worker-05")
		run := s.beginWith("worker-05", `"work":"endless"`)
		job := ns + "/" + s.jobOfWork(run)
		if err := s.temporal.TerminateWorkflow(s.ctx, run.GetID(), "", "by hand"); err != nil {
			s.Fatal(err)
		}
		s.eventually("its Job and then its mark are gone", func() error {
			left := slices.ContainsFunc(s.jobsIn(ns), func(j batchv1.Job) bool { return j.Namespace+"/"+j.Name == job })
			if marked := s.node("worker-05").Annotations[api.HoldersAnnotation] != ""; left && !marked {
				s.Fatalf("the node is back, and Job %s is left", job)
			} else if left || marked {
				return fmt.Errorf("Job there: %t, mark there: %t", left, marked)
			}
			return nil
		})
		s.endless(run.GetID(), ns)
		s.back("worker-05", before)
	})
	s.sub("cancelled", func(s *site) {
		run := s.beginWith("worker-03", `"work":"endless"`)
		s.untilStatus(run, "the Job runs", func(status api.Status) bool { return workRuns(status) && status.RunningWork().Job != "" })
		s.mustDrydock("cancel", "worker-03")
		s.until(run, api.RequestorFailed)
		status := s.untilStatus(run, "the work has ended", func(status api.Status) bool { return !workRuns(status) })
		if got := status.Work[0].Outcome; !strings.HasPrefix(got, "ended: ") || !strings.HasSuffix(got, "its Job is deleted") {
			s.Errorf("outcome %q", got)
		}
		s.endless(run.GetID(), ns)
		s.mustDrydock("cancel", "worker-03", "--release")
		s.mustEnd(run, api.Cancelled)
	})
}

// undelayWork has the Job of a work complete at once that runs on a node.
func (s *site) undelayWork(ns, node string) {
	s.Helper()
	s.eventually("the work's pod runs", func() error {
		for _, pod := range s.podsOn(ns, node) {
			if pod.Status.Phase == corev1.PodRunning {
				s.undelay(pod)
				return nil
			}
		}
		return errors.New("none does")
	})
}

// jobOfWork is the Job of the work that runs, without its namespace.
func (s *site) jobOfWork(run client.WorkflowRun) string {
	s.Helper()
	status := s.untilStatus(run, "the Job runs", func(status api.Status) bool { return workRuns(status) && status.RunningWork().Job != "" })
	_, name, _ := strings.Cut(status.RunningWork().Job, "/")
	return name
}

// endless checks that nothing is left of work that was ended.
func (s *site) endless(id, ns string) {
	s.Helper()
	for _, job := range s.jobsIn(ns) {
		if job.Annotations["drydock.dev/workflow"] == id {
			s.Errorf("Job %s is left", job.Name)
		}
	}
}

// firmware is a server that flashes nodes: it answers as it is told, and keeps the keys of the requests.
type firmware struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string
	answer func(w http.ResponseWriter, r *http.Request)
}

func (f *firmware) got() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string{}, f.keys...)
}

func (f *firmware) answers(answer func(w http.ResponseWriter, r *http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

func newFirmware(t *testing.T) *firmware {
	f := &firmware{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // so that the end of the connection is seen
		f.mu.Lock()
		f.keys = append(f.keys, r.Header.Get("Idempotency-Key"))
		answer := f.answer
		f.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(f.Close)
	return f
}

// TestWorkByHTTP has a call fail, tried again, and repeated with the same key by the worker after one that was killed.
func TestWorkByHTTP(t *testing.T) {
	s := prepareSite(t, "")
	f := newFirmware(t)
	const canary = "canary-of-a-work"
	s.options.Config += fmt.Sprintf(`
work:
  flash: {http: {url: "%s/flash/{{.Node}}", bearerToken: {file: %q}, timeout: 30s}, deadline: 15s}
  slow: {http: {url: "%s/slow/{{.Node}}", timeout: 1m}, deadline: 2m}
`, f.URL, s.file("token", canary), f.URL)
	s.startWorker()
	f.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "out of paper, said %s", canary)
	})
	run := s.beginWith("worker-01", `"work":"flash"`)
	status := s.until(run, api.RequestorFailed)
	if !strings.Contains(status.Failure, "no success within 15s: ") || !strings.Contains(status.Failure, "out of paper") || strings.Contains(status.Failure, canary) {
		t.Errorf("%s", status.Failure)
	}
	failed := f.got()
	f.answers(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "flashed, said %s", canary) })
	s.mustDrydock("retry", "worker-01")
	s.mustEnd(run, api.Completed)
	all := f.got()
	if len(failed) < 2 || failed[0] == "" || failed[0] != failed[len(failed)-1] || all[len(all)-1] == failed[0] {
		t.Errorf("keys %v", all)
	}
	s.untilSays([]string{"history", "worker-01", "--details"}, "flashed, said")

	f.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slow := s.beginWith("worker-02", `"work":"slow"`)
	s.eventually("it is called", func() error {
		if n := len(f.got()); n != len(all)+1 {
			return fmt.Errorf("%d calls", n-len(all))
		}
		return nil
	})
	f.answers(func(http.ResponseWriter, *http.Request) {})
	s.worker.Kill()
	s.startWorker()
	s.mustEnd(slow, api.Completed)
	if keys := f.got()[len(all):]; len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("keys %v", keys)
	}
	s.mustNotLeak(s.written(2), map[string]string{"the token of a work": canary})
}
