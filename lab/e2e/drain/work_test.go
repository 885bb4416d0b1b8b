package drain

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

// TestWorkRebootsANode has the shipped Job reboot the node that it runs on, with the shipped permissions.
func TestWorkRebootsANode(t *testing.T) {
	s := site.Prepare(t, "")
	ns := s.WorkNamespace()
	audit := filepath.Join(s.Options.Dir, "audit.jsonl")
	s.Options.Config += fmt.Sprintf(`
audit: {file: {path: %s}}
work:
  reboot: {job: {templateFile: %s, namespace: %s}, success: newBootID, deadline: 3m}
`, audit, s.ExampleJob("reboot", map[string]string{"devcluster.drydock.dev/reboot": "15s", "devcluster.drydock.dev/completion-delay": "1h"}), ns)
	s.StartWorker()
	const node = "worker-01"
	before, bootID := s.Imprint(node), s.Node(node).Status.NodeInfo.BootID
	s.DaemonSet(s.Namespace(), "agent")
	s.Exits(s.Drydock("start", node, "--work", "no-such", "--requestor", "other"), 2, `there is no "no-such"; the worker knows reboot`)
	s.Exits(s.Drydock("exec", node, "--work", "reboot", "--", "true"), 125, "leave --work out")
	s.Exits(s.Drydock("start", node, "--work", "reboot", "--wait"), 0, "the worker does reboot")
	run := s.RunOf(node)
	begun := func(s api.Status) bool { return site.WorkRuns(s) && s.RunningWork().BootIDBefore != "" }
	if status := s.UntilStatus(run, "the work runs", begun); status.WaitingFor == "" || status.RunningWork().BootIDBefore != bootID {
		t.Errorf("waits for %q, work %+v", status.WaitingFor, status.Work)
	}
	s.Exits(s.Drydock("status", node), 0, "work reboot, which runs since")
	undelayWork(s, ns, node)
	s.Eventually("the node is away", func() error {
		for _, c := range s.Node(node).Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return fmt.Errorf("it is Ready")
			}
		}
		return nil
	})
	s.MustEnd(run, api.Completed)
	s.Back(node, before)
	if now := s.Node(node).Status.NodeInfo.BootID; now == bootID {
		t.Errorf("boot ID %s as before", now)
	}
	if created := s.WorksOf(ns); len(created) != 1 {
		t.Errorf("created %v", created)
	}
	for _, job := range s.JobsIn(ns) {
		if job.Status.Failed != 1 {
			t.Errorf("the Job was not killed by its reboot: %+v", job.Status)
		}
	}
	for _, from := range [][]string{nil, {"--from", audit}} {
		s.Eventually("the record tells of the work", func() error {
			for form, want := range map[string]string{"table": "the node was restarted and is Ready", "markdown": "| reboot |", "json": `"bootIdBefore"`} {
				if r := s.Drydock(append([]string{"history", node, "-o", form, "--details"}, from...)...); r.Status != 0 || !strings.Contains(r.Out(), want) {
					return fmt.Errorf("%s: %s", form, r.Out())
				}
			}
			return nil
		})
	}
}

// TestSlowWorkByAJob has an upgrade fail, tried again, killed half way with its worker, and taken back.
func TestSlowWorkByAJob(t *testing.T) {
	s := site.Prepare(t, "")
	ns := s.WorkNamespace()
	const delay = "devcluster.drydock.dev/completion-delay"
	s.Options.Config += fmt.Sprintf(`
work:
  upgrade: {job: {templateFile: %[1]s, namespace: %[3]s}, deadline: 2m}
  endless: {job: {templateFile: %[2]s, namespace: %[3]s}, deadline: 1h}
  short: {job: {templateFile: %[4]s, namespace: %[3]s}, deadline: 15s}
`, s.ExampleJob("upgrade", map[string]string{delay: "500ms", "devcluster.drydock.dev/failure": "no space\n\x1b[31mleft <b>on</b> device"}),
		s.ExampleJob("reboot", map[string]string{delay: "1h"}), ns, s.File("short-job.yaml", `{apiVersion: batch/v1, kind: Job, spec: {activeDeadlineSeconds: 3600, template: {
    metadata: {annotations: {devcluster.drydock.dev/completion-delay: 1h}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`))
	s.StartWorker()

	s.Sub("fails, and is tried again", func(s *site.Site) {
		run := s.BeginWith("worker-01", `"work":"upgrade"`)
		status := s.Until(run, api.RequestorFailed)
		if w := status.Work[0]; !strings.HasPrefix(status.Failure, "work upgrade failed: Job "+ns+"/drydock-upgrade-") || w.Output != "no space [31mleft <b>on</b> device" {
			s.Errorf("%s; work %+v", status.Failure, w)
		}
		s.Exits(s.Drydock("status", "worker-01"), 0, "no space", "RequestorFailed")
		// What the Job was given is read anew for each: somebody has mended it.
		s.ExampleJob("upgrade", map[string]string{delay: "1h"})
		s.MustDrydock("retry", "worker-01")
		s.UntilStatus(run, "the work runs again", func(status api.Status) bool {
			return site.WorkRuns(status) && status.RunningWork().Job != "" && len(status.Work) == 2
		})
		s.Worker.Kill()
		s.StartWorker()
		undelayWork(s, ns, "worker-01")
		result := s.MustEnd(run, api.Completed)
		if created := s.WorksOf(ns); len(created) != 2 || created[0] == created[1] {
			s.Errorf("created %v", created)
		}
		s.UntilSays([]string{"history", "worker-01", "-o", "markdown", "--details"}, `no space \[31mleft &lt;b&gt;on`, "is complete")
		if result.Phase != api.Completed {
			s.Errorf("%+v", result)
		}
	})
	s.Sub("overdue", func(s *site.Site) {
		s.Exits(s.Drydock("start", "worker-04", "--work", "endless", "--ready-timeout", "10m"), 2, "readyTimeout: 10m0s is shorter than the deadline of work endless (1h0m0s)")
		run := s.BeginWith("worker-04", `"work":"short"`)
		status := s.Until(run, api.RequestorFailed)
		if !strings.Contains(status.Failure, "has not ended within") || !strings.Contains(status.Failure, "and was deleted") {
			s.Errorf("%s", status.Failure)
		}
		endless(s, run.GetID(), ns)
		s.MustDrydock("retry", "worker-04")
		s.UntilStatus(run, "the next Job is there", func(status api.Status) bool { return len(status.Work) == 2 && status.Work[1].Job != "" })
		s.MustDrydock("done", "worker-04")
		s.MustEnd(run, api.Completed)
	})
	s.Sub("done by hand", func(s *site.Site) {
		run := s.BeginWith("worker-02", `"work":"endless"`)
		s.UntilStatus(run, "the Job runs", func(status api.Status) bool { return site.WorkRuns(status) && status.RunningWork().Job != "" })
		s.Eventually("its pod runs", func() error {
			if n := len(s.PodsOn(ns, "worker-02")); n != 1 {
				return fmt.Errorf("%d pods", n)
			}
			return nil
		})
		s.MustDrydock("done", "worker-02")
		s.MustEnd(run, api.Completed)
		endless(s, run.GetID(), ns)
	})
	s.Sub("terminated", func(s *site.Site) {
		before := s.Imprint("worker-05")
		run := s.BeginWith("worker-05", `"work":"endless"`)
		job := ns + "/" + jobOfWork(s, run)
		if err := s.Temporal.TerminateWorkflow(s.Ctx, run.GetID(), "", "by hand"); err != nil {
			s.Fatal(err)
		}
		s.Eventually("its Job and then its mark are gone", func() error {
			left := slices.ContainsFunc(s.JobsIn(ns), func(j batchv1.Job) bool { return j.Namespace+"/"+j.Name == job })
			if marked := s.Node("worker-05").Annotations[api.HoldersAnnotation] != ""; left && !marked {
				s.Fatalf("the node is back, and Job %s is left", job)
			} else if left || marked {
				return fmt.Errorf("Job there: %t, mark there: %t", left, marked)
			}
			return nil
		})
		endless(s, run.GetID(), ns)
		s.Back("worker-05", before)
	})
	s.Sub("cancelled", func(s *site.Site) {
		run := s.BeginWith("worker-03", `"work":"endless"`)
		s.UntilStatus(run, "the Job runs", func(status api.Status) bool { return site.WorkRuns(status) && status.RunningWork().Job != "" })
		s.MustDrydock("cancel", "worker-03", "--yes")
		s.Until(run, api.RequestorFailed)
		status := s.UntilStatus(run, "the work has ended", func(status api.Status) bool { return !site.WorkRuns(status) })
		if got := status.Work[0].Outcome; !strings.HasPrefix(got, "ended: ") || !strings.HasSuffix(got, "its Job is deleted") {
			s.Errorf("outcome %q", got)
		}
		endless(s, run.GetID(), ns)
		s.MustDrydock("cancel", "worker-03", "--release")
		s.MustEnd(run, api.Cancelled)
	})
}

// undelayWork has the Job of a work complete at once that runs on a node.
func undelayWork(s *site.Site, ns, node string) {
	s.Helper()
	s.Eventually("the work's pod runs", func() error {
		for _, pod := range s.PodsOn(ns, node) {
			if pod.Status.Phase == corev1.PodRunning {
				undelay(s, pod)
				return nil
			}
		}
		return errors.New("none does")
	})
}

// jobOfWork is the Job of the work that runs, without its namespace.
func jobOfWork(s *site.Site, run client.WorkflowRun) string {
	s.Helper()
	status := s.UntilStatus(run, "the Job runs", func(status api.Status) bool { return site.WorkRuns(status) && status.RunningWork().Job != "" })
	_, name, _ := strings.Cut(status.RunningWork().Job, "/")
	return name
}

// endless checks that nothing is left of work that was ended.
func endless(s *site.Site, id, ns string) {
	s.Helper()
	for _, job := range s.JobsIn(ns) {
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
	s := site.Prepare(t, "")
	f := newFirmware(t)
	const canary = "canary-of-a-work"
	s.Options.Config += fmt.Sprintf(`
work:
  flash: {http: {url: "%s/flash/{{.Node}}", bearerToken: {file: %q}, timeout: 30s}, deadline: 15s}
  slow: {http: {url: "%s/slow/{{.Node}}", timeout: 1m}, deadline: 2m}
`, f.URL, s.File("token", canary), f.URL)
	s.StartWorker()
	f.answers(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprintf(w, "out of paper, said %s", canary)
	})
	run := s.BeginWith("worker-01", `"work":"flash"`)
	status := s.Until(run, api.RequestorFailed)
	if !strings.Contains(status.Failure, "no success within 15s: ") || !strings.Contains(status.Failure, "out of paper") || strings.Contains(status.Failure, canary) {
		t.Errorf("%s", status.Failure)
	}
	failed := f.got()
	f.answers(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "flashed, said %s", canary) })
	s.MustDrydock("retry", "worker-01")
	s.MustEnd(run, api.Completed)
	all := f.got()
	if len(failed) < 2 || failed[0] == "" || failed[0] != failed[len(failed)-1] || all[len(all)-1] == failed[0] {
		t.Errorf("keys %v", all)
	}
	s.UntilSays([]string{"history", "worker-01", "--details"}, "flashed, said")

	f.answers(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	slow := s.BeginWith("worker-02", `"work":"slow"`)
	s.Eventually("it is called", func() error {
		if n := len(f.got()); n != len(all)+1 {
			return fmt.Errorf("%d calls", n-len(all))
		}
		return nil
	})
	f.answers(func(http.ResponseWriter, *http.Request) {})
	s.Worker.Kill()
	s.StartWorker()
	s.MustEnd(slow, api.Completed)
	if keys := f.got()[len(all):]; len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
		t.Errorf("keys %v", keys)
	}
	s.MustNotLeak(s.Written(2), map[string]string{"the token of a work": canary})
}
