package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/lab/world"
)

const (
	// memoryDrained nodes are drained at once.
	memoryDrained = 50
	memoryImages  = 50
	memoryLabels  = 30
	// lingering keeps the drains under way at the same time.
	lingering = 5 * time.Second
)

// largeNodes are the flags that make a cluster's nodes as large as real ones.
func largeNodes() []string {
	args := []string{"--images-per-node", strconv.Itoa(memoryImages)}
	// A simulated node has five labels by itself.
	for i := range memoryLabels - 5 {
		args = append(args, "--node-labels", fmt.Sprintf("example.com/label-%02d=value-%02d", i, i))
	}
	return args
}

// memory is how much a worker needs while it drains a part of a large cluster. The nodes that it does not drain hold
// pods that never start: for a worker they are as good as any.
func (b *bench) memory(ctx context.Context) []Figure {
	nodes, pods := b.sizes.memoryNodes, b.sizes.memoryPods
	world.Say("memory: a cluster of %d nodes with %d pods, which takes some minutes", nodes, pods)
	began := time.Now()
	b.enlarge(ctx, nodes, pods)
	world.Say("memory: the cluster was there after %s", time.Since(began).Round(time.Second))
	seen, ready := runningPods(ctx, b.Cluster, "app="+massApp+",drained=true"), readyNodes(ctx, b.Cluster)
	must(seen.until(ctx, "the pods to run", func(there, wished int) bool { return there > 0 && there == wished }))
	worker := must(b.startWorker(ctx, "worker", "scheduler: {maxParallel: unlimited}\n"))
	defer func() { b.note(worker.Stop(time.Minute)) }()
	noError(b.untilIdle(ctx, api.SchedulerID("")))
	idle, _ := resident(worker)
	world.Say("memory: draining %d nodes", memoryDrained)
	noError(inParallel(ctx, memoryDrained, slots, func(ctx context.Context, i int) error {
		return b.start(ctx, world.NodeName(i), "memory", massDrain)
	}))
	must(seen.until(ctx, "the pods to be gone", noneThere))
	must(ready.until(ctx, "the nodes to be Ready", func(_, wished int) bool { return wished == memoryDrained }))
	after, peak := resident(worker)
	noError(b.finish(ctx, memoryDrained, "memory"))
	return []Figure{
		report("memory, nodes of the cluster", float64(nodes), "nodes"),
		report("memory, pods of the cluster", float64(pods), "pods"),
		report("worker's resident memory before any maintenance", idle, "MB"),
		report(fmt.Sprintf("worker's resident memory when %d nodes are drained", memoryDrained), after, "MB"),
		atMost("worker's peak resident memory", peak, "MB", 150),
	}
}

// resident is how much memory a worker has, and had at most, in MB.
func resident(w *devstack.Worker) (now, peak float64) {
	now, peak, err := world.Resident(w.PID())
	noError(err)
	return now, peak
}

// enlarge adds nodes like the first one, and the pods.
func (b *bench) enlarge(ctx context.Context, nodes, pods int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if nodes < memoryDrained {
		noError(fmt.Errorf("%d nodes are fewer than the %d to drain", nodes, memoryDrained))
	}
	b.addNodes(ctx, memoryDrained, nodes)
	kube := b.Cluster.Client.CoreV1()
	world.Say("memory: %d nodes are Ready", nodes)
	running := runningPods(ctx, b.Cluster, "app="+massApp+",drained=true")
	drained := 0
	for i := range pods {
		if i%nodes < memoryDrained {
			drained++
		}
	}
	noError(inParallel(ctx, pods, requestsAtOnce, func(ctx context.Context, i int) error {
		pod := massPod(i, nodes)
		if i%nodes < memoryDrained {
			pod.Labels["drained"] = "true"
			pod.Annotations = map[string]string{world.TerminationDelay: lingering.String()}
		} else {
			pod.Labels["devcluster.drydock.dev/never-start"] = "true"
		}
		_, err := kube.Pods(metav1.NamespaceDefault).Create(ctx, pod, metav1.CreateOptions{})
		return err
	}))
	must(running.until(ctx, "the pods to run", func(_, wished int) bool { return wished == drained }))
}

// addNodes adds nodes like the first one to those that are there, and waits until all are Ready.
func (b *bench) addNodes(ctx context.Context, there, nodes int) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	kube := b.Cluster.Client.CoreV1()
	first := must(kube.Nodes().Get(ctx, world.NodeName(0), metav1.GetOptions{}))
	if len(first.Labels) < memoryLabels || len(first.Status.Images) != memoryImages {
		noError(fmt.Errorf("a node has %d labels and %d images", len(first.Labels), len(first.Status.Images)))
	}
	open := look(ctx, kube.RESTClient(), "nodes", "", &corev1.Node{}, func(node *corev1.Node) bool { return len(node.Spec.Taints) == 0 })
	noError(inParallel(ctx, nodes-there, requestsAtOnce, func(ctx context.Context, i int) error {
		node := &corev1.Node{Status: first.Status}
		node.Name = world.NodeName(there + i)
		node.Labels = maps.Clone(first.Labels)
		node.Labels[corev1.LabelHostname] = node.Name
		_, err := kube.Nodes().Create(ctx, node, metav1.CreateOptions{})
		return err
	}))
	must(open.until(ctx, "the nodes to be Ready", func(_, ready int) bool { return ready == nodes }))
}
