package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/lab/world"
)

const (
	// bareWorkers are the goroutines of the bare eviction loop.
	bareWorkers = 64
	// requestsAtOnce are those by which the bench prepares a fleet: more only queue up in the API server.
	requestsAtOnce = 32
	// fleetQPS and fleetBurst bound no client.
	fleetQPS, fleetBurst = 5000, 10000
	// defaultRate is the worker's own limit of evictions per second.
	defaultRate = 100

	massApp = "mass"
	// massDrain consents to the loss of the pods, which nobody re-creates.
	massDrain = `,"drain":{"force":true}`
)

// unlimited configures a worker that has all nodes out of service at once, and evicts as fast as it can.
func unlimited() string {
	return fmt.Sprintf("scheduler: {maxParallel: unlimited}\nkubernetes: {evictionsPerSecond: 0, qps: %d, burst: %d}\n", fleetQPS, fleetBurst)
}

// massDrainer has a cluster of which some nodes are drained all at once.
type massDrainer struct {
	*bench
	nodes int
	// owned pods belong to one controller, which creates none anew.
	owned bool
	// tiers is how many labels tell the pods of a node apart, 0 for none.
	tiers int
}

// tierLabel tells a pod's tier, from 0.
const tierLabel = "tier"

// drainFleet drains all nodes of a cluster at once: without a limit of evictions, against a loop that does nothing
// but evict, and with the limit that a worker has by default.
func (b *bench) drainFleet(ctx context.Context) []Figure {
	nodes, pods := b.sizes.fleetNodes, b.sizes.fleetNodes*b.sizes.fleetPods
	world.Say("fleet: %d nodes with %d pods each, %d in all, drained at once", nodes, b.sizes.fleetPods, pods)
	f := &massDrainer{bench: b, nodes: nodes}
	bare := named("bare loop", func() fleetDrain { return f.evictAll(ctx, pods) })
	world.Say("fleet: the bare loop of %d goroutines took %.2f s, %.0f evictions/s", bareWorkers, bare.took.Seconds(), bare.rate)
	free := named("without a limit", func() fleetDrain { return f.drainAll(ctx, pods, "unlimited", unlimited()) })
	world.Say("fleet: Drydock took %.2f s, %.2f s of it from its first eviction, %.0f evictions/s",
		free.sinceGrant.Seconds(), free.took.Seconds(), free.rate)
	limited := named("with the default limit", func() fleetDrain {
		return f.drainAll(ctx, pods, "default", "scheduler: {maxParallel: unlimited}\n")
	})
	shown := plot{
		fmt.Sprintf("Emptying %d nodes with %d pods at once", nodes, pods), "s", []string{"first eviction or grant to the last pod gone", "CPU of the API server"},
		[]series{
			{"Drydock", []float64{free.sinceGrant.Seconds(), free.cpu}}, {"bare loop of evictions", []float64{bare.took.Seconds(), bare.cpu}},
		},
	}
	noError(shown.draw("fleet"))
	return []Figure{
		report("fleet, nodes drained at once", float64(nodes), "nodes"),
		report("fleet, pods on them", float64(pods), "pods"),
		report("fleet, bare eviction loop, first eviction to last pod gone", bare.took.Seconds(), "s"),
		report("- of these from the last eviction", bare.tail.Seconds(), "s"),
		report("fleet, Drydock, first grant to last pod gone", free.sinceGrant.Seconds(), "s"),
		report("- of these from the first eviction", free.took.Seconds(), "s"),
		report("- of these from the last eviction", free.tail.Seconds(), "s"),
		atMost("fleet, Drydock / bare eviction loop", free.sinceGrant.Seconds()/bare.took.Seconds(), "ratio", 1.8),
		report("- from the first eviction, to compare", free.took.Seconds()/bare.took.Seconds(), "ratio"),
		report("fleet, CPU seconds of the API server, bare eviction loop", bare.cpu, "s"),
		report("fleet, CPU seconds of the API server, Drydock", free.cpu, "s"),
		atMost("fleet, CPU seconds of the API server, Drydock / bare loop", free.cpu/bare.cpu, "ratio", 1.4),
		report("evictions, bare loop", bare.rate, "1/s"),
		report("evictions, Drydock", free.rate, "1/s"),
		atMost("write requests per pod, those to nodes included, Events apart", float64(free.writes)/float64(pods), "requests", 1.2),
		report("- of these to nodes", float64(free.nodeWrites)/float64(pods), "requests"),
		report("evictions with the default limit", limited.rate, "1/s"),
		atLeast("- that rate / the limit", limited.rate/defaultRate, "ratio", 0.9),
	}
}

// fill puts the pods on the nodes, waits until they run, and returns what then shows them go.
func (b *massDrainer) fill(ctx context.Context, pods int) *sight {
	seen := runningPods(ctx, b.Cluster, "app="+massApp)
	noError(inParallel(ctx, pods, requestsAtOnce, func(ctx context.Context, i int) error {
		_, err := b.Cluster.Client.CoreV1().Pods(metav1.NamespaceDefault).Create(ctx, b.pod(i), metav1.CreateOptions{})
		return err
	}))
	must(seen.until(ctx, "the pods to run", func(_, running int) bool { return running == pods }))
	return seen
}

// owner is the controller of owned pods. Nobody serves its kind, so that nobody replaces them or takes them away.
var owner = metav1.OwnerReference{
	APIVersion: "bench.drydock.dev/v1", Kind: "ReplicaSet", Name: massApp, UID: "6f0d4a52-0000-4000-8000-000000000001", Controller: new(true),
}

func (b *massDrainer) pod(i int) *corev1.Pod {
	pod := massPod(i, b.nodes)
	if b.owned {
		pod.OwnerReferences = []metav1.OwnerReference{owner}
	}
	if b.tiers > 0 {
		pod.Labels[tierLabel] = strconv.Itoa(i / b.nodes % b.tiers)
	}
	return pod
}

// massPod is the i-th pod, on one of so many nodes in turn.
func massPod(i, nodes int) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%05d", massApp, i), Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": massApp},
		},
		Spec: world.Pods(massApp).Spec,
	}
	pod.Spec.NodeName = world.NodeName(i % nodes)
	return pod
}

func inParallel(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// fleetDrain is how all pods of the fleet were evicted.
type fleetDrain struct {
	// took is from the first eviction until the last pod was gone, sinceGrant from the first grant of a slot.
	took, sinceGrant time.Duration
	// tail is from the last eviction until the last pod was gone: the simulated kubelets' share.
	tail time.Duration
	// rate are the evictions per second between the first and the last of them.
	rate float64
	// writes are all until then, and until all nodes are shown as Ready; those of Events apart.
	writes, nodeWrites int
	// cpu are the seconds that the API server worked from the start until the last pod was gone.
	cpu float64
}

// evictAll is the bare loop: it knows all pods and evicts them, and nothing else.
func (b *massDrainer) evictAll(ctx context.Context, pods int) (drained fleetDrain) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := b.fill(ctx, pods)
	plain := must(workerLike(b.Cluster, bareAgent, fleetQPS, fleetBurst))
	list := must(plain.CoreV1().Pods(metav1.NamespaceDefault).List(ctx, metav1.ListOptions{LabelSelector: "app=" + massApp}))
	mark := must(b.audit.mark())
	worked := b.serverWork()
	world.Say("fleet: the bare loop evicts")
	noError(inParallel(ctx, len(list.Items), bareWorkers, func(ctx context.Context, i int) error {
		pod := &list.Items[i]
		if eviction := k8s.EvictPod(ctx, plain, pod, nil); eviction.Answer != k8s.Accepted {
			return fmt.Errorf("evicting pod %s: %s %s", pod.Name, eviction.Answer, eviction.Message)
		}
		return nil
	}))
	gone := must(seen.until(ctx, "the pods to be gone", noneThere))
	drained.cpu = worked()
	b.tallyFleet(bareAgent, mark, pods, gone, &drained)
	return drained
}

func noneThere(there, _ int) bool { return there == 0 }

// drainAll drains all nodes with a worker of its own. A freeze keeps the start of the workflows out of the measure.
func (b *massDrainer) drainAll(ctx context.Context, pods int, name, config string) (drained fleetDrain) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	world.Say("fleet: preparing the drain with the limit %s", name)
	seen := b.fill(ctx, pods)
	worker := must(b.startWorker(ctx, "worker-"+name, config))
	defer func() { b.note(worker.Stop(time.Minute)) }()
	b.queueUp(ctx, name)
	ready := readyNodes(ctx, b.Cluster)
	mark := must(b.audit.mark())
	worked := b.serverWork()
	world.Say("fleet: draining")
	noError(b.updateScheduler(ctx, api.UpdateThaw, api.ThawRequest{By: "bench"}))
	gone := must(seen.until(ctx, "the pods to be gone", noneThere))
	drained.cpu = worked()
	must(ready.until(ctx, "the nodes to be Ready", func(_, wished int) bool { return wished == b.nodes }))
	state := must(b.stateOf(ctx, api.SchedulerID(""), api.StateRequest{Limit: 1}))
	granted := gone
	for _, holder := range state.Holders {
		if holder.GrantedAt.Before(granted) {
			granted = holder.GrantedAt
		}
	}
	drained.sinceGrant = gone.Sub(granted)
	b.tallyFleet(theWorker, mark, pods, gone, &drained)
	noError(b.finish(ctx, b.nodes, name))
	return drained
}

// tallyFleet reads from the audit log what whoever evicted did.
func (b *massDrainer) tallyFleet(agent string, mark int64, pods int, gone time.Time, drained *fleetDrain) {
	var first, last time.Time
	accepted := 0
	noError(b.audit.each(mark, func(r request) {
		if !r.by(agent) || !r.writes() || r.onEvents() {
			return
		}
		drained.writes++
		if r.Object.Resource == "nodes" {
			drained.nodeWrites++
		}
		if !r.evicts() || r.Status.Code >= 300 {
			return
		}
		accepted++
		if at := r.Received; first.IsZero() || at.Before(first) {
			first = at
		}
		if at := r.Received; at.After(last) {
			last = at
		}
	}))
	if accepted != pods {
		noError(fmt.Errorf("the audit log has %d evictions of %d pods", accepted, pods))
	}
	drained.took, drained.tail = gone.Sub(first), gone.Sub(last)
	drained.rate = float64(accepted-1) / last.Sub(first).Seconds()
}

// queueUp freezes the scheduler, starts a maintenance of every node and waits until all of them want a slot.
func (b *massDrainer) queueUp(ctx context.Context, requestor string) {
	noError(poll(ctx, "the scheduler to be frozen", func() (bool, error) {
		err := b.updateScheduler(ctx, api.UpdateFreeze, api.FreezeRequest{By: "bench", Reason: "all at once"})
		var notFound *serviceerror.NotFound // not started yet
		if errors.As(err, &notFound) {
			return false, nil
		}
		return err == nil, err
	}))
	noError(inParallel(ctx, b.nodes, slots, func(ctx context.Context, i int) error {
		return b.start(ctx, world.NodeName(i), requestor, massDrain)
	}))
	noError(poll(ctx, "all requests for a slot", func() (bool, error) {
		state, err := b.stateOf(ctx, api.SchedulerID(""), api.StateRequest{Limit: 1})
		return state.PendingAll == b.nodes, err
	}))
	// It still tells them why they wait, which is a part of the start.
	noError(b.untilQuiet(ctx, quietFor, api.SchedulerID("")))
}

// quietFor is how long nothing happens to a workflow that has nothing to do.
const quietFor = 2 * time.Second

// finish is every requestor's word that it is done; it returns when all maintenances have ended.
func (b *bench) finish(ctx context.Context, nodes int, requestor string) error {
	return inParallel(ctx, nodes, slots, func(ctx context.Context, i int) error {
		id := api.MaintenanceID("", world.NodeName(i), requestor)
		if err := b.Temporal.Client.SignalWorkflow(ctx, id, "", api.MsgDone, nil); err != nil {
			return err
		}
		return b.Temporal.Client.GetWorkflow(ctx, id, "").Get(ctx, nil)
	})
}

func (b *bench) updateScheduler(ctx context.Context, update string, arg any) error {
	handle, err := b.Temporal.Client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: api.SchedulerID(""), UpdateName: update, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, nil)
}
