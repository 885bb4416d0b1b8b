package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/schedule"
)

const (
	// planNodes are rolled by a plan, planParallel at a time.
	planNodes    = 1000
	planParallel = 50
	// calmSlots are as many as leave the machine time, calmFleet the nodes that go through them.
	calmSlots, calmFleet = 2, 30
	// waitsFor is how long a plan is watched that waits for its window.
	waitsFor = 30 * time.Second
)

// planConfig is the configuration of a window that does not open while it is measured, and of the slots that plans are
// measured with.
func planConfig() string {
	tomorrow := time.Now().UTC().Add(36 * time.Hour).Weekday().String()[:3]
	return fmt.Sprintf("scheduler: {maxParallel: %d}\nwindows: {later: {days: [%s], from: \"00:00\", to: \"01:00\", timezone: UTC}}\n",
		planParallel, map[string]string{"Mon": "mon", "Tue": "tue", "Wed": "wed", "Thu": "thu", "Fri": "fri", "Sat": "sat", "Sun": "sun"}[tomorrow])
}

func (b *bench) startPlan(ctx context.Context, name string, nodes, parallel int, fields string) error {
	list, err := nodeList(nodes)
	if err != nil {
		return err
	}
	return world.Begin(ctx, b.Temporal.Client, api.PlanID("", name), api.MaintenancePlanType,
		fmt.Sprintf(`{"nodes":%s,"requestor":"bench","strategy":{"maxParallel":%d}%s}`, list, parallel, fields))
}

// nodeList are the names of the first nodes as JSON.
func nodeList(nodes int) (json.RawMessage, error) {
	names := make([]string, nodes)
	for i := range names {
		names[i] = world.NodeName(i)
	}
	return json.Marshal(names)
}

// planHandOver is handOver, where a plan begins one node when the one before is back: with the slots of handOver, which keep
// a small machine busy, and with few, which do not.
func (b *bench) planHandOver(ctx context.Context) []Figure {
	busy := b.handOversOf(ctx, "handover", fleet, slots)
	calm := b.handOversOf(ctx, "handover-calm", calmFleet, calmSlots)
	return []Figure{
		atMost("hand-over inside a plan, median", ms(busy[len(busy)/2]), "ms", 300),
		report("hand-over inside a plan, p95", ms(busy[len(busy)*95/100]), "ms"),
		report(fmt.Sprintf("- with maxParallel %d, median", calmSlots), ms(calm[len(calm)/2]), "ms"),
	}
}

// handOversOf are the hand-overs of a plan over so many empty nodes, sorted.
func (b *bench) handOversOf(ctx context.Context, name string, nodes, parallel int) []time.Duration {
	world.Say("hand-over inside a plan: %d empty nodes, maxParallel %d", nodes, parallel)
	seen, _, err := b.goesOver(ctx, nodes, func(ctx context.Context) error { return b.startPlan(ctx, name, nodes, parallel, "") })
	if err != nil {
		noError(errors.Join(err, unfinished(b.Temporal)))
	}
	return must(seen.handOvers(parallel))
}

// planRate compares a plan over many empty nodes with the same maintenances started all at once.
func (b *bench) planRate(ctx context.Context) []Figure {
	rate := func(what string, start func(ctx context.Context) error) float64 {
		world.Say("%d empty nodes, %d at a time: %s", planNodes, planParallel, what)
		_, took, err := b.goesOver(ctx, planNodes, start)
		noError(err)
		perSecond := planNodes / took.Seconds()
		world.Say("%.1f nodes/s", perSecond)
		noError(b.untilIdle(ctx, api.SchedulerID("")))
		return perSecond
	}
	alone := rate("without a plan", func(ctx context.Context) error { return b.startAll(ctx, planNodes) })
	planned := rate("by a plan", func(ctx context.Context) error { return b.startPlan(ctx, "rate", planNodes, planParallel, "") })
	return []Figure{
		report("maintenances without a plan", alone, "nodes/s"),
		report("maintenances by a plan", planned, "nodes/s"),
		atLeast("by a plan / without", planned/alone, "ratio", 0.7),
	}
}

// planWaits counts what a plan costs while it waits for its window.
func (b *bench) planWaits(ctx context.Context) []Figure {
	world.Say("a plan that waits for its window, for %s", waitsFor)
	noError(b.startPlan(ctx, "waits", planNodes, planParallel, `,"windows":["later"]`))
	id := api.MaintenanceID("", world.NodeName(0), "bench")
	noError(poll(ctx, "the window to be waited for", func() (bool, error) {
		status, err := world.Ask[api.Status](ctx, b.Temporal.Client, id, api.QueryStatus)
		return err == nil && len(status.WaitingFor) > 0 && status.Slot != nil, nil
	}))
	actions := func() (total int) {
		// All of them have to be idle first: those that were begun are still being told why they wait.
		for _, id := range []string{api.PlanID("", "waits"), api.SchedulerID(""), id} {
			total += b.history(ctx, id).actions
		}
		return total
	}
	noError(world.Sleep(ctx, waitsFor)) // what the beginning of it costs is over
	before := actions()
	noError(world.Sleep(ctx, waitsFor))
	after := actions()
	noError(b.Temporal.Client.SignalWorkflow(ctx, api.PlanID("", "waits"), "", api.MsgCancel, nil))
	return []Figure{atMost("billable actions of a plan that waits for its window", float64(after-before)*float64(time.Hour/waitsFor), "actions/h", 0)}
}

// planSize is what the largest plan carries from run to run, and how long it takes to decide.
func (b *bench) planSize(context.Context) []Figure {
	var nodes []plan.Node
	now := time.Now()
	for i := range plan.MaxNodes {
		n := plan.Node{Facts: plan.Facts{
			Name: fmt.Sprintf("ip-10-%d-%d-%d.eu-central-1.compute.internal", i%7, i/250, i%250), Zone: fmt.Sprintf("eu-central-1%c", 'a'+i%3),
		}, Since: now.Unix() - int64(i)}
		switch {
		case i%300 == 0:
			n.State, n.RunID, n.Tries = plan.Running, uuid.NewString(), 1
		case i%2 == 0:
			n.State, n.Tries = plan.Done, 1
		}
		nodes = append(nodes, n)
	}
	strategy := plan.Strategy{
		Type: plan.Rolling, MaxParallel: schedule.Percent(2), MaxFailures: schedule.Percent(5), Order: plan.ByZone, OnBlocked: plan.WaitBlocked,
	}
	plan.Sort(strategy.Order, nodes)
	var took []time.Duration
	for range decideRounds {
		began := time.Now()
		plan.Decide(strategy, nodes, plan.Progress{}, now)
		took = append(took, time.Since(began))
	}
	packed := must(api.Pack(nodes))
	return []Figure{
		atMost(fmt.Sprintf("decision of a plan of %d nodes, median", plan.MaxNodes), ms(median(took)), "ms", 50),
		atMost(fmt.Sprintf("nodes of a plan of %d as carried", plan.MaxNodes), float64(len(packed))/(1<<20), "MB", 1.5),
	}
}
