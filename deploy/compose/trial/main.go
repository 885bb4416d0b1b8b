// Command trial runs docker-compose.yaml with deploy/compose/local.yaml, out of images that were built here, and takes a node
// through a maintenance in it: the worker's container is stopped while it drains, and started again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run()) }

// notRun says why nothing was tried.
type notRun struct{ why string }

func (n notRun) Error() string { return n.why }

func run() int {
	version := flag.String("version", "", "the version that the images are to have")
	flag.Parse()
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	began := time.Now()
	err := try(ctx, *version)
	var missing notRun
	switch {
	case errors.As(err, &missing):
		fmt.Printf("NOT RUN: %s\n", missing.why)
	case err != nil:
		fmt.Fprintln(os.Stderr, "\ntrial:", err)
		return 1
	default:
		fmt.Printf("== compose: passed in %s\n", time.Since(began).Round(time.Second))
	}
	return 0
}

const (
	// tryWithin bounds everything but the cleaning up.
	tryWithin = 8 * time.Minute
	// cleanWithin bounds the cleaning up.
	cleanWithin = 2 * time.Minute
	// node is the one that is taken out of service.
	node = "worker-01"
)

func try(ctx context.Context, version string) (err error) {
	p, err := newProject(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tryWithin)
	defer cancel()
	// What was started is stopped and removed, whatever happened.
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanWithin)
		defer cancel()
		if err != nil {
			p.showLogs(ctx)
		}
		err = errors.Join(err, p.remove(ctx))
	}()
	if err := checkImages(ctx, version); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{p.start, p.createWorkload, p.drain, p.stopAndStart, p.finish} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// start brings everything up, and waits until Temporal has what Drydock needs and the worker is ready.
func (p *project) start(ctx context.Context) error {
	say("starting Temporal, a Kubernetes with six nodes, and a worker")
	if _, err := p.compose(ctx, "up", "-d"); err != nil {
		return err
	}
	if err := until(ctx, "Temporal is set up", func() error {
		return p.inspect(ctx, "setup", "{{.State.Status}} {{.State.ExitCode}}", "exited 0")
	}); err != nil {
		return err
	}
	return until(ctx, "the worker is healthy", func() error {
		return p.inspect(ctx, "worker", "{{.State.Health.Status}}", "healthy")
	})
}

// workload is a Deployment that runs on the node alone, and a budget that lets none of its pods go.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/hostname: ` + node + `}
      containers: [{name: web, image: web.example/web:1}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: web}}}
`

func (p *project) createWorkload(ctx context.Context) error {
	say("running two pods on %s, under a budget that lets none go", node)
	if _, err := p.kubectlWith(ctx, workload, "apply", "-f", "-"); err != nil {
		return err
	}
	return until(ctx, "two pods run", func() error {
		return p.kubectlSays(ctx, "2", "get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
	})
}

// drain starts the maintenance, which the budget stops while it drains.
func (p *project) drain(ctx context.Context) error {
	say("$ drydock start %s", node)
	if _, err := p.drydock(ctx, "start", node, "--reason", "a trial"); err != nil {
		return err
	}
	return until(ctx, "the drain is blocked by the budget", func() error {
		status, err := p.drydock(ctx, "status", node, "-o", "json")
		return wants(status, err, `"phase": "Draining"`, "default/web-")
	})
}

// stopAndStart stops the worker in the middle of its drain. What happens meanwhile is the next one's business.
func (p *project) stopAndStart(ctx context.Context) error {
	say("stopping the worker while it drains")
	began := time.Now()
	if _, err := p.compose(ctx, "stop", "worker"); err != nil {
		return err
	}
	if err := p.inspect(ctx, "worker", "{{.State.ExitCode}}", "0"); err != nil {
		return fmt.Errorf("the worker did not end by itself: %w", err)
	}
	say("it ended by itself, %s after it was told to", time.Since(began).Round(100*time.Millisecond))
	if err := p.cordoned(ctx, true); err != nil {
		return err
	}
	if _, err := p.kubectl(ctx, "delete", "poddisruptionbudget", "web"); err != nil {
		return err
	}
	if err := p.kubectlSays(ctx, "2", "get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}"); err != nil {
		return fmt.Errorf("without a worker nothing is evicted: %w", err)
	}
	say("starting it again, and the budget is gone")
	if _, err := p.compose(ctx, "start", "worker"); err != nil {
		return err
	}
	if err := until(ctx, "the node is Ready", func() error {
		status, err := p.drydock(ctx, "status", node, "-o", "json")
		return wants(status, err, `"phase": "Ready"`)
	}); err != nil {
		return err
	}
	say("%s is Ready: the drain went on", node)
	pods, err := p.kubectl(ctx, "get", "pods", "-l", "app=web", "--field-selector", "spec.nodeName="+node, "-o", "name")
	if err == nil && strings.TrimSpace(pods) != "" {
		err = fmt.Errorf("%s is Ready with pods on it: %s", node, pods)
	}
	return err
}

// finish brings the node back.
func (p *project) finish(ctx context.Context) error {
	say("$ drydock done %s --wait", node)
	if _, err := p.drydock(ctx, "done", node, "--wait", "--timeout", "2m"); err != nil {
		return err
	}
	if err := p.cordoned(ctx, false); err != nil {
		return err
	}
	return until(ctx, "the pods are back", func() error {
		return p.kubectlSays(ctx, "2", "get", "deployment", "web", "-o", "jsonpath={.status.readyReplicas}")
	})
}

func say(format string, args ...any) { fmt.Printf("   "+format+"\n", args...) }

// until waits for a condition, which says what it lacks.
func until(ctx context.Context, what string, holds func() error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until %s: %w", what, err)
		case <-tick.C:
		}
	}
}

// wants says what a text lacks.
func wants(text string, err error, parts ...string) error {
	if err != nil {
		return err
	}
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return fmt.Errorf("no %s in %s", part, strings.TrimSpace(text))
		}
	}
	return nil
}

// output runs a command to its end.
func output(cmd *exec.Cmd) (string, error) {
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, &stdout, &stderr)
	}
	return stdout.String(), nil
}
