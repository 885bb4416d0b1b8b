package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClusters goes through the life of two clusters side by side. The steps
// build on each other.
func TestClusters(t *testing.T) {
	dirA, dirB := t.TempDir(), t.TempDir()
	auditLog := filepath.Join(dirB, "audit.log")
	a := startUp(t, dirA, "--nodes", "3", "--node-labels", "pool=gpu")
	b := startUpBehind(t, dirB, "--nodes", "3", "--control-plane-nodes", "1", "--pods-per-node", "5", "--audit-log", auditLog)

	serverA, serverB := a.waitReady(t), b.waitReady(t)
	if serverA == serverB {
		t.Fatalf("both clusters serve at %s", serverA)
	}
	expectNodes(t, a, "worker-01", "worker-02", "worker-03")
	expectNodes(t, b, "control-plane-01", "worker-01", "worker-02", "worker-03")
	expectFiller(t, b, 15)
	t.Run("audit log", func(t *testing.T) { expectAudit(t, auditLog) })
	t.Run("behaviour", func(t *testing.T) { testBehaviour(t, a) })

	t.Run("a second up is refused", func(t *testing.T) {
		second := devcluster("up", "--dir", dirA)
		output, err := second.CombinedOutput()
		if err == nil || !strings.Contains(string(output), "already runs") {
			t.Errorf("a second up in the directory: %v, %s", err, output)
		}
	})

	t.Run("down stops one cluster", func(t *testing.T) {
		componentsA, componentsB := a.mustComponents(t), b.mustComponents(t)
		output, err := devcluster("down", "--dir", dirA).CombinedOutput()
		if err != nil || !strings.HasPrefix(string(output), "stopped process") {
			t.Fatalf("down: %v, %s", err, output)
		}
		if code := a.waitExit(t); code != 0 {
			t.Errorf("up ended with %d after down", code)
		}
		waitGone(t, componentsA)
		if _, err := os.Stat(layout{dirA}.kubeconfig()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the kubeconfig of a stopped cluster: %v, want it gone", err)
		}
		for name, id := range componentsB {
			if !id.alive() {
				t.Errorf("%s of the other cluster is gone too", name)
			}
		}
	})

	t.Run("a cluster ends with the parent of up", func(t *testing.T) {
		components := b.mustComponents(t)
		mustSignal(t, b.cmd.Process.Pid, syscall.SIGKILL)
		waitGone(t, components)
	})

	t.Run("up continues with the state", func(t *testing.T) {
		again := startUp(t, dirA, "--nodes", "4")
		again.waitReady(t)
		expectNodes(t, again, "worker-01", "worker-02", "worker-03", "worker-04")
		nodes, err := again.client(t).CoreV1().Nodes().List(context.Background(), metav1.ListOptions{LabelSelector: "pool=gpu"})
		if err != nil || len(nodes.Items) != 3 {
			t.Errorf("%d nodes are those of the former run (%v), want 3", len(nodes.Items), err)
		}
		components := again.mustComponents(t)
		mustSignal(t, again.cmd.Process.Pid, syscall.SIGTERM)
		if code := again.waitExit(t); code != 0 {
			t.Errorf("up ended with %d after SIGTERM", code)
		}
		for name, id := range components {
			if id.alive() {
				t.Errorf("%s outlives up", name)
			}
		}
	})
}

func TestComponentsDieWithUp(t *testing.T) {
	run := startUp(t, t.TempDir(), "--nodes", "1")
	run.waitReady(t)
	components := run.mustComponents(t)
	mustSignal(t, run.cmd.Process.Pid, syscall.SIGKILL)
	waitGone(t, components)
	// What is left of it is no obstacle to anything.
	if output, err := devcluster("down", "--dir", run.dir).CombinedOutput(); err != nil || !strings.Contains(string(output), "nothing runs") {
		t.Errorf("down after a kill: %v, %s", err, output)
	}
}

func TestComponentFailsToStart(t *testing.T) {
	run := startUp(t, t.TempDir(), "--nodes", "1", "--feature-gates", "NoSuchGate=true")
	if code := run.waitExit(t); code != 1 {
		t.Errorf("up ended with %d, want 1", code)
	}
	output := run.stderr.String()
	for _, part := range []string{"kube-apiserver ended unexpectedly (exit status 1)", "logs/kube-apiserver.log", "unrecognized feature gate: NoSuchGate"} {
		if !strings.Contains(output, part) {
			t.Errorf("the report lacks %q:\n%s", part, output)
		}
	}
	if run.stdout.String() != "" {
		t.Errorf("unexpected stdout %q", run.stdout.String())
	}
	if _, err := os.Stat(layout{run.dir}.kubeconfig()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a kubeconfig was written: %v", err)
	}
}

func TestComponentDies(t *testing.T) {
	run := startUp(t, t.TempDir(), "--nodes", "1")
	run.waitReady(t)
	components := run.mustComponents(t)
	mustSignal(t, components[schedulerName].pid, syscall.SIGKILL)
	if code := run.waitExit(t); code != 1 {
		t.Errorf("up ended with %d, want 1", code)
	}
	if want := "kube-scheduler ended unexpectedly (signal: killed)"; !strings.Contains(run.stderr.String(), want) {
		t.Errorf("the report lacks %q:\n%s", want, run.stderr.String())
	}
	for name, id := range components {
		if id.alive() {
			t.Errorf("%s outlives up", name)
		}
	}
}

func TestKubectlAndVersion(t *testing.T) {
	output, err := devcluster("version").CombinedOutput()
	if err != nil {
		t.Fatalf("version: %v, %s", err, output)
	}
	for _, part := range []string{"kubernetes v1.36", "etcd       v3.6"} {
		if !strings.Contains(string(output), part) {
			t.Errorf("version lacks %q:\n%s", part, output)
		}
	}
	output, err = devcluster("kubectl", "create", "namespace", "x", "--dry-run=client", "-o", "name").CombinedOutput()
	if err != nil || strings.TrimSpace(string(output)) != "namespace/x" {
		t.Errorf("kubectl: %v, %s", err, output)
	}
}

func expectNodes(t *testing.T, run *upRun, names ...string) {
	t.Helper()
	list, err := run.client(t).CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, node := range list.Items {
		got = append(got, node.Name)
		if !takesPods(&node) {
			t.Errorf("node %s takes no pods: %+v", node.Name, node.Status.Conditions)
		}
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("nodes %v, want %v", got, names)
	}
}

func expectFiller(t *testing.T, run *upRun, want int) {
	t.Helper()
	pods, err := run.client(t).CoreV1().Pods(metav1.NamespaceDefault).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	perNode := map[string]int{}
	for _, pod := range pods.Items {
		if pod.Status.Phase == "Running" {
			perNode[pod.Spec.NodeName]++
		}
	}
	if len(pods.Items) != want || len(perNode) != 3 || perNode["control-plane-01"] != 0 {
		t.Errorf("%d pods, running on %v; want %d on the three workers", len(pods.Items), perNode, want)
	}
}

// expectAudit looks for requests that are known to have been made.
func expectAudit(t *testing.T, path string) {
	type record struct {
		Stage, Verb, RequestURI, UserAgent, Level string
		User                                      struct{ Username string }
		ResponseStatus                            struct{ Code int }
	}
	created, played := false, false
	lines := bufio.NewScanner(bytes.NewReader(mustRead(t, path)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%v: %s", err, lines.Text())
		}
		if r.Stage == "RequestReceived" || r.Level != "Metadata" {
			t.Fatalf("unexpected record %s", lines.Text())
		}
		if r.Verb == "create" && strings.HasPrefix(r.RequestURI, "/apis/apps/v1/namespaces/default/deployments") {
			created = created || r.UserAgent == "devcluster" && r.ResponseStatus.Code == 201 && r.User.Username != ""
		}
		if r.Verb == "patch" && strings.HasPrefix(r.RequestURI, "/api/v1/namespaces/default/pods/filler-") {
			played = played || r.UserAgent == kubeletsUser && r.ResponseStatus.Code == 200 && r.User.Username == kubeletsUser
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(fmt.Errorf("read the audit log: %w", err))
	}
	if !created || !played {
		t.Errorf("in the audit log: %t for the creation of the filler deployment, %t for the start of a pod", created, played)
	}
}
