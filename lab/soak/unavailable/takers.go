package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/profile/state"
)

const (
	checkName     = "ill"
	planName      = "rolls"
	planRequestor = "roller"
	takenLabel    = "unavailable.drydock.dev/node"
	takenBy       = "all"
	// broken is the condition by which a node is ill that is Ready all the same: it is unavailable only once it is taken out.
	broken = "UnavailableTest"
	// neededMark has the profile take a node out.
	neededMark  = "unavailable.drydock.dev/needed"
	profileName = "takes"
)

// profilesFile has no limit of its own: what keeps it back is the scheduler's.
const profilesFile = `intervals: {requeue: 5s}
instances:
  check:
  - {type: hasAnnotation, name: needed, config: {key: ` + neededMark + `, value: "true"}}
  trigger:
  - {type: eviction, name: cordon, config: {action: cordon}}
  - {type: eviction, name: uncordon, config: {action: uncordon}}
profiles:
- name: ` + profileName + `
  operational: {transitions: [{check: needed, next: maintenance-required}]}
  maintenance-required: {transitions: [{check: needed, next: in-maintenance}]}
  in-maintenance: {enter: cordon, transitions: [{check: "!needed", trigger: uncordon, next: operational}]}
`

// takers take nodes out of service, and end that.
type takers struct {
	*world.World
	judge *judge
	nodes int
}

// prepare gives all nodes to the profile and to the health check.
func (t *takers) prepare(ctx context.Context) error {
	for i := range t.nodes {
		if err := world.PatchNode(ctx, t.Cluster.Client, world.NodeName(i), `{"metadata":{"labels":{%q:%q,%q:%q}}}`,
			state.ProfileLabel, profileName, takenLabel, takenBy); err != nil {
			return err
		}
	}
	return nil
}

// begin starts a workflow, unless one of the ID runs. Temporal may be away.
func (t *takers) begin(ctx context.Context, id, kind, input string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := world.Begin(ctx, t.Temporal.Client, id, kind, input); err != nil {
		world.Say("%s was not started: %v", id, err)
	}
}

func (t *takers) maintain(ctx context.Context, dice *rand.Rand) {
	node, requestor := world.NodeName(dice.IntN(t.nodes)), []string{"sre", "patcher"}[dice.IntN(2)]
	t.begin(ctx, api.MaintenanceID("", node, requestor), api.NodeMaintenanceType,
		fmt.Sprintf(`{"node":%q,"requestor":%q,"readyTimeout":"30s","onReadyTimeout":"release","drain":{"mode":"none"}}`, node, requestor))
}

func (t *takers) roll(ctx context.Context, dice *rand.Rand) {
	nodes, err := json.Marshal([]string{world.NodeName(dice.IntN(t.nodes / 2)), world.NodeName(t.nodes/2 + dice.IntN(t.nodes/2))})
	if err != nil {
		world.Say("%v", err)
		return
	}
	t.begin(ctx, api.PlanID("", planName), api.MaintenancePlanType, fmt.Sprintf(
		`{"nodes":%s,"requestor":%q,"strategy":{"maxParallel":2,"maxFailures":2},"maintenance":{"readyTimeout":"30s","onReadyTimeout":"release","drain":{"mode":"none"}}}`,
		nodes, planRequestor))
}

func (t *takers) need(ctx context.Context, dice *rand.Rand) {
	t.set(ctx, world.NodeName(dice.IntN(t.nodes)), `"true"`)
}

// set changes whether the profile wants a node. What fails is tried again at the next occasion.
func (t *takers) set(ctx context.Context, node, needed string) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := world.PatchNode(ctx, t.Cluster.Client, node, `{"metadata":{"annotations":{%q:%s}}}`, neededMark, needed); err != nil {
		world.Say("node %s was not annotated: %v", node, err)
	}
}

func (t *takers) fallIll(ctx context.Context, dice *rand.Rand) {
	t.ill(ctx, world.NodeName(dice.IntN(t.nodes)), corev1.ConditionTrue)
}

func (t *takers) ill(ctx context.Context, node string, is corev1.ConditionStatus) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := world.SetCondition(ctx, t.Cluster.Client, node, broken, is, time.Now()); err != nil {
		world.Say("node %s does not become ill %s: %v", node, is, err)
	}
}

// serve ends what nodes are out for: work is done, the ill recover, and the profile wants its node no more.
func (t *takers) serve(ctx context.Context) {
	for _, n := range t.judge.nodes() {
		who, kind, err := takerOf(n)
		if err != nil || kind == "" {
			continue
		}
		ready := api.Phase(n.Labels[api.PhaseLabel]) == api.Ready
		switch {
		case kind == byProfile && n.Labels[state.StateLabel] == string(state.Maintenance):
			t.set(ctx, n.Name, "null")
		case kind == byHealthCheck && ready:
			t.ill(ctx, n.Name, corev1.ConditionFalse)
		case kind != byProfile && ready:
			t.tell(ctx, who, api.MsgDone, api.Done{Message: api.Message{By: "unavailable"}})
		}
	}
}

// tell sends a message. One that is lost is sent again a second later.
func (t *takers) tell(ctx context.Context, id, name string, payload any) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := t.Temporal.Client.SignalWorkflow(ctx, id, "", name, payload); err != nil {
		world.Say("%s was not told %s: %v", id, name, err)
	}
}

// finish has nobody want a node any more, and waits until all nodes are back.
func (t *takers) finish(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for i := range t.nodes {
		t.set(ctx, world.NodeName(i), "null")
		t.ill(ctx, world.NodeName(i), corev1.ConditionFalse)
	}
	calm := 0
	for world.Sleep(ctx, time.Second) == nil {
		if t.serve(ctx); len(t.judge.outNow()) > 0 {
			calm = 0
		} else if calm++; calm == 15 && !t.isRunning(ctx, api.PlanID("", planName)) {
			return nil
		}
		calm = min(calm, 14)
	}
	return fmt.Errorf("nodes are not back: %v: %w", t.judge.outNow(), ctx.Err())
}
