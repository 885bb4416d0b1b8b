package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

const (
	// lockstepTiers are those of a plan in lockstep: pods that are pinned, then those of the DaemonSet. Others would have no
	// node to move to under their budget.
	lockstepTiers = `[{"podType":"Default","podPriority":1000,"podSelector":"app in (web-1,web-2)"},{"podType":"DaemonSet","podPriority":1000}]`
	// lockstepPods is how many pods are in them.
	lockstepPods = 4
	// sharedMaintenance is what of wholeMaintenance plans can share.
	sharedMaintenance = `"hooks":{"beforeCordon":["beside","before-cordon"],"beforeRelease":["before-release"]},"validation":{"checks":["fit"]}`
	// repeatsWithin bounds a run in which plans have to tell a new lockstep by themselves what they intend.
	repeatsWithin = 10 * time.Minute
)

// hooks are those that a maintenance names: a node that plans share is drained several times.
func (m *maintained) hooks() []string {
	switch {
	case !m.whole():
		return nil
	case m.requestor == api.PlansRequestor:
		return slices.DeleteFunc(slices.Clone(hookNames), func(name string) bool { return name == "after-drain" })
	default:
		return hookNames
	}
}

// canHappen reports whether there is something to which the fault can happen: a lockstep runs once a plan has told it something.
func (c cell) canHappen() bool {
	switch {
	case c.step.calls != "" || c.kind.onCaller():
		return c.step.calls != "" && c.canHappenToCallers()
	case c.step.objects || c.kind.onObjects():
		return c.canHappenToObjects()
	case c.step.profile != "" && !c.kind.onHealth():
		return c.canHappenToProfiles()
	case c.kind.onProfiles():
		return false
	}
	if c.step.heals != "" || c.kind.onHealth() {
		return c.canHappenToHealth()
	}
	if c.kind != resetLockstep && c.kind != terminateLockstep {
		return true
	}
	early := []string{"await-plan-nodes", "send-intent", "plan-intent"}
	if c.kind == resetLockstep && c.step.name == "plan-intent" {
		return false // it has done nothing yet to which it could go back
	}
	return c.step.plan == together && (c.when == after || !slices.Contains(early, c.step.name))
}

// leadTogether has a plan drain the nodes in lockstep, completes it when it says that they are drained, and waits for the
// ends of their maintenances.
func (a *attempt) leadTogether(ctx context.Context) error {
	limit := endsWithin
	if a.cell.kind == terminateLockstep {
		limit = repeatsWithin
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	nodes, err := json.Marshal(a.nodes)
	if err != nil {
		return err
	}
	var all []*maintained
	for _, node := range a.nodes {
		all = append(all, a.expect(node, api.PlansRequestor))
	}
	err = a.start(ctx, fmt.Sprintf(`{"nodes":%s,"strategy":{"type":"allAtOnce"},"stage":"Drain","drainPlan":{"tiers":%s,"include":[]},"maintenance":{%s}}`,
		nodes, lockstepTiers, sharedMaintenance))
	if err != nil {
		return err
	}
	var said time.Time
	problems := []error{world.Eventually(ctx, limit, "the plan has completed", func() error {
		if time.Since(said) > doneAgain && a.complete(ctx) {
			said = time.Now()
		}
		return a.hasCompleted(ctx)
	})}
	for _, m := range all {
		problems = append(problems, a.untilEnded(ctx, m))
	}
	return errors.Join(problems...)
}

// complete sets the plan's last stage where its nodes are drained, and reports whether it did.
func (a *attempt) complete(ctx context.Context) bool {
	status, err := a.planStatus(ctx)
	if err != nil || status.Stages == nil || status.Stages.Stage != api.StageDrain || !status.Stages.Drained.Status {
		return false
	}
	return a.temporal.Client.SignalWorkflow(ctx, a.planID(), "", api.MsgSetStage, api.SetStage{Stage: api.StageComplete}) == nil
}
