package main

import (
	"context"
	"errors"
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
func (b *bench) measureProfiles(ctx context.Context) (figures []Figure, err error) {
	nodes := b.sizes.memoryNodes
	world.Say("profiles: a cluster of %d nodes, which takes some minutes", nodes)
	if err := b.enlarge(ctx, nodes, 0); err != nil {
		return nil, err
	}
	file := filepath.Join(b.Dir, "profiles.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, profilesFile, profileRequeue), 0o600); err != nil {
		return nil, err
	}
	p := profiled{b}
	first, err := p.first(ctx, nodes, fmt.Sprintf("profiles: {file: %q}\n", file))
	if b.worker != nil {
		defer func() { err = errors.Join(err, b.worker.Stop(time.Minute)) }()
	}
	if err != nil {
		return nil, err
	}
	idle, err := p.rests(ctx, b.sizes.healthIdle)
	if err != nil {
		return first, err
	}
	moves, err := p.moves(ctx)
	if err != nil {
		return slices.Concat(first, idle), err
	}
	_, peak, err := world.Resident(b.worker.PID())
	return slices.Concat(first, idle, moves, []Figure{atMost("worker's peak resident memory", peak, "MB", 200)}), err
}

// first is the evaluation after which all nodes show their state.
func (p profiled) first(ctx context.Context, nodes int, config string) ([]Figure, error) {
	shown := look(ctx, p.Cluster.Client.CoreV1().RESTClient(), "nodes", "", &corev1.Node{}, showsState(state.Operational))
	mark, err := p.audit.mark()
	if err != nil {
		return nil, err
	}
	if p.worker, err = p.startWorker(ctx, "worker", config); err != nil {
		return nil, err
	}
	began := time.Now()
	ended, err := shown.until(ctx, "all nodes to show their state", func(_, operational int) bool { return operational == nodes })
	if err != nil {
		return nil, err
	}
	if err := p.untilQuiet(ctx, atRest, api.ProfilesID("")); err != nil {
		return nil, err
	}
	requests, events, err := p.audit.requests(theWorker, mark)
	return []Figure{
		report(fmt.Sprintf("profiles: from a ready worker until %d nodes show their state first", nodes), ended.Sub(began).Seconds(), "s"),
		report("- API requests for it", float64(requests+events), "requests"),
	}, err
}

// rests is what evaluations cost while nothing happens.
func (p profiled) rests(ctx context.Context, period time.Duration) ([]Figure, error) {
	world.Say("profiles: nothing happens for %s", period)
	before, err := p.spending(ctx)
	if err != nil {
		return nil, err
	}
	if err := world.Sleep(ctx, period); err != nil {
		return nil, err
	}
	after, err := p.spending(ctx)
	if err != nil {
		return nil, err
	}
	requests := map[string]int{}
	if err := p.audit.each(before.mark, func(r request) {
		if r.by(theWorker) && r.Verb != "watch" {
			requests[r.Object.Resource]++
		}
	}); err != nil {
		return nil, err
	}
	now, _, err := world.Resident(p.worker.PID())
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
	}, err
}

// outlay is what was spent so far.
type outlay struct {
	actions, beats, cpu float64
	mark                int64
}

func (p profiled) spending(ctx context.Context) (s outlay, err error) {
	all, err := p.history(ctx, api.ProfilesID(""))
	if err != nil {
		return s, err
	}
	s.actions = float64(all.actions)
	if s.beats, err = p.beats(ctx); err != nil {
		return s, err
	}
	if s.cpu, _, err = processTimes(p.worker.PID()); err != nil {
		return s, err
	}
	s.mark, err = p.audit.mark()
	return s, err
}

// moves are what transitions cost, and how long the first of them takes from what is its cause.
func (p profiled) moves(ctx context.Context) ([]Figure, error) {
	plain, err := p.bills(ctx, world.NodeName(0), neededMark, "true", state.Required)
	if err != nil {
		return nil, err
	}
	drained, err := p.bills(ctx, world.NodeName(0), approvedMark, "true", state.Maintenance)
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for i := range profileMoves {
		one, err := p.turns(ctx, world.NodeName(1+i), neededMark, "true", state.Required)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return []Figure{
		report(fmt.Sprintf("profiles: from a change of a node to its new state, median of %d", profileMoves), ms(median(took)), "ms"),
		report("- the longest", ms(slices.Max(took)), "ms"),
		atMost("billable actions of a transition", plain, "actions", 12),
		atMost("- of one that drains an empty node", drained, "actions", 12),
	}, nil
}

// bills are the actions that Temporal Cloud bills for a transition of a profile, all that it causes included.
func (p profiled) bills(ctx context.Context, node, mark, value string, to state.State) (float64, error) {
	before, err := p.history(ctx, api.ProfilesID(""))
	if err != nil {
		return 0, err
	}
	if _, err := p.turns(ctx, node, mark, value, to); err != nil {
		return 0, err
	}
	ids := []string{api.ProfilesID(""), api.ProfileTransitionID("", "system", node)}
	if err := p.untilQuiet(ctx, atRest, ids...); err != nil {
		return 0, err
	}
	sum := -before.actions
	for _, id := range ids {
		of, err := p.history(ctx, id)
		if err != nil {
			return 0, err
		}
		sum += of.actions
	}
	return float64(sum), nil
}

// turns changes a node, and tells how long it takes until the node shows the state that follows.
func (p profiled) turns(ctx context.Context, node, mark, value string, to state.State) (time.Duration, error) {
	ctx, stop := context.WithTimeout(ctx, 2*time.Minute)
	defer stop()
	is := look(ctx, p.Cluster.Client.CoreV1().RESTClient(), "nodes", corev1.LabelHostname+"="+node, &corev1.Node{}, showsState(to))
	if _, err := is.until(ctx, "the node", func(there, _ int) bool { return there == 1 }); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := world.PatchNode(ctx, p.Cluster.Client, node, `{"metadata":{"annotations":{%q:%q}}}`, mark, value); err != nil {
		return 0, err
	}
	ended, err := is.until(ctx, node+" to be "+string(to), func(_, wished int) bool { return wished == 1 })
	return ended.Sub(began), err
}
