package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/lab/world"
)

// shuttle is a Deployment in a cluster of two nodes. All its pods are on one of them, and move to the other one each
// time they are drained.
type shuttle struct {
	*bench
	name string
	pods int32
	// budget is true for a PodDisruptionBudget that lets one pod be missing.
	budget bool
	// slowToEnd is how long a pod takes to end after its eviction.
	slowToEnd time.Duration
	// at is where the pods are: the node's index.
	at int
	// plain is a client for loops of the bench's own, with the same settings as the worker's.
	plain kube.Interface
}

// drainer empties a cordoned or uncordoned node, and tells how long that took by its own account.
type drainer struct {
	name  string
	drain func(ctx context.Context, node string) time.Duration
}

// shuttleNodes are the two nodes, in the order of the index.
var shuttleNodes = []string{world.NodeName(0), world.NodeName(1)}

// launch creates the workload, all of it on the first node.
func (s *shuttle) launch(ctx context.Context) {
	s.plain = must(workerLike(s.Cluster, bareAgent, 200, 400))
	in := world.Namespace{Kube: s.Cluster.Client, Name: s.name}
	noError(in.Create(ctx))
	noError(s.cordon(ctx, shuttleNodes[1], true))
	pods := world.Pods(s.name)
	if s.slowToEnd > 0 {
		pods.Annotations[world.TerminationDelay] = s.slowToEnd.String()
	}
	noError(in.Deployment(ctx, pods, s.pods))
	if s.budget {
		noError(in.Budget(ctx, s.name, s.name, policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(1))}))
	}
	noError(s.settle(ctx))
}

// end removes the workload, also where the time for it is over.
func (s *shuttle) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(
		s.Cluster.Client.CoreV1().Namespaces().Delete(ctx, s.name, metav1.DeleteOptions{}),
		poll(ctx, "the namespace "+s.name+" to be gone", func() (bool, error) {
			list, err := s.Cluster.Client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
			return err == nil && len(list.Items) == 0, err
		}),
	)
}

// rounds lets each drainer have its turn so many times, and returns the times of each, in seconds. They alternate, so
// that all of them see the same machine.
func (s *shuttle) rounds(ctx context.Context, rounds int, drainers []drainer) [][]float64 {
	times := make([][]float64, len(drainers))
	for round := range rounds {
		text := ""
		for i, d := range drainers {
			took := named(fmt.Sprintf("round %d, %s", round+1, d.name), func() time.Duration { return s.move(ctx, d) })
			times[i] = append(times[i], took.Seconds())
			text += fmt.Sprintf("  %s %.3f s", d.name, took.Seconds())
		}
		world.Say("round %d of %d:%s", round+1, rounds, text)
	}
	return times
}

// move drains the node where the pods are, and waits until the other one has them.
func (s *shuttle) move(ctx context.Context, d drainer) time.Duration {
	node := shuttleNodes[s.at]
	took := d.drain(ctx, node)
	left := must(s.Cluster.Client.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})).Items
	if len(left) > 0 {
		noError(fmt.Errorf("%d pods are still on node %s", len(left), node))
	}
	s.at = 1 - s.at
	noError(s.settle(ctx))
	return took
}

// settle opens both nodes, once all pods are where they are to be and the budget has noticed.
func (s *shuttle) settle(ctx context.Context) error {
	kube := s.Cluster.Client
	err := poll(ctx, "all pods on node "+shuttleNodes[s.at], func() (bool, error) {
		list, err := kube.CoreV1().Pods(s.name).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != int(s.pods) {
			return false, err
		}
		for _, pod := range list.Items {
			if pod.Spec.NodeName != shuttleNodes[s.at] || pod.DeletionTimestamp != nil || !k8s.IsPodReady(&pod) {
				return false, nil
			}
		}
		if !s.budget {
			return true, nil
		}
		budget, err := kube.PolicyV1().PodDisruptionBudgets(s.name).Get(ctx, s.name, metav1.GetOptions{})
		return err == nil && budget.Status.CurrentHealthy == s.pods && budget.Status.DisruptionsAllowed == 1, err
	})
	for _, node := range shuttleNodes {
		err = errors.Join(err, s.cordon(ctx, node, false))
	}
	return err
}

// drydock is a maintenance with default input: from its phase Draining to Ready, by the transitions in its status.
func (s *shuttle) drydock(ctx context.Context, node string) time.Duration {
	id := api.MaintenanceID("", node, "bench")
	noError(s.start(ctx, node, "bench", ""))
	noError(s.untilPhase(ctx, id, api.Ready))
	noError(s.Temporal.Client.SignalWorkflow(ctx, id, "", api.MsgDone, nil))
	var result api.Result
	noError(s.Temporal.Client.GetWorkflow(ctx, id, "").Get(ctx, &result))
	entered := func(phase api.Phase) int {
		return slices.IndexFunc(result.Transitions, func(t api.Transition) bool { return t.Phase == phase })
	}
	from, to := entered(api.Draining), entered(api.Ready)
	if from < 0 || to < from {
		noError(fmt.Errorf("%s did not drain its node: %+v", id, result))
	}
	return result.Transitions[to].At.Sub(result.Transitions[from].At)
}

// kubectl is kubectl drain, from its start to its end.
func (s *shuttle) kubectl(ctx context.Context, node string) (time.Duration, error) {
	binary, err := devstack.Binary("devcluster")
	if err != nil {
		return 0, err
	}
	command := exec.CommandContext(ctx, binary, "kubectl", "drain", node, "--ignore-daemonsets")
	// It keeps what it discovers about the API server in its home directory.
	command.Env = append(os.Environ(), "KUBECONFIG="+s.Cluster.Kubeconfig, "HOME="+s.Dir)
	began := time.Now()
	output, err := command.CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("kubectl drain: %w\n%s", err, output)
	}
	return time.Since(began), nil
}

// byKubectl is kubectl as a drainer.
func (s *shuttle) byKubectl(ctx context.Context, node string) time.Duration {
	return must(s.kubectl(ctx, node))
}

// workerLike is a client with the settings of a worker's.
func workerLike(cluster *devstack.Cluster, agent string, qps float32, burst int) (kube.Interface, error) {
	return k8s.NewClient(k8s.Options{Kubeconfig: cluster.Kubeconfig, QPS: qps, Burst: burst, UserAgent: agent})
}

func (s *shuttle) cordon(ctx context.Context, node string, cordoned bool) error {
	return world.PatchNode(ctx, s.Cluster.Client, node, `{"spec":{"unschedulable":%t}}`, cordoned)
}
