package e2e

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
)

// patience is how long a test waits for anything; it is a bound for a broken program, not a measure.
const patience = 3 * time.Minute

// testTime bounds all of one test: it may be patient several times.
const testTime = 10 * time.Minute

// stopTime is how long a worker may take to end in order: longer than its activities have to hand over.
const stopTime = time.Minute

// shortest and longest are the intervals at which a test looks again.
const (
	shortest = 50 * time.Millisecond
	longest  = 200 * time.Millisecond
)

// site is one test's Drydock: a worker with a configuration of its own, and its command line, on a lane of its own and
// the shared Temporal server. Its cluster name keeps its workflows apart from other tests'.
type site struct {
	*testing.T
	*siteState
	ctx      context.Context
	lane     *lane
	kube     kubernetes.Interface
	temporal client.Client
	// name is the test's, cluster the name in front of workflow IDs, which may be empty.
	name    string
	cluster string
	options devstack.WorkerOptions
	// environment is what the command line has besides.
	environment []string
	// auditFrom is where the audit log ended when the test began.
	auditFrom int64
}

// siteState is what the site shares with its subtests.
type siteState struct {
	worker     *devstack.Worker
	starts     int
	namespaces int
}

// newSite starts a worker with a configuration, in a test that runs side by side with others; when it ends, all it left
// is undone.
func newSite(t *testing.T, config string) *site {
	t.Helper()
	s := prepareSite(t, config)
	s.startWorker()
	return s
}

// newPlainSite is one whose configuration names no cluster, so that workflow IDs have no prefix.
func newPlainSite(t *testing.T, config string) *site {
	t.Helper()
	s := prepareSite(t, "")
	s.cluster, s.options.Config = "", config
	s.startWorker()
	return s
}

// prepareSite makes a site whose worker is not started yet.
func prepareSite(t *testing.T, config string) *site {
	t.Helper()
	t.Parallel()
	return prepareSiteOf(t, shared.lanes.take(t), shared.temporal, config)
}

// prepareSiteOf makes a site of any cluster and any Temporal server.
func prepareSiteOf(t *testing.T, on *lane, temporal *devstack.Temporal, config string) *site {
	t.Helper()
	name := fmt.Sprintf("%.30s-%d", strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), shared.sites.Add(1))
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	s := &site{
		T: t, siteState: &siteState{}, ctx: ctx, lane: on, kube: on.cluster.Client, temporal: temporal.Client,
		name: name, cluster: name,
	}
	s.options = devstack.WorkerOptions{
		Dir: filepath.Join(shared.dir, name), Config: "cluster: " + name + "\n" + config,
		Kubeconfig: on.kubeconfig, Temporal: temporal,
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

// sub runs a part of the test under a name of its own.
func (s *site) sub(name string, run func(s *site)) {
	s.Helper()
	s.Run(name, func(t *testing.T) {
		part := *s
		part.T = t
		run(&part)
	})
}

// startWorker starts a worker, another one if there is one already, and waits until it polls and the scheduler runs.
func (s *site) startWorker() {
	s.Helper()
	w, err := devstack.StartWorker(s.ctx, s.nextWorker())
	s.worker = w
	if err != nil {
		s.Fatal(err)
	}
	s.state()
}

// stopWorker has a worker end in order.
func (s *site) stopWorker(w *devstack.Worker) {
	s.Helper()
	if err := w.Stop(stopTime); err != nil {
		s.Fatal(err)
	}
}

// logOf is all that a worker has logged.
func (s *site) logOf(w *devstack.Worker) string {
	s.Helper()
	text, err := os.ReadFile(w.Log)
	if err != nil {
		s.Fatal(err)
	}
	return string(text)
}

func (s *site) nextWorker() devstack.WorkerOptions {
	s.starts++
	o := s.options
	o.Name = fmt.Sprintf("worker-%d", s.starts)
	return o
}

// tidyUp ends the test's workflows and leaves every node as the next test expects it.
func (s *site) tidyUp() {
	// The test may have used up its own time.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	s.ctx = ctx
	s.record()
	if s.Failed() {
		s.Logf("what still runs:\n%s", s.autopsy())
	}
	if s.worker != nil {
		if s.Failed() {
			s.Logf("the worker's log ends with\n%s", s.worker.Tail())
		}
		s.worker.Kill()
	}
	for _, id := range s.running() {
		if err := s.temporal.TerminateWorkflow(s.ctx, id, "", "the test is over"); err != nil {
			s.Logf("terminating %s: %v", id, err)
		}
	}
	namespaces, err := s.kube.CoreV1().Namespaces().List(s.ctx, metav1.ListOptions{LabelSelector: "e2e=" + s.name})
	if err != nil {
		s.Error(err)
		return
	}
	for _, ns := range namespaces.Items {
		// In a namespace that ends nothing is created any more, so the pods need not wait for its controller.
		if err := errors.Join(
			s.kube.CoreV1().Namespaces().Delete(s.ctx, ns.Name, metav1.DeleteOptions{}),
			s.kube.CoreV1().Pods(ns.Name).DeleteCollection(s.ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{}),
		); err != nil {
			s.Error(err)
		}
	}
	for _, n := range s.nodes() {
		s.resetNode(&n)
	}
	// Events tell their time in whole seconds, in which one test can end and the next begin.
	if err := s.kube.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(s.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		s.Error(err)
	}
	s.eventually("nothing of the test is left on any node", func() error {
		for _, n := range s.nodes() {
			if len(n.Spec.Taints) > 0 || n.Spec.Unschedulable || !k8s.IsReady(&n) {
				return fmt.Errorf("node %s is not as new: taints %v", n.Name, n.Spec.Taints)
			}
		}
		for _, ns := range namespaces.Items {
			if pods := s.pods(ns.Name); len(pods) > 0 {
				return fmt.Errorf("there is still pod %s/%s", ns.Name, pods[0].Name)
			}
		}
		return nil
	})
}

func (s *site) resetNode(n *corev1.Node) {
	mark, err := k8s.MarkOf(n)
	if err != nil {
		s.Error(err)
	}
	for _, h := range mark.Holders {
		if _, err := k8s.Release(s.ctx, s.lane.cluster.Narrow, n.Name, k8s.Caller{WorkflowID: h.WorkflowID, RunID: h.RunID}, k8s.Known{}); err != nil {
			s.Error(err)
		}
	}
	s.patchNode(n.Name, `{"spec":{"unschedulable":null},"metadata":{
		"labels":{"`+world.NotReadyLabel+`":null,"`+controlPlaneLabel+`":null,"`+api.PhaseLabel+`":null},
		"annotations":{"`+api.HoldersAnnotation+`":null}}}`)
}

// running are the IDs of the test's running workflows.
func (s *site) running() []string {
	page, err := s.temporal.ListWorkflow(s.ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: fmt.Sprintf("TaskQueue = '%s' AND ExecutionStatus = 'Running'", api.TaskQueue(s.cluster, "drydock")),
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

// eventually waits until check says nothing is missing any more.
func (s *site) eventually(what string, check func() error) {
	s.Helper()
	s.within(patience, what, check)
}

// within is eventually where the product promises a time.
func (s *site) within(limit time.Duration, what string, check func() error) {
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

// always watches for a while that something stays as it is: that something never happens has no event to wait for.
func (s *site) always(what string, period time.Duration, check func() error) {
	s.Helper()
	for end := time.Now().Add(period); time.Now().Before(end); s.pause(what, shortest) {
		if err := check(); err != nil {
			s.Fatalf("%s: no longer: %v", what, err)
		}
	}
}

func (s *site) pause(what string, interval time.Duration) {
	s.Helper()
	select {
	case <-time.After(interval):
	case <-s.ctx.Done():
		s.Fatalf("%s: %v", what, s.ctx.Err())
	}
}
