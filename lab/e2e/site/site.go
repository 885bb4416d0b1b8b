package site

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/nodestate"
)

// Patience is how long a test waits for anything; it is a bound for a broken program, not a measure.
const Patience = 3 * time.Minute

// TestTime bounds all of one test: it may be patient several times.
const TestTime = 10 * time.Minute

// StopTime is how long a worker may take to end in order: longer than its activities have to hand over.
const StopTime = time.Minute

// shortest and longest are the intervals at which a test looks again.
const (
	shortest = 50 * time.Millisecond
	longest  = 200 * time.Millisecond
)

// Site is one test's Drydock: a worker with a configuration of its own, and its command line, on a lane of its own and
// the shared Temporal server. Its cluster name keeps its workflows apart from other tests'.
type Site struct {
	*testing.T
	*siteState
	Ctx      context.Context
	Lane     *Lane
	Kube     kubernetes.Interface
	Temporal client.Client
	// name is the test's, cluster the name in front of workflow IDs, which may be empty.
	ID      string
	Cluster string
	Options devstack.WorkerOptions
	// environment is what the command line has besides.
	Environment []string
	// auditFrom is where the audit log ended when the test began.
	auditFrom int64
}

// siteState is what the site shares with its subtests.
type siteState struct {
	Worker     *devstack.Worker
	Starts     int
	namespaces int
}

// New starts a worker with a configuration, in a test that runs side by side with others; when it ends, all it left
// is undone.
func New(t *testing.T, config string) *Site {
	t.Helper()
	s := Prepare(t, config)
	s.StartWorker()
	return s
}

// NewPlain is one whose configuration names no cluster, so that workflow IDs have no prefix. There is one such site at a time: their
// workflows would have the same IDs.
func NewPlain(t *testing.T, config string) *Site {
	t.Helper()
	t.Parallel()
	Shared.Plain.Lock()
	t.Cleanup(Shared.Plain.Unlock)
	s := PrepareOf(t, Shared.Lanes.Take(t), Shared.Temporal, "")
	s.Cluster, s.Options.Config = "", config
	s.StartWorker()
	return s
}

// Prepare makes a site whose worker is not started yet.
func Prepare(t *testing.T, config string) *Site {
	t.Helper()
	t.Parallel()
	return PrepareOf(t, Shared.Lanes.Take(t), Shared.Temporal, config)
}

// PrepareOf makes a site of any cluster and any Temporal server.
func PrepareOf(t *testing.T, on *Lane, temporal *devstack.Temporal, config string) *Site {
	t.Helper()
	name := fmt.Sprintf("%.30s-%d", strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), Shared.Sites.Add(1))
	ctx, cancel := context.WithTimeout(context.Background(), TestTime)
	s := &Site{
		T: t, siteState: &siteState{}, Ctx: ctx, Lane: on, Kube: on.Cluster.Client, Temporal: temporal.Client,
		ID: name, Cluster: name,
	}
	s.Options = devstack.WorkerOptions{
		Dir: filepath.Join(Shared.Dir, name), Config: "cluster: " + name + "\n" + config,
		Kubeconfig: on.Kubeconfig, Temporal: temporal,
	}
	end, err := devstack.AuditEnd(on.audit)
	if err != nil {
		t.Fatal(err)
	}
	s.auditFrom = end
	t.Cleanup(cancel)
	t.Cleanup(s.tidyUp)
	return s
}

// Sub runs a part of the test under a name of its own.
func (s *Site) Sub(name string, run func(s *Site)) {
	s.Helper()
	s.Run(name, func(t *testing.T) {
		part := *s
		part.T = t
		run(&part)
	})
}

// Rename gives the cluster a name that no other site has, before its worker is started.
func (s *Site) Rename(cluster string) {
	s.Options.Config = strings.Replace(s.Options.Config, "cluster: "+s.Cluster+"\n", "cluster: "+cluster+"\n", 1)
	s.Cluster = cluster
}

// StartWorker starts a worker, another one if there is one already, and waits until it polls and the scheduler runs.
func (s *Site) StartWorker() {
	s.Helper()
	w, err := devstack.StartWorker(s.Ctx, s.NextWorker())
	s.Worker = w
	s.NoError(err)
	s.State()
}

// StopWorker has a worker end in order.
func (s *Site) StopWorker(w *devstack.Worker) {
	s.Helper()
	s.NoError(w.Stop(StopTime))
}

// LogOf is all that a worker has logged.
func (s *Site) LogOf(w *devstack.Worker) string {
	s.Helper()
	text, err := os.ReadFile(w.Log)
	s.NoError(err)
	return string(text)
}

// NextWorker is how the next worker of the site is run.
func (s *Site) NextWorker() devstack.WorkerOptions {
	s.Starts++
	o := s.Options
	o.Name = fmt.Sprintf("worker-%d", s.Starts)
	return o
}

// tidyUp ends the test's workflows and leaves every node as the next test expects it.
func (s *Site) tidyUp() {
	// The test may have used up its own time.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.Ctx = ctx
	s.record()
	if s.Failed() {
		s.Logf("what still runs:\n%s", s.autopsy())
	}
	if s.Worker != nil {
		if s.Failed() {
			s.Logf("the worker's log ends with\n%s", s.Worker.Tail())
		}
		s.Worker.Kill()
	}
	for _, id := range s.Running() {
		if err := s.Temporal.TerminateWorkflow(s.Ctx, id, "", "the test is over"); err != nil {
			s.Logf("terminating %s: %v", id, err)
		}
	}
	namespaces, err := s.Kube.CoreV1().Namespaces().List(s.Ctx, metav1.ListOptions{LabelSelector: "e2e=" + s.ID})
	if err != nil {
		s.Error(err)
		return
	}
	for _, ns := range namespaces.Items {
		// In a namespace that ends nothing is created any more, so the pods need not wait for its controller.
		if err := errors.Join(
			s.Kube.CoreV1().Namespaces().Delete(s.Ctx, ns.Name, metav1.DeleteOptions{}),
			s.Kube.CoreV1().Pods(ns.Name).DeleteCollection(s.Ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}),
		); err != nil {
			s.Error(err)
		}
	}
	for _, n := range s.Nodes() {
		s.resetNode(&n)
	}
	// Events tell their time in whole seconds, in which one test can end and the next begin.
	if err := s.Kube.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(s.Ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		s.Error(err)
	}
	s.Eventually("nothing of the test is left on any node", func() error {
		for _, n := range s.Nodes() {
			if len(n.Spec.Taints) > 0 || n.Spec.Unschedulable || !nodestate.IsReady(&n) {
				return fmt.Errorf("node %s is not as new: taints %v", n.Name, n.Spec.Taints)
			}
		}
		for _, ns := range namespaces.Items {
			if pods := s.Pods(ns.Name); len(pods) > 0 {
				return fmt.Errorf("there is still pod %s/%s", ns.Name, pods[0].Name)
			}
		}
		return nil
	})
}

func (s *Site) resetNode(n *corev1.Node) {
	mark, err := k8s.MarkOf(n)
	if err != nil {
		s.Error(err)
	}
	for _, h := range mark.Holders {
		if _, err := k8s.Release(s.Ctx, s.Lane.Cluster.Narrow, n.Name, k8s.Caller{WorkflowID: h.WorkflowID, RunID: h.RunID}, k8s.Known{}); err != nil {
			s.Error(err)
		}
	}
	s.PatchNode(n.Name, `{"spec":{"unschedulable":null},"metadata":{
		"labels":{"`+world.NotReadyLabel+`":null,"`+ControlPlaneLabel+`":null,"`+api.PhaseLabel+`":null},
		"annotations":{"`+api.HoldersAnnotation+`":null}}}`)
}

// Running are the IDs of the test's running workflows.
func (s *Site) Running() []string {
	page, err := s.Temporal.ListWorkflow(s.Ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", api.TaskQueue(s.Cluster, "drydock")),
	})
	if err != nil {
		s.Error(err)
		return nil
	}
	var ids []string
	for _, e := range page.Executions {
		ids = append(ids, e.Execution.WorkflowId)
	}
	return ids
}

// NoError ends the test where there is an error.
func (s *Site) NoError(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// Eventually waits until check says nothing is missing any more.
func (s *Site) Eventually(what string, check func() error) {
	s.Helper()
	s.Within(Patience, what, check)
}

// Within is eventually where the product promises a time.
func (s *Site) Within(limit time.Duration, what string, check func() error) {
	s.Helper()
	deadline := time.Now().Add(limit)
	// What comes soon is to be seen soon, and what takes long is not to be asked for all the time: each check is work for
	// the servers, and for the other tests' as well.
	for interval := shortest; ; interval = min(interval*3/2, longest) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		s.pause(what, interval)
	}
}

// Always watches for a while that something stays as it is: that something never happens has no event to wait for.
func (s *Site) Always(what string, period time.Duration, check func() error) {
	s.Helper()
	for end := time.Now().Add(period); time.Now().Before(end); s.pause(what, shortest) {
		if err := check(); err != nil {
			s.Fatalf("%s: no longer: %v", what, err)
		}
	}
}

func (s *Site) pause(what string, interval time.Duration) {
	s.Helper()
	select {
	case <-time.After(interval):
	case <-s.Ctx.Done():
		s.Fatalf("%s: %v", what, s.Ctx.Err())
	}
}
