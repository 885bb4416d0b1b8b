// Command demo shows Drydock's main job on this machine: it starts a control plane with six nodes, Temporal and a
// worker, and rolls a maintenance over all nodes with the command line, as a user would.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

// An empty line separates an error from what the demo has shown.
func main() { world.Main("\ndemo", run) }

func run(ctx context.Context) error {
	keep := flag.Bool("keep", false, "leave everything running")
	stop := flag.Bool("stop", false, "stop what an earlier run left running")
	flag.Parse()
	root, err := devstack.Root()
	if err != nil {
		return err
	}
	d := &demo{dir: filepath.Join(root, ".dev", "demo"), keep: *keep, began: time.Now()}
	if *stop {
		return d.stopEarlier(ctx)
	}
	return d.run(ctx)
}

// brokenNode is the node whose maintenance fails the first time.
const brokenNode = "worker-04"

type demo struct {
	dir   string
	keep  bool
	began time.Time

	cluster  *devstack.Cluster
	temporal *devstack.Temporal
	worker   *devstack.Worker
	// page is the address of the worker's page.
	page string
}

func (d *demo) run(ctx context.Context) (err error) {
	if err := d.stopEarlier(ctx); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	defer func() {
		if !d.keep || err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	for _, step := range []func(context.Context) error{
		d.startServers, d.createWorkloads, d.rollOut, d.repair, d.everyNodeIsBack, d.showTrail,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	d.showHowToLook()
	return nil
}

func (d *demo) startServers(ctx context.Context) (err error) {
	d.say("starting a Kubernetes control plane with 6 nodes (etcd, kube-apiserver, controllers, scheduler; the kubelets are simulated)")
	var args []string
	if d.keep {
		args = append(args, devstack.DetachCluster)
	}
	if d.cluster, err = devstack.StartCluster(ctx, filepath.Join(d.dir, "cluster"), 6, args...); err != nil {
		return err
	}
	d.say("starting Temporal")
	d.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{
		Dir: filepath.Join(d.dir, "temporal"), UI: true, Attributes: true, Detach: d.keep,
	})
	if err != nil {
		return err
	}
	ports, err := devstack.FreePorts(1)
	if err != nil {
		return err
	}
	d.page = fmt.Sprintf("127.0.0.1:%d", ports[0])
	d.say("starting drydock-worker: at most 2 nodes at a time")
	d.worker, err = devstack.StartWorker(ctx, devstack.WorkerOptions{
		Dir: filepath.Join(d.dir, "worker"), Name: "worker", Kubeconfig: d.cluster.Kubeconfig, Temporal: d.temporal,
		Config: fmt.Sprintf("scheduler: {maxParallel: 2, maxUnavailable: 50%%}\npage: {listen: %q, temporalUI: %q}\n", d.page, d.temporal.UI), Detach: d.keep,
	})
	if err != nil {
		return err
	}
	fmt.Printf("\nTo type these commands yourself while it runs:\n$ export %s\n", commandLine(d.environment()))
	return d.remember()
}

// environment is what the command line needs to find this demo.
func (d *demo) environment() []string {
	return append(d.temporal.Environment(), "KUBECONFIG="+d.cluster.Kubeconfig, "DRYDOCK_REQUESTOR=ops")
}

// workerCommand starts the worker again. Its configuration keeps its whole path, by which the demo knows its processes.
func (d *demo) workerCommand() []string {
	words := append(d.worker.Command(), "--admin-listen", "127.0.0.1:0")
	words[0] = fromHere(words[0])
	return words
}

// repaired is the file that says that the broken node was repaired.
func (d *demo) repaired() string { return filepath.Join(d.dir, "repaired") }

// rollOut runs a maintenance script on every node. On one node it fails.
func (d *demo) rollOut(ctx context.Context) error {
	script := filepath.Join(d.dir, scriptName)
	if err := os.WriteFile(script, []byte(scriptFor(d.repaired())), 0o755); err != nil {
		return err
	}
	d.say("rolling the maintenance over all nodes; %s will fail", brokenNode)
	status, err := d.drydock(ctx, "rollout", "--all", "--yes", "--max-parallel", "2", "--continue-on-error",
		"--force", "--reason", "kernel 6.12", "--ticket", "CHG-42", "--", script, "{node}")
	if err != nil {
		return err
	}
	if status != 1 {
		return fmt.Errorf("the rollout exited with %d, and 1 was expected: one node fails", status)
	}
	return nil
}

// repair is what a person does after a failure: look, mend, try again, say that it is done.
func (d *demo) repair(ctx context.Context) error {
	d.say("%s failed and stays out of service until somebody decides", brokenNode)
	for _, args := range [][]string{
		{"status", brokenNode},
		{"retry", brokenNode, "--comment", "replaced the cable"},
	} {
		if err := d.mustDrydock(ctx, args...); err != nil {
			return err
		}
	}
	d.typed("touch", d.repaired())
	if err := os.WriteFile(d.repaired(), nil, 0o644); err != nil {
		return err
	}
	script := exec.CommandContext(ctx, filepath.Join(d.dir, scriptName), brokenNode)
	script.Stdout, script.Stderr = os.Stdout, os.Stderr
	d.typed(script.Args...)
	if err := script.Run(); err != nil {
		return fmt.Errorf("the repaired script failed: %w", err)
	}
	return d.mustDrydock(ctx, "done", brokenNode, "--wait", "--comment", "patched by hand")
}

func (d *demo) mustDrydock(ctx context.Context, args ...string) error {
	status, err := d.drydock(ctx, args...)
	if err == nil && status != 0 {
		err = fmt.Errorf("drydock %s exited with %d", strings.Join(args, " "), status)
	}
	return err
}

// drydock runs the command line as a user would, and shows what is typed.
func (d *demo) drydock(ctx context.Context, args ...string) (int, error) {
	path, err := devstack.Binary("drydock")
	if err != nil {
		return 0, err
	}
	d.typed(append([]string{path}, args...)...)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), d.environment()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// A Ctrl-C reaches the command too; it winds its rollout up by itself.
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		return exit.ExitCode(), nil
	}
	if ctx.Err() != nil {
		return 0, errors.New("interrupted")
	}
	return 0, err
}

func (d *demo) say(format string, args ...any) {
	fmt.Printf("\n[%4.1fs] %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

func (d *demo) showHowToLook() {
	cli := commandLine(d.environment())
	if d.keep {
		fmt.Printf(`
Everything is still running:
  the page         http://%[8]s
  Temporal UI      %[1]s
  worker           %[2]s/metrics

Look again:
export %[3]s
.bin/drydock list --all
.bin/drydock status %[4]s
.bin/devcluster kubectl get nodes -L drydock.dev/phase
.bin/devcluster kubectl describe node %[4]s

Restart the worker alone, with that environment:
kill $(head -n 1 %[6]s) && tail --pid=$(head -n 1 %[6]s) -f /dev/null
%[7]s >> %[5]s 2>&1 &
sed -i "1s/.*/$!/" %[6]s

Stop it all:
make demo-stop
`, d.temporal.UI, d.worker.URL, cli, brokenNode, quoted(fromHere(d.worker.Log)), quoted(fromHere(d.pids())), commandLine(d.workerCommand()), d.page)
		return
	}
	fmt.Printf(`
All six nodes are back, after %s. The Temporal UI was at %s.
To look around yourself, leave everything running:
  make demo KEEP=1
`, time.Since(d.began).Round(time.Second), d.temporal.UI)
}
