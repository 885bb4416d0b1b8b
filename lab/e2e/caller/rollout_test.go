package caller

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/lab/world"
)

// A firmware rollout over 20 nodes as a user's own workflow. Its worker is killed ten times, Drydock's twice, and it is reset twice: no node is
// flashed in service, none is left behind, and each has one maintenance.
func TestSlowAFirmwareRolloutSurvivesItsWorker(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 4}")
	ns := s.Namespace()
	s.Deployment(ns, "web", 20)
	before := s.Imprints()
	nodes := s.WatchNodes()

	program, log := filepath.Join(t.TempDir(), "firmware"), filepath.Join(t.TempDir(), "log")
	build := exec.CommandContext(s.Ctx, "go", "build", "-o", program, "drydock.dev/drydock/examples/firmware")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	// The command looks first whether the node is flashed, and whether it is held Ready. A command whose worker was killed goes on beside the
	// next one, which waits for it.
	flash := `exec 9>"LOG.$1"; flock 9; grep -qx "$1 flashed" LOG 2>/dev/null && exit 0
		until env -u DRYDOCK_REQUESTOR PROGRAM status "$1" -o yaml 2>/dev/null | grep '^phase: ' >"LOG.$1.phase"; do sleep 0.2; done
		echo "$1 is $(cat "LOG.$1.phase")" >>LOG; sleep 0.5; echo "$1 flashed" >>LOG`
	drydock := s.Command("drydock")
	flash = strings.NewReplacer("LOG", log, "PROGRAM", drydock.Path).Replace(flash)
	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if text, err := os.ReadFile(output.Name()); err == nil && t.Failed() {
			t.Logf("the workflow's worker says\n%s", text)
		}
	})
	start := func() *exec.Cmd {
		worker := exec.CommandContext(s.Ctx, program, "sh", "-c", flash, "flash", "{node}")
		worker.Env, worker.Stdout, worker.Stderr = drydock.Env, output, output
		if err := worker.Start(); err != nil {
			t.Fatal(err)
		}
		return worker
	}
	kill := func(worker *exec.Cmd) {
		if err := worker.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = worker.Wait() // it says that it was killed
	}
	flashed := func() int {
		text, err := os.ReadFile(log)
		if err != nil {
			return 0
		}
		return strings.Count(string(text), " flashed\n")
	}

	worker := start()
	names := make([]string, 0, len(before))
	for _, n := range s.Nodes() {
		names = append(names, n.Name)
	}
	input := map[string]any{"nodes": names, "parallel": 4, "reason": "BIOS 2.4", "cluster": s.Cluster}
	run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{ID: s.ID + "/firmware", TaskQueue: "firmware"}, "Rollout", input)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 10 {
		s.Eventually(fmt.Sprintf("%d nodes are flashed", 2*round), func() error {
			described, err := s.Temporal.DescribeWorkflowExecution(s.Ctx, run.GetID(), "")
			if err != nil || described.GetWorkflowExecutionInfo().GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
				t.Fatalf("the rollout ended in round %d: %v", round, errors.Join(err, s.Temporal.GetWorkflow(s.Ctx, run.GetID(), "").Get(s.Ctx, nil)))
			}
			if n := flashed(); n < 2*round {
				return fmt.Errorf("%d so far", n)
			}
			return nil
		})
		kill(worker)
		switch round {
		case 2, 6:
			s.Worker.Kill()
			s.StartWorker()
		case 4:
			run = s.Reset(run)
		case 8:
			tasks, err := world.Tasks(s.Ctx, s.Temporal, run.GetID(), "")
			if err != nil {
				t.Fatal(err)
			}
			run = s.ResetTo(run, tasks[len(tasks)*3/4], true)
		}
		worker = start()
	}
	if err := s.Temporal.GetWorkflow(s.Ctx, run.GetID(), "").Get(s.Ctx, nil); err != nil {
		t.Fatal(err)
	}
	kill(worker)

	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if n := strings.Count(string(text), name+" flashed\n"); n != 1 {
			t.Errorf("%s was flashed %d times", name, n)
		}
		s.Back(name, before[name])
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, " is ") && !strings.HasSuffix(line, "is phase: Ready\n") {
			t.Errorf("a node was flashed that was not Ready: %s", line)
		}
	}
	if most := s.NobodyHolds(nodes); most > 4 {
		t.Errorf("%d nodes were held at one instant, want 4 at most", most)
	}
	s.Eventually("each node had one maintenance", func() error {
		counted, err := s.Temporal.CountWorkflow(s.Ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Query: fmt.Sprintf("WorkflowType = 'NodeMaintenance' AND TaskQueue = '%s/drydock'", s.Cluster),
		})
		if err == nil && counted.GetCount() != int64(len(names)) {
			err = fmt.Errorf("there were %d", counted.GetCount())
		}
		return err
	})
}
