package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/profile/state"
)

const (
	// profileRequeue is how often nodes are evaluated where nothing happens.
	profileRequeue = 10 * time.Second
	// profileMoves are the nodes whose way into a state is timed, one after the other.
	profileMoves = 10
	neededMark   = "bench.drydock.dev/needed"
	approvedMark = "bench.drydock.dev/approved"
)

// profilesFile has two profiles, of which each node has both. Their checks look at all nodes, and at Leases.
const profilesFile = `intervals: {requeue: %s}
instances:
  check:
  - {type: hasAnnotation, name: needed, config: {key: ` + neededMark + `, value: "true"}}
  - {type: hasAnnotation, name: approved, config: {key: ` + approvedMark + `, value: "true"}}
  - {type: maxMaintenance, name: max, config: {max: 5}}
  - {type: stagger, name: slowly, config: {duration: 1s, leaseName: bench, leaseNamespace: default, parallel: 2}}
  - {type: condition, name: ready, config: {type: Ready, status: "True"}}
  trigger:
  - {type: eviction, name: drain, config: {action: drain}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
profiles:
- name: system
  operational: {transitions: [{check: needed && ready, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: max && approved && slowly, trigger: drain, next: in-maintenance}]}
  in-maintenance: {transitions: [{check: "!needed", trigger: uncordon, next: operational}]}
- name: firmware
  operational: {transitions: [{check: "!ready && approved", next: maintenance-required}]}
  maintenance-required: {transitions: [{check: max && slowly, next: in-maintenance}]}
  in-maintenance: {transitions: [{check: ready, next: operational}]}
`

// profiled measures profiles.
type profiled struct{ *bench }

// profiledNodes are the flags of a cluster whose nodes are large, and have both profiles.
func profiledNodes() []string {
	return append(largeNodes(), "--node-labels", state.ProfileLabel+"=system--firmware")
}

// measureProfiles is what the evaluation of a large cluster costs, and one transition in it.
func (b *bench) measureProfiles(ctx context.Context) []Figure {
	nodes := b.sizes.memoryNodes
	world.Say("profiles: a cluster of %d nodes, which takes some minutes", nodes)
	b.enlarge(ctx, nodes, 0)
	file := filepath.Join(b.Dir, "profiles.yaml")
	noError(os.WriteFile(file, fmt.Appendf(nil, profilesFile, profileRequeue), 0o600))
	p := profiled{b}
	defer func() {
		if b.worker != nil {
			b.note(b.worker.Stop(time.Minute))
		}
	}()
	first := p.first(ctx, nodes, fmt.Sprintf("profiles: {file: %q}\n", file))
	idle := p.rests(ctx, b.sizes.healthIdle)
	moves := p.moves(ctx)
	_, peak := resident(b.worker)
	return slices.Concat(first, idle, moves, []Figure{atMost("worker's peak resident memory", peak, "MB", 200)})
}

// first is the evaluation after which all nodes show their state.
func (p profiled) first(ctx context.Context, nodes int, config string) []Figure {
	shown := look(ctx, p.Cluster.Client.CoreV1().RESTClient(), "nodes", "", &corev1.Node{}, showsState(state.Operational))
	mark := must(p.audit.mark())
	p.worker = must(p.startWorker(ctx, "worker", config))
	began := time.Now()
	ended := must(shown.until(ctx, "all nodes to show their state", func(_, operational int) bool { return operational == nodes }))
	noError(p.untilQuiet(ctx, atRest, api.ProfilesID("")))
	requests, events := p.audit.requests(theWorker, mark)
	return []Figure{
		report(fmt.Sprintf("profiles: from a ready worker until %d nodes show their state first", nodes), ended.Sub(began).Seconds(), "s"),
		report("- API requests for it", float64(requests+events), "requests"),
	}
}

// rests is what evaluations cost while nothing happens.
func (p profiled) rests(ctx context.Context, period time.Duration) []Figure {
	world.Say("profiles: nothing happens for %s", period)
	before := p.spending(ctx)
	noError(world.Sleep(ctx, period))
	after := p.spending(ctx)
	requests := map[string]int{}
	noError(p.audit.each(before.mark, func(r request) {
		if r.by(theWorker) && r.Verb != "watch" {
			requests[r.Object.Resource]++
		}
	}))
	now, _ := resident(p.worker)
	all := 0
	for resource, n := range requests {
		world.Say("profiles: %d requests about %s", n, resource)
		all += n
	}
	rounds := float64(period) / float64(profileRequeue)
	hourly := (after.actions + after.beats - before.actions - before.beats) * float64(time.Hour) / float64(period)
	return []Figure{
		report(fmt.Sprintf("profiles: CPU time of a worker for an evaluation, every %s", profileRequeue), 1000*(after.cpu-before.cpu)/rounds, "ms"),
		report("API requests of an evaluation", float64(all)/rounds, "requests"),
		atMost("billable actions while nothing happens, an hour", hourly, "actions", 120),
		report("worker's resident memory then", now, "MB"),
	}
}

// outlay is what was spent so far.
type outlay struct {
	actions, beats, cpu float64
	mark                int64
}

func (p profiled) spending(ctx context.Context) outlay {
	return outlay{
		actions: float64(p.history(ctx, api.ProfilesID("")).actions), beats: p.beats(ctx), cpu: cpuSeconds(p.worker.PID()), mark: must(p.audit.mark()),
	}
}

// moves are what transitions cost, and how long the first of them takes from what is its cause.
func (p profiled) moves(ctx context.Context) []Figure {
	plain := p.bills(ctx, world.NodeName(0), neededMark, "true", state.Required)
	drained := p.bills(ctx, world.NodeName(0), approvedMark, "true", state.Maintenance)
	var took []time.Duration
	for i := range profileMoves {
		took = append(took, p.turns(ctx, world.NodeName(1+i), neededMark, "true", state.Required))
	}
	return []Figure{
		report(fmt.Sprintf("profiles: from a change of a node to its new state, median of %d", profileMoves), ms(median(took)), "ms"),
		report("- the longest", ms(slices.Max(took)), "ms"),
		atMost("billable actions of a transition", plain, "actions", 12),
		atMost("- of one that drains an empty node", drained, "actions", 12),
	}
}

// bills are the actions that Temporal Cloud bills for a transition of a profile, all that it causes included.
func (p profiled) bills(ctx context.Context, node, mark, value string, to state.State) float64 {
	before := p.history(ctx, api.ProfilesID(""))
	p.turns(ctx, node, mark, value, to)
	ids := []string{api.ProfilesID(""), api.ProfileTransitionID("", "system", node)}
	noError(p.untilQuiet(ctx, atRest, ids...))
	sum := -before.actions
	for _, id := range ids {
		sum += p.history(ctx, id).actions
	}
	return float64(sum)
}

// turns changes a node, and tells how long it takes until the node shows the state that follows.
func (p profiled) turns(ctx context.Context, node, mark, value string, to state.State) time.Duration {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	is := look(ctx, p.Cluster.Client.CoreV1().RESTClient(), "nodes", corev1.LabelHostname+"="+node, &corev1.Node{}, showsState(to))
	must(is.until(ctx, "the node", func(there, _ int) bool { return there == 1 }))
	began := time.Now()
	noError(world.PatchNode(ctx, p.Cluster.Client, node, `{"metadata":{"annotations":{%q:%q}}}`, mark, value))
	ended := must(is.until(ctx, node+" to be "+string(to), func(_, wished int) bool { return wished == 1 }))
	return ended.Sub(began)
}
