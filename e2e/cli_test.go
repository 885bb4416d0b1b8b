package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/starter/show"
)

func TestOneNodeByHandFromTheCommandLine(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	s.exits(s.drydock("list"), 0, "No maintenances are running")
	s.exits(s.drydock("start", "worker-01", "--reason", "kernel 6.12", "--ticket", "OPS-7", "--wait"), 0, "worker-01 is Ready")
	s.exits(s.drydock("start", "worker-01", "--reason", "kernel 6.12", "--ticket", "OPS-7"), 0, "running already")
	s.exits(s.drydock("start", "worker-01", "--reason", "firmware"), 1, "running already", "kernel 6.12", "firmware")

	s.exits(s.drydock("status", "worker-01"), 0, "Ready", "kernel 6.12", "OPS-7", "Waiting for:")
	var asJSON, asYAML show.Maintenance
	if err := json.Unmarshal([]byte(s.mustDrydock("status", "worker-01", "-o", "json")), &asJSON); err != nil || asJSON.Phase != api.Ready {
		t.Errorf("status as JSON: %+v, %v", asJSON, err)
	}
	if err := yaml.Unmarshal([]byte(s.mustDrydock("status", "worker-01", "-o", "yaml")), &asYAML); err != nil || asYAML.RunID != asJSON.RunID {
		t.Errorf("status as YAML: %+v, %v", asYAML, err)
	}
	var list []struct{ Node, Phase, Requestor string }
	if err := json.Unmarshal([]byte(s.mustDrydock("list", "-o", "json")), &list); err != nil || len(list) != 1 ||
		list[0].Node != "worker-01" || list[0].Phase != "Ready" || list[0].Requestor != "ops" {
		t.Errorf("list as JSON: %+v, %v", list, err)
	}

	s.exits(s.drydock("done", "worker-01", "--wait", "--comment", "all well"), 0, "done")
	s.back("worker-01", before)
	s.exits(s.drydock("status", "worker-01"), 0, "Completed", "all well")
	s.exits(s.drydock("done", "worker-01"), 1, "no maintenance of worker-01 is running")
}

func TestMessagesFromTheCommandLine(t *testing.T) {
	s := newSite(t, "")
	before := s.imprint("worker-01")
	s.mustDrydock("start", "worker-01", "--ready-timeout", "10m", "--drain-mode", "external", "--wait=false")
	run := s.runOf("worker-01")
	s.until(run, api.Draining)
	s.exits(s.drydock("done", "worker-01"), 1, "not Ready")
	s.mustDrydock("drained", "worker-01")
	s.until(run, api.Ready)
	s.mustDrydock("started", "worker-01")
	s.exits(s.drydock("started", "worker-01"), 0, "the work has begun already")
	s.exits(s.drydock("retry", "worker-01"), 0, "is Ready already")
	s.exits(s.drydock("cancel", "worker-01", "--wait"), 1, "refuses cancel", "--release")
	s.exits(s.drydock("extend", "worker-01", "--for", "3h"), 0, "may be held until")
	s.exits(s.drydock("join", "worker-01", "--requestor", "net"), 0, "net shares the maintenance of ops")
	s.exits(s.drydock("join", "worker-01", "--requestor", "bios"), 0)
	s.exits(s.drydock("leave", "worker-01", "--requestor", "bios"), 0)
	s.exits(s.drydock("failed", "worker-01", "--reason", "stuck at 40%"), 0, "RequestorFailed")
	s.exits(s.drydock("cancel", "worker-01"), 1, "--release")
	s.exits(s.drydock("retry", "worker-01"), 0)
	s.exits(s.drydock("done", "worker-01"), 0, "net is done too")
	if phase := s.mustStatus(run).Phase; phase != api.Ready {
		t.Errorf("net is not done, and the maintenance is %s", phase)
	}
	// Whoever shares a maintenance finds it by the node.
	s.exits(s.drydock("done", "worker-01", "--requestor", "net", "--wait"), 0)
	s.mustEnd(run, api.Completed)
	s.back("worker-01", before)

	s.mustDrydock("start", "worker-01", "--wait")
	s.exits(s.drydock("cancel", "worker-01", "--release", "--wait"), 0)
	s.back("worker-01", before)
}

func TestWatchInAPipePrintsLines(t *testing.T) {
	s := newSite(t, "")
	s.mustDrydock("freeze", "--by", "ann", "--reason", "first things first")
	s.mustDrydock("start", "worker-01")
	watch := s.spawn("watch", "worker-01")
	watch.says("frozen by ann (first things first)")
	s.mustDrydock("thaw", "--by", "ann")
	watch.says("Ready")
	s.mustDrydock("done", "worker-01")
	end := watch.end()
	s.exits(end, 0, "Completed")
	if strings.Contains(end.stdout, "\x1b") {
		t.Errorf("a pipe gets control sequences: %q", end.stdout)
	}
}

func TestExitCodesAreThoseOfTheHelp(t *testing.T) {
	s := newSite(t, "")
	s.exits(s.drydock("--help"), 0, "Exit codes:")
	s.exits(s.drydock("start", "worker-1", "--skip-node-check", "--wait"), 1, "no node worker-1", "worker-01")
	s.exits(s.drydock("start", "worker-01", "--nonsense"), 2, "unknown flag", "--help")
	s.exits(s.drydock("start"), 2, "missing NODE")
	s.exits(s.drydock("start", "worker-01", "--ready-timeout", "-5m"), 2, "--ready-timeout")
	s.exits(s.drydock("start", "worker-01", "--pod-selector", "a in ("), 2, "--pod-selector")
	s.exits(s.drydock("start", "worker-01", "--eviction-filter", "a("), 2, "--eviction-filter")
	if left := s.running(); len(left) > 1 {
		t.Errorf("something was started: %v", left)
	}

	s.mustDrydock("freeze", "--by", "ann")
	s.exits(s.drydock("start", "worker-01", "--wait", "--timeout", "20s"), 4, "timed out", "goes on")
	watch := s.spawn("watch", "worker-01")
	watch.says("frozen")
	s.exits(s.drydock("cancel", "worker-01", "--wait"), 0)
	s.exits(watch.end(), 3, "Cancelled")
}

func TestErrorsSayWhatToDoNext(t *testing.T) {
	s := newSite(t, "")
	s.exits(s.drydock("list", "--address", "127.0.0.1:1"), 1, "127.0.0.1:1 is not reachable", "--address")
	s.exits(s.drydock("start", "worker-1"), 1, `node "worker-1" does not exist`, `Did you mean "worker-01"`, "Nothing was started")
	s.exits(s.drydock("status", "worker-01"), 1, "no maintenance of worker-01")
	s.exits(s.drydock("list", "--namespace", "nowhere"), 1, `no namespace "nowhere"`)
	if left := s.running(); len(left) > 1 {
		t.Errorf("something was started: %v", left)
	}

	// A cluster that no worker looks after.
	nobody := s.name + "-nobody"
	r := s.drydock("start", "worker-01", "--cluster", nobody)
	s.exits(r, 0, "no worker is polling", nobody+"/drydock", "start drydock-worker")
	defer func() {
		if err := s.temporal.TerminateWorkflow(s.ctx, api.MaintenanceID(nobody, "worker-01", "ops"), "", "the test is over"); err != nil {
			t.Error(err)
		}
	}()
	s.exits(s.drydock("watch", "worker-01", "--cluster", nobody, "--timeout", "5s"), 4, "no worker is polling")
	s.exits(s.drydock("limits", "--cluster", nobody), 1, "no scheduler is running", "drydock-worker")
}

func TestCompletionKnowsWhatIsThere(t *testing.T) {
	const config = "hooks: {move: {signal: {}, deadline: 5m}}\nchannels: {nodes: {kubernetes: {}}}\n"
	s := newSite(t, config)
	ns := s.namespace()
	s.deployment(ns, "web", 1, on("worker-08"))
	s.mustDrydock("start", "worker-07", "--hook", "afterDrain=move", "--notify", "nodes")
	s.untilStatus(s.runOf("worker-07"), "at its hook", func(status api.Status) bool { return len(status.OpenHooks) == 1 })
	s.environment = append(s.environment, "DRYDOCK_CONFIG="+s.file("worker.yaml", config))
	s.eventually("the list of running maintenances has it", func() error {
		if out := s.mustDrydock("list"); !strings.Contains(out, "worker-07") {
			return errors.New(out)
		}
		return nil
	})
	if out := s.mustDrydock("__complete", "done", ""); !strings.HasPrefix(out, "worker-07\n:") {
		t.Errorf("after done: %q", out)
	}
	if out := s.mustDrydock("__complete", "start", "worker-1"); strings.Count(out, "worker-1") != 10 {
		t.Errorf("after start worker-1: %q", out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"start", "worker-01", "--drain-mode", ""}, "external"},
		{[]string{"start", "worker-01", "--notify", ""}, "nodes\nnone\n"},
		{[]string{"start", "worker-01", "--hook", "afterDrain="}, "afterDrain=move\n"},
		{[]string{"skip-hook", "worker-07", ""}, "move\n"},
		{[]string{"skip-pod", "worker-08", ns + "/"}, ns + "/web-"},
		{[]string{"done", "worker-07", "--requestor", ""}, "ops\n"},
		{[]string{"list", "--phase", "Re"}, "Ready\n"},
		{[]string{"list", "-o", ""}, "name\n"},
		{[]string{"schema", "st"}, "status\n"},
	} {
		if out := s.mustDrydock(append([]string{"__complete"}, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("after %v: %q, want %q", c.args, out, c.want)
		}
	}
	plugin := s.plugin()
	if r := s.run(plugin("__complete", "drydock", "done", "")); !strings.HasPrefix(r.stdout, "worker-07\n") || !strings.Contains(r.stdout, ":4\n") {
		t.Errorf("of kubectl: %q, %q", r.stdout, r.stderr)
	}
}

func TestItIsAPluginOfKubectl(t *testing.T) {
	s := newSite(t, "")
	s.mustDrydock("start", "worker-01", "--wait")
	plugin := s.plugin()
	s.exits(s.run(plugin("drydock", "status", "worker-01")), 0, "Ready")
	s.exits(s.run(plugin("drydock", "start", "--nonsense")), 2, "kubectl drydock start --help")
	s.exits(s.run(plugin("drydock", "done", "worker-01", "--wait")), 0)
}

// plugin makes commands of a kubectl that has drydock as its plugin.
func (s *site) plugin() func(args ...string) *exec.Cmd {
	s.Helper()
	drydock, err := devstack.Binary("drydock")
	if err != nil {
		s.Fatal(err)
	}
	path := s.TempDir()
	for _, name := range []string{"kubectl-drydock", "kubectl_complete-drydock"} {
		if err := os.Symlink(drydock, filepath.Join(path, name)); err != nil {
			s.Fatal(err)
		}
	}
	return func(args ...string) *exec.Cmd {
		cmd := s.command("devcluster", append([]string{"kubectl"}, args...)...)
		cmd.Env = append(cmd.Env, "PATH="+path+":"+os.Getenv("PATH"))
		return cmd
	}
}

func TestLimitsFromTheCommandLine(t *testing.T) {
	s := newSite(t, "")
	file := filepath.Join(t.TempDir(), "worker.yaml")
	config := "cluster: x\nscheduler:\n  maxParallel: 4\n  maxUnavailable: 20%\n" +
		"  groups:\n  - {name: gpu, nodeSelector: pool=gpu, maxParallel: 2}\n"
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	s.exits(s.drydock("limits"), 0, "MAX PARALLEL", "Set by configuration", "Slots in use: 0")
	s.exits(s.drydock("limits", "diff", "--config", file), 1, "maxParallel", "maxUnavailable", "groups.gpu.maxParallel")
	s.exits(s.drydock("limits", "set", "--from-file", file, "--comment", "per rack"), 0, "per rack", "gpu")
	s.exits(s.drydock("limits", "diff", "--config", file), 0, "are those of")
	s.exits(s.drydock("limits", "set", "--max-parallel", "0"), 2, "maxParallel", "unlimited")
	s.exits(s.drydock("limits", "set"), 2, "nothing to change")
	var state api.State
	if err := json.Unmarshal([]byte(s.mustDrydock("limits", "-o", "json")), &state); err != nil {
		t.Fatal(err)
	}
	if l := state.Limits; l.MaxParallel.String() != "4" || l.MaxUnavailable.String() != "20%" || len(l.Groups) != 1 || l.Comment != "per rack" {
		t.Errorf("limits = %+v", l)
	}
	s.mustDrydock("start", "worker-01", "--wait")
	s.exits(s.drydock("limits"), 0, "Slots in use: 1", "worker-01")
}
