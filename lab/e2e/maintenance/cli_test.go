package maintenance

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
	"drydock.dev/drydock/lab/e2e/site"
)

func TestOneNodeByHandFromTheCommandLine(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	s.Exits(s.Drydock("list"), 0, "No maintenances are running")
	s.Exits(s.Drydock("start", "worker-01", "--reason", "kernel 6.12", "--ticket", "OPS-7", "--wait"), 0, "worker-01 is Ready")
	s.Exits(s.Drydock("start", "worker-01", "--reason", "kernel 6.12", "--ticket", "OPS-7"), 0, "running already")
	s.Exits(s.Drydock("start", "worker-01", "--reason", "firmware"), 1, "running already", "kernel 6.12", "firmware")

	s.Exits(s.Drydock("status", "worker-01"), 0, "Ready", "kernel 6.12", "OPS-7", "Waiting for:")
	var asJSON, asYAML api.Maintenance
	if err := json.Unmarshal([]byte(s.MustDrydock("status", "worker-01", "-o", "json")), &asJSON); err != nil || asJSON.Phase != api.Ready {
		t.Errorf("status as JSON: %+v, %v", asJSON, err)
	}
	if err := yaml.Unmarshal([]byte(s.MustDrydock("status", "worker-01", "-o", "yaml")), &asYAML); err != nil || asYAML.RunID != asJSON.RunID {
		t.Errorf("status as YAML: %+v, %v", asYAML, err)
	}
	var list []struct{ Node, Phase, Requestor string }
	if err := json.Unmarshal([]byte(s.MustDrydock("list", "-o", "json")), &list); err != nil || len(list) != 1 ||
		list[0].Node != "worker-01" || list[0].Phase != "Ready" || list[0].Requestor != "ops" {
		t.Errorf("list as JSON: %+v, %v", list, err)
	}

	s.Exits(s.Drydock("done", "worker-01", "--wait", "--comment", "all well"), 0, "done")
	s.Back("worker-01", before)
	s.Exits(s.Drydock("status", "worker-01"), 0, "Completed", "all well")
	s.Exits(s.Drydock("done", "worker-01"), 1, "no maintenance of worker-01 is running")
}

func TestMessagesFromTheCommandLine(t *testing.T) {
	s := site.New(t, "")
	before := s.Imprint("worker-01")
	s.MustDrydock("start", "worker-01", "--ready-timeout", "10m", "--drain-mode", "external", "--wait=false")
	run := s.RunOf("worker-01")
	s.Until(run, api.Draining)
	s.Exits(s.Drydock("done", "worker-01"), 1, "not Ready")
	s.MustDrydock("drain", "done", "worker-01")
	s.Until(run, api.Ready)
	s.MustDrydock("work", "begin", "worker-01")
	s.Exits(s.Drydock("work", "begin", "worker-01"), 0, "the work has begun already")
	s.Exits(s.Drydock("retry", "worker-01"), 0, "is Ready already")
	s.Exits(s.Drydock("cancel", "worker-01"), 2, "it is Ready, and becomes RequestorFailed", "--release", "--yes")
	s.Exits(s.Drydock("cancel", "worker-01", "--wait"), 1, "refuses cancel", "--release")
	s.Exits(s.Drydock("extend", "worker-01", "--for", "3h"), 0, "may be held until")
	s.Exits(s.Drydock("join", "worker-01", "--requestor", "net"), 0, "net shares the maintenance of ops")
	s.Exits(s.Drydock("join", "worker-01", "--requestor", "bios"), 0)
	s.Exits(s.Drydock("leave", "worker-01", "--requestor", "bios"), 0)
	s.Exits(s.Drydock("fail", "worker-01", "--comment", "stuck at 40%"), 0, "RequestorFailed")
	s.Exits(s.Drydock("cancel", "worker-01"), 1, "--release")
	s.Exits(s.Drydock("retry", "worker-01"), 0)
	s.Exits(s.Drydock("done", "worker-01"), 0, "net is done too")
	if phase := s.MustStatus(run).Phase; phase != api.Ready {
		t.Errorf("net is not done, and the maintenance is %s", phase)
	}
	// Whoever shares a maintenance finds it by the node.
	s.Exits(s.Drydock("done", "worker-01", "--requestor", "net", "--wait"), 0)
	s.MustEnd(run, api.Completed)
	s.Back("worker-01", before)

	s.MustDrydock("start", "worker-01", "--wait")
	s.Exits(s.Drydock("cancel", "worker-01", "--release", "--wait"), 0)
	s.Back("worker-01", before)
}

func TestWatchInAPipePrintsLines(t *testing.T) {
	s := site.New(t, "")
	s.MustDrydock("freeze", "--by", "ann", "--comment", "first things first")
	s.MustDrydock("start", "worker-01")
	watch := s.Spawn("watch", "worker-01")
	watch.Says("frozen by ann (first things first)")
	s.MustDrydock("thaw", "--by", "ann")
	watch.Says("Ready")
	s.MustDrydock("done", "worker-01")
	end := watch.End()
	s.Exits(end, 0, "Completed")
	if strings.Contains(end.Stdout, "\x1b") {
		t.Errorf("a pipe gets control sequences: %q", end.Stdout)
	}
}

func TestExitCodesAreThoseOfTheHelp(t *testing.T) {
	s := site.New(t, "")
	s.Exits(s.Drydock("help", "all"), 0, "Exit codes:")
	s.Exits(s.Drydock("start", "worker-1", "--skip-node-check", "--wait"), 1, "no node worker-1", "worker-01")
	s.Exits(s.Drydock("start", "worker-01", "--nonsense"), 2, "unknown flag", "--help")
	s.Exits(s.Drydock("start"), 2, "missing NODE")
	s.Exits(s.Drydock("start", "worker-01", "--ready-timeout", "-5m"), 2, "--ready-timeout")
	s.Exits(s.Drydock("start", "worker-01", "--pod-selector", "a in ("), 2, "--pod-selector")
	s.Exits(s.Drydock("start", "worker-01", "--eviction-filter", "a("), 2, "--eviction-filter")
	if left := s.Running(); len(left) > 1 {
		t.Errorf("something was started: %v", left)
	}

	s.MustDrydock("freeze", "--by", "ann")
	s.Exits(s.Drydock("start", "worker-01", "--wait", "--timeout", "20s"), 4, "timed out", "goes on")
	watch := s.Spawn("watch", "worker-01")
	watch.Says("frozen")
	s.Exits(s.Drydock("cancel", "worker-01", "--wait"), 0)
	s.Exits(watch.End(), 3, "Cancelled")
}

func TestErrorsSayWhatToDoNext(t *testing.T) {
	s := site.New(t, "")
	s.Exits(s.Drydock("list", "--address", "127.0.0.1:1"), 1, "127.0.0.1:1 is not reachable", "--address")
	s.Exits(s.Drydock("start", "worker-1"), 1, `node "worker-1" does not exist`, `Did you mean "worker-01"`, "Nothing was started")
	s.Exits(s.Drydock("status", "worker-01"), 1, "no maintenance of worker-01")
	s.Exits(s.Drydock("list", "--namespace", "nowhere"), 1, `no namespace "nowhere"`)
	if left := s.Running(); len(left) > 1 {
		t.Errorf("something was started: %v", left)
	}

	// A cluster that no worker looks after.
	nobody := s.ID + "-nobody"
	r := s.Drydock("start", "worker-01", "--cluster", nobody)
	s.Exits(r, 0, "no worker is polling", nobody+"/drydock", "start drydock-worker")
	defer func() {
		if err := s.Temporal.TerminateWorkflow(s.Ctx, api.MaintenanceID(nobody, "worker-01", "ops"), "", "the test is over"); err != nil {
			t.Error(err)
		}
	}()
	s.Exits(s.Drydock("watch", "worker-01", "--cluster", nobody, "--timeout", "5s"), 4, "no worker is polling")
	s.Exits(s.Drydock("limits", "--cluster", nobody), 1, "no scheduler is running", "drydock-worker")
}

func TestCompletionKnowsWhatIsThere(t *testing.T) {
	const config = "hooks: {move: {signal: {}, deadline: 5m}}\nchannels: {nodes: {kubernetes: {}}}\n"
	s := site.New(t, config)
	ns := s.Namespace()
	s.Deployment(ns, "web", 1, site.On("worker-08"))
	s.MustDrydock("start", "worker-07", "--hook", "afterDrain=move", "--notify", "nodes")
	s.UntilStatus(s.RunOf("worker-07"), "at its hook", func(status api.Status) bool { return len(status.OpenHooks) == 1 })
	s.Environment = append(s.Environment, "DRYDOCK_CONFIG="+s.File("worker.yaml", config))
	s.Eventually("the list of running maintenances has it", func() error {
		if out := s.MustDrydock("list"); !strings.Contains(out, "worker-07") {
			return errors.New(out)
		}
		return nil
	})
	if out := s.MustDrydock("__complete", "done", ""); !strings.HasPrefix(out, "worker-07\n:") {
		t.Errorf("after done: %q", out)
	}
	if out := s.MustDrydock("__complete", "start", "worker-1"); strings.Count(out, "worker-1") != 10 {
		t.Errorf("after start worker-1: %q", out)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"start", "worker-01", "--drain-mode", ""}, "external"},
		{[]string{"start", "worker-01", "--notify", ""}, "nodes\nnone\n"},
		{[]string{"start", "worker-01", "--hook", "afterDrain="}, "afterDrain=move\n"},
		{[]string{"hook", "skip", "worker-07", ""}, "move\n"},
		{[]string{"drain", "skip", "worker-08", ns + "/"}, ns + "/web-"},
		{[]string{"done", "worker-07", "--requestor", ""}, "ops\n"},
		{[]string{"list", "--phase", "Re"}, "Ready\n"},
		{[]string{"list", "-o", ""}, "name\n"},
		{[]string{"schema", "st"}, "status\n"},
	} {
		if out := s.MustDrydock(append([]string{"__complete"}, c.args...)...); !strings.Contains(out, c.want) {
			t.Errorf("after %v: %q, want %q", c.args, out, c.want)
		}
	}
	plugin := plugin(s)
	if r := s.Execute(plugin("__complete", "drydock", "done", "")); !strings.HasPrefix(r.Stdout, "worker-07\n") || !strings.Contains(r.Stdout, ":4\n") {
		t.Errorf("of kubectl: %q, %q", r.Stdout, r.Stderr)
	}
}

func TestItIsAPluginOfKubectl(t *testing.T) {
	s := site.New(t, "")
	s.MustDrydock("start", "worker-01", "--wait")
	plugin := plugin(s)
	s.Exits(s.Execute(plugin("drydock", "status", "worker-01")), 0, "Ready")
	s.Exits(s.Execute(plugin("drydock", "start", "--nonsense")), 2, "kubectl drydock start --help")
	s.Exits(s.Execute(plugin("drydock", "done", "worker-01", "--wait")), 0)
}

// plugin makes commands of a kubectl that has drydock as its plugin.
func plugin(s *site.Site) func(args ...string) *exec.Cmd {
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
		cmd := s.Command("devcluster", append([]string{"kubectl"}, args...)...)
		cmd.Env = append(cmd.Env, "PATH="+path+":"+os.Getenv("PATH"))
		return cmd
	}
}

func TestLimitsFromTheCommandLine(t *testing.T) {
	s := site.New(t, "")
	file := filepath.Join(t.TempDir(), "worker.yaml")
	config := "cluster: x\nscheduler:\n  maxParallel: 4\n  maxUnavailable: 20%\n" +
		"  groups:\n  - {name: gpu, nodeSelector: pool=gpu, maxParallel: 2}\n"
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	s.Exits(s.Drydock("limits"), 0, "MAX PARALLEL", "Set by:", "configuration", "0 in use")
	s.Exits(s.Drydock("limits", "diff", "--config", file), 1, "maxParallel", "maxUnavailable", "groups.gpu.maxParallel")
	s.Exits(s.Drydock("limits", "set", "--from-file", file, "--comment", "per rack"), 0, "per rack", "gpu")
	s.Exits(s.Drydock("limits", "diff", "--config", file), 0, "are those of")
	s.Exits(s.Drydock("limits", "set", "--max-parallel", "0"), 2, "maxParallel", "unlimited")
	s.Exits(s.Drydock("limits", "set"), 2, "nothing to change")
	var state api.State
	if err := json.Unmarshal([]byte(s.MustDrydock("limits", "-o", "json")), &state); err != nil {
		t.Fatal(err)
	}
	if l := state.Limits; l.MaxParallel.String() != "4" || l.MaxUnavailable.String() != "20%" || len(l.Groups) != 1 || l.Comment != "per rack" {
		t.Errorf("limits = %+v", l)
	}
	s.MustDrydock("start", "worker-01", "--wait")
	s.Exits(s.Drydock("limits"), 0, "1 in use", "worker-01")
}
