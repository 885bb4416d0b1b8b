package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.temporal.io/sdk/client"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

const (
	// laneLabel tells a node's lane.
	laneLabel = "chaos.drydock.dev/lane"
	// batchApp is the label app of pods that complete by themselves.
	batchApp = "batch"
	// policy has a rule that every maintenance obeys, so that there is something to judge.
	policy = `policy: [{name: named, require: "node.name != ''"}]` + "\n"
	// patience bounds a wait for what takes a moment when nothing is wrong.
	patience = time.Minute
)

// lane is two nodes with their pods, and a Drydock of their own to maintain them, which reaches Temporal and the API
// server through proxies of its own.
type lane struct {
	*stack
	name      string
	nodes     [2]string
	shape     shape
	temporal  *devstack.Temporal
	board     *switchboard
	api       *apiProxy
	calls     *temporalProxy
	worker    *devstack.Worker
	workers   int
	bridge    *devstack.Bridge
	bridges   int
	kubefile  string
	cluster   string
	clusters  int
	runs      int
	undamaged map[string]string
}

func (s *stack) newLane(ctx context.Context, i int, temporal *devstack.Temporal) (*lane, error) {
	l := &lane{
		stack: s, name: fmt.Sprintf("lane-%d", i+1), shape: shape{slots: 1}, temporal: temporal, board: &switchboard{},
		nodes: [2]string{world.NodeName(2 * i), world.NodeName(2*i + 1)},
	}
	var err error
	if l.api, err = newAPIProxy(s.cluster.Kubeconfig, laneLabel+"="+l.name, l.board); err != nil {
		return nil, err
	}
	if l.calls, err = newTemporalProxy(temporal.Address, l.board); err != nil {
		return nil, err
	}
	dir := filepath.Join(s.dir, l.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if err := l.writeWork(); err != nil {
		return nil, err
	}
	l.kubefile = filepath.Join(dir, "kubeconfig")
	if err := l.api.writeKubeconfig(l.kubefile); err != nil {
		return nil, err
	}
	for _, node := range l.nodes {
		if err := world.PatchNode(ctx, s.kube, node, `{"metadata":{"labels":{%q:%q}}}`, laneLabel, l.name); err != nil {
			return nil, err
		}
	}
	if err := l.populate(ctx); err != nil {
		return nil, err
	}
	return l, l.newCluster(ctx)
}

// newCluster starts the lane's Drydock under a new name, so that nothing of the one before matters.
func (l *lane) newCluster(ctx context.Context) error {
	l.clusters++
	l.cluster = fmt.Sprintf("%s-%d", l.name, l.clusters)
	l.stopBridge()
	if err := l.startWorker(ctx); err != nil || !l.shape.objects {
		return err
	}
	return l.startBridge(ctx)
}

// fit has the lane's Drydock be as a fault needs it: a new one, where it is not.
func fit(ctx context.Context, l *lane, wanted shape) error {
	if l.shape == wanted {
		return nil
	}
	l.worker.Kill()
	l.shape, l.undamaged = wanted, nil // the role is among what is compared
	for _, node := range l.nodes {
		if err := world.PatchNode(ctx, l.kube, node, `{"metadata":{"labels":{"node-role.kubernetes.io/control-plane":%s}}}`, wanted.role()); err != nil {
			return err
		}
	}
	return l.newCluster(ctx)
}

func (l *lane) startWorker(ctx context.Context) error {
	l.workers++
	profiles, err := profilesConfig(l)
	if err != nil {
		return err
	}
	w, err := devstack.StartWorker(ctx, devstack.WorkerOptions{
		Dir: filepath.Join(l.dir, l.name), Name: fmt.Sprintf("worker-%d", l.workers),
		Config: fmt.Sprintf("cluster: %s\nscheduler: {maxParallel: %d}\nwindows: {always: {from: \"00:00\", to: \"24:00\"}}\n", l.cluster, l.shape.slots) +
			policy + l.receiver.config() + l.workConfig() + l.shape.healthConfig(l.name) + profiles,
		Kubeconfig: l.kubefile, Temporal: l.temporal,
		Environment: []string{"TEMPORAL_ADDRESS=" + l.calls.address},
	})
	l.worker = w
	return err
}

// queue is the task queue of the lane's worker.
func (l *lane) queue() string { return api.TaskQueue(l.cluster, api.DefaultTaskQueue) }

func (l *lane) startWorkflow(ctx context.Context, id, kind string, input any) (client.WorkflowRun, error) {
	return l.temporal.Client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: id, TaskQueue: l.queue()}, kind, input)
}

func (l *lane) close() {
	if l.worker != nil && l.worker.Process != nil {
		l.worker.Kill()
	}
	l.stopBridge()
	l.api.close()
	l.calls.close()
}

// populate runs pods of every sort that a drain tells apart: pinned ones that are slow to go, some that move between
// the lane's nodes under a budget, and those of a DaemonSet.
func (l *lane) populate(ctx context.Context) error {
	in := l.workloads()
	if err := in.Create(ctx); err != nil {
		return err
	}
	var problems []error
	for i, node := range l.nodes {
		pinned := pods(fmt.Sprintf("web-%d", i+1))
		pinned.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
		problems = append(problems, in.Deployment(ctx, pinned, 1))
	}
	pool := pods("pool")
	pool.Spec.NodeSelector = map[string]string{laneLabel: l.name}
	pool.Spec.Affinity = prefers(l.nodes[0])
	one := intstr.FromInt32(1)
	problems = append(problems, in.Deployment(ctx, pool, 2), in.Budget(ctx, "pool", "pool", policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}))
	if l.remedies != nil {
		problems = append(problems, l.remedies.addTemplates(ctx, l.name))
	}
	agent := pods("agent")
	agent.Spec.NodeSelector = pool.Spec.NodeSelector
	return errors.Join(append(problems, in.DaemonSet(ctx, agent))...)
}

func (l *lane) workloads() world.Namespace { return world.Namespace{Kube: l.kube, Name: l.name} }

// pods is a template of pods that take a moment to end, and to complete where they do.
func pods(app string) corev1.PodTemplateSpec {
	t := world.Pods(app)
	t.Annotations = map[string]string{world.TerminationDelay: "1s", world.CompletionDelay: "2s"}
	return t
}

// prefers lets pods run on a node as long as it takes any.
func prefers(node string) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node},
			}}},
		}},
	}}
}

// startBatch runs a pod on the first node that completes by itself.
func (l *lane) startBatch(ctx context.Context) error {
	t := pods(batchApp)
	t.Spec.NodeSelector = map[string]string{corev1.LabelHostname: l.nodes[0]}
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := l.kube.BatchV1().Jobs(l.name).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", batchApp, l.runs)}, Spec: batchv1.JobSpec{Template: t},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	return world.Eventually(ctx, patience, "the pod of the Job runs", func() error {
		list, err := l.kube.CoreV1().Pods(l.name).List(ctx, metav1.ListOptions{LabelSelector: fmt.Sprintf("batch.kubernetes.io/job-name=%s-%d", batchApp, l.runs)})
		if err == nil && (len(list.Items) == 0 || list.Items[0].Status.Phase == corev1.PodPending) {
			err = errors.New("it does not")
		}
		return err
	})
}

func (l *lane) endBatch(ctx context.Context) error {
	background := metav1.DeletePropagationBackground
	return l.kube.BatchV1().Jobs(l.name).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
}

// settled waits until every pod of the lane is where it was in the beginning.
func (l *lane) settled(ctx context.Context) error {
	return world.Eventually(ctx, patience, "the pods of "+l.name+" are Ready", func() error {
		list, err := l.kube.CoreV1().Pods(l.name).List(ctx, metav1.ListOptions{LabelSelector: "app!=" + batchApp})
		if err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if pod := &list.Items[i]; k8s.IsPodReady(pod) && pod.DeletionTimestamp == nil {
				ready++
			}
		}
		if want := 6; ready != want || len(list.Items) != want {
			return fmt.Errorf("%d of %d pods are, want %d", ready, len(list.Items), want)
		}
		return nil
	})
}

// imprint is all of a node that a maintenance could leave behind.
func (l *lane) imprint(ctx context.Context, node string) (string, error) {
	n, err := l.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	for _, own := range []map[string]string{n.Labels, n.Annotations} {
		maps.DeleteFunc(own, func(key, _ string) bool { return strings.HasPrefix(key, sap) }) // it stays, and says that nothing is going on
	}
	return witness.Imprint(n), nil
}

// mend gives a lane that something went wrong in a fresh start.
func (l *lane) mend(ctx context.Context) error {
	if l.worker.Process != nil {
		l.worker.Kill()
	}
	l.stopBridge()
	running, err := l.running(ctx)
	if err := errors.Join(err, l.forgetObjects(ctx)); err != nil {
		return err
	}
	for _, id := range running {
		if err := l.temporal.Client.TerminateWorkflow(ctx, id, "", "chaos: the lane begins anew"); err != nil {
			return err
		}
	}
	for _, node := range l.nodes {
		n, err := l.kube.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		mark, err := k8s.MarkOf(n)
		if err != nil {
			return err
		}
		for _, h := range mark.Holders {
			if _, err := k8s.Release(ctx, l.stack.cluster.Narrow, node, k8s.Caller{WorkflowID: h.WorkflowID, RunID: h.RunID}, k8s.Known{}); err != nil {
				return err
			}
		}
		if err := world.PatchNode(ctx, l.kube, node, `{"spec":{"unschedulable":null,"taints":null},"metadata":{"labels":{%q:null},"annotations":{%q:null}}}`,
			api.PhaseLabel, api.HoldersAnnotation); err != nil {
			return err
		}
	}
	if err := l.recover(ctx, l); err != nil {
		return err
	}
	return l.newCluster(ctx)
}
