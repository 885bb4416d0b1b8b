// Command feed gives a Prometheus something to see: the demo's stack with maintenances that wait, drain, are blocked, fail and
// end. It tells on standard output, a JSON object a line, where the worker is and what a Prometheus that scrapes it will see
// after each step, and goes on when it is given a line. It ends with its standard input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"drydock.dev/drydock/deploy/devstack"
)

func main() { os.Exit(status()) }

func status() int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "feed:", err)
		return 1
	}
	return 0
}

// line is what is told of a step.
type line struct {
	// Worker is where the worker serves its metrics; told once, before the first step.
	Worker string `json:"worker,omitempty"`
	// Step was taken, and a Prometheus will come to have an answer to each of Shows.
	Step  string   `json:"step,omitempty"`
	Shows []string `json:"shows,omitempty"`
	// Last: there is no step after this one, and everything runs until it is given another line.
	Last bool `json:"last,omitempty"`
}

func run(ctx context.Context, in io.Reader, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "drydock-feed-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	receiver, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() {
		if err := server.Serve(receiver); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "feed: the receiver of notifications:", err)
		}
	}()
	defer server.Close()
	s := &stack{dir: dir}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.start(ctx, "http://"+receiver.Addr().String()); err != nil {
		return err
	}
	tell, answers := json.NewEncoder(out), bufio.NewScanner(in)
	if err := tell.Encode(line{Worker: s.worker.URL}); err != nil {
		return err
	}
	steps := s.steps()
	for i, step := range steps {
		if err := step.take(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := tell.Encode(line{Step: step.name, Shows: step.shows, Last: i == len(steps)-1}); err != nil {
			return err
		}
		if !answers.Scan() {
			return answers.Err()
		}
	}
	return nil
}

// stack is what the demo runs, too.
type stack struct {
	dir      string
	cluster  *devstack.Cluster
	temporal *devstack.Temporal
	worker   *devstack.Worker
}

// configuration has something of everything that metrics tell of. No receiver listens on port 1.
const configuration = `
scheduler: {maxParallel: 1, maxUnavailable: 50%%, groups: [{name: gpu, nodeSelector: "pool=gpu", maxParallel: 1}]}
windows: {always: {from: "00:00", to: "24:00"}, nights: {from: "22:00", to: "04:00"}}
channels: {oncall: {webhook: {url: "%s"}}, broken: {webhook: {url: "http://127.0.0.1:1"}}}
metrics: {stateEvery: 1s}
`

func (s *stack) start(ctx context.Context, receiver string) (err error) {
	if s.cluster, err = devstack.StartCluster(ctx, filepath.Join(s.dir, "cluster"), 6); err != nil {
		return err
	}
	s.temporal, err = devstack.StartTemporal(ctx, devstack.TemporalOptions{Dir: s.dir, Attributes: true, InMemory: true})
	if err != nil {
		return err
	}
	if err := s.kubectl(ctx, workloads, "apply", "-f", "-"); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "", "rollout", "status", "deployment/web", "--timeout=60s"); err != nil {
		return err
	}
	if err := s.kubectl(ctx, "", "label", "node", "worker-01", "pool=gpu"); err != nil {
		return err
	}
	s.worker, err = devstack.StartWorker(ctx, devstack.WorkerOptions{
		Dir: filepath.Join(s.dir, "worker"), Name: "worker", Kubeconfig: s.cluster.Kubeconfig, Temporal: s.temporal,
		Config: fmt.Sprintf(configuration, receiver),
	})
	return err
}

func (s *stack) stop() (err error) {
	var running []*devstack.Process
	if s.worker != nil {
		running = append(running, s.worker.Process)
	}
	if s.temporal != nil {
		running = append(running, s.temporal.Process)
	}
	if s.cluster != nil {
		running = append(running, s.cluster.Process)
	}
	for _, p := range running {
		err = errors.Join(err, p.Stop(time.Minute))
	}
	return err
}

// workloads are a Deployment with a pod on every node, and a budget that lets none of them go.
const workloads = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: main, image: "example.com/app:1"}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
`

// step is something that somebody does, and what it shows.
type step struct {
	name  string
	take  func(context.Context) error
	shows []string
}

func (s *stack) steps() []step {
	drydock := func(commands ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, command := range commands {
				if err := s.run(ctx, "drydock", "", strings.Fields(command)...); err != nil {
					return err
				}
			}
			return nil
		}
	}
	phase := func(name string) string {
		return fmt.Sprintf("max by (phase) (drydock_maintenances{phase=%q}) > 0", name)
	}
	return []step{
		{"a maintenance waits for approval", drydock("start worker-02 --approval"), []string{phase("AwaitingApproval")}},
		{
			"a drain is blocked", drydock("start worker-01 --sla 1s --escalation 2s=notify --notify oncall --notify broken"),
			[]string{
				`drydock_maintenances{phase="Draining",group="gpu"} == 1`, `drydock_group_slots_used{group="gpu"} == 1`,
				`drydock_drain_blocked_pods{reason="DisruptionBudget"} == 1`, `drydock_drain_blocked_oldest_seconds > 0`,
				`drydock_sla_expired_total == 1`, `drydock_escalations_total{rung="notify"} == 1`,
				`drydock_evictions_total{answer="DisruptionBudget"} > 0`,
				`drydock_delivery_attempts_total{channel="oncall",kind="webhook",outcome="delivered"} > 0`,
				`drydock_delivery_attempts_total{channel="broken",kind="webhook",outcome="failed"} > 0`,
			},
		},
		{"another waits for its slot", drydock("start worker-03"), []string{`drydock_pending_requests{reason="MaxParallel"} == 1`, phase("Pending")}},
		{"somebody freezes", drydock("freeze --comment weekend"), []string{`drydock_freezes{scope="grants"} == 1`, `drydock_pending_requests{reason="Frozen"} == 1`}},
		{"and thaws", drydock("thaw", "cancel worker-03"), []string{`sum(drydock_freezes) == 0`, `drydock_maintenances_ended_total{outcome="Cancelled"} == 1`}},
		{"the budget lets the pod go", func(ctx context.Context) error {
			return s.kubectl(ctx, "", "patch", "poddisruptionbudget", "web", "--type=merge", "-p", `{"spec":{"maxUnavailable":6}}`)
		}, []string{phase("Ready"), `drydock_phase_duration_seconds_count{phase="Draining"} == 1`}},
		{"its requestor fails", drydock("failed worker-01 --reason broken"), []string{phase("RequestorFailed")}},
		{
			"one is given back, and one is done", drydock("cancel worker-01 --release", "approve worker-02", "start worker-02 --approval --wait", "done worker-02 --wait"),
			[]string{`drydock_maintenances_ended_total{outcome="Completed"} == 1`, `drydock_maintenances_ended_total{outcome="Cancelled"} == 2`, `drydock_slots_used == 0`},
		},
		{
			"a plan goes over two nodes", drydock("rollout worker-05 worker-06 --yes -- true"),
			[]string{`drydock_plans_ended_total{outcome="Completed"} == 1`, `drydock_maintenances_ended_total{outcome="Completed"} == 3`, `sum(drydock_maintenances) == 0`},
		},
	}
}

func (s *stack) kubectl(ctx context.Context, input string, args ...string) error {
	return s.run(ctx, "devcluster", input, append([]string{"kubectl"}, args...)...)
}

// run runs a binary of .bin; what it says is in the error.
func (s *stack) run(ctx context.Context, binary, input string, args ...string) error {
	path, err := devstack.Binary(binary)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(append(os.Environ(), s.temporal.Environment()...), "KUBECONFIG="+s.cluster.Kubeconfig, "DRYDOCK_REQUESTOR=ops")
	cmd.Stdin = strings.NewReader(input)
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", binary, strings.Join(args, " "), err, output)
	}
	return nil
}
