package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/profile/state"
)

const (
	// blindNodes are the nodes of the benchmark blind, of which each feature has its own.
	blindNodes = 10
	// blindMost is how many seconds may pass from the start of a worker until it has seen what happened while none ran.
	blindMost = 15
	// blindSettled is how long everything has watched when the worker is killed.
	blindSettled = 5 * time.Second
	blindLabel   = "bench.drydock.dev/blind"
)

// The nodes of each feature.
const (
	brokenNode = iota
	profiledNode
	cordonedNode // by a person: it keeps the next one waiting
	waitingNode
	plannedNode
	joiningNode // comes to match the plan
)

// blinded measures how long nobody sees what happens after the only worker was killed.
type blinded struct{ *wards }

// measureBlind kills the only worker, changes a node for each feature, starts the next worker, and times what each feature does.
func (b *bench) measureBlind(ctx context.Context) []Figure {
	file := filepath.Join(b.Dir, "profiles.yaml")
	noError(os.WriteFile(file, fmt.Appendf(nil, profilesFile, time.Hour), 0o600))
	config := fmt.Sprintf("scheduler: {maxParallel: unlimited, groups: [{name: blind, nodeSelector: %s=scheduler, maxUnavailable: 1}]}\nprofiles: {file: %q}\n",
		blindLabel, file)
	first := must(b.startWorker(ctx, "first", config))
	defer first.Kill()
	w := blinded{wardOf(ctx, b)}
	w.prepare(ctx)
	world.Say("blind: the only worker is killed")
	first.Kill()
	w.change(ctx)
	began := time.Now()
	second := must(b.startWorker(ctx, "second", config))
	defer func() { b.note(second.Stop(time.Minute)) }()
	return w.seen(ctx, began)
}

// prepare has every feature watch something.
func (b blinded) prepare(ctx context.Context) {
	for node, label := range map[int]string{
		profiledNode: fmt.Sprintf(`%q:"system"`, state.ProfileLabel), cordonedNode: `"` + blindLabel + `":"scheduler"`,
		waitingNode: `"` + blindLabel + `":"scheduler"`, plannedNode: `"` + blindLabel + `":"plan"`,
	} {
		noError(b.patch(ctx, node, `{"metadata":{"labels":{`+label+`}}}`))
	}
	noError(b.patch(ctx, cordonedNode, `{"spec":{"unschedulable":true}}`))
	b.check(ctx, "blind", everyNode, `"minHealthy":1`, blindNodes)
	noError(world.Begin(ctx, b.Temporal.Client, api.PlanID("", "blind"), api.MaintenancePlanType,
		`{"selector":"`+blindLabel+`=plan","strategy":{"type":"allAtOnce"},"stage":"Cordon"}`))
	noError(b.start(ctx, world.NodeName(waitingNode), "bench", ""))
	must(b.until(ctx, plannedNode, "to be cordoned by its plan", isCordoned))
	must(b.until(ctx, profiledNode, "to show its state", showsState(state.Operational)))
	noError(b.untilPhase(ctx, api.MaintenanceID("", world.NodeName(waitingNode), "bench"), api.Pending))
	noError(world.Sleep(ctx, blindSettled))
}

// change has something happen for every feature while no worker runs. The broken node has been broken for its whole duration then.
func (b blinded) change(ctx context.Context) {
	must(b.condition(ctx, world.NodeName(brokenNode), "True"))
	for node, patch := range map[int]string{
		profiledNode: fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, neededMark),
		cordonedNode: `{"spec":{"unschedulable":false}}`,
		joiningNode:  `{"metadata":{"labels":{"` + blindLabel + `":"plan"}}}`,
	} {
		noError(b.patch(ctx, node, patch))
	}
	noError(world.Sleep(ctx, healthFor+time.Second))
}

// seen times, from the start of a worker, what each feature does about what has happened.
func (b blinded) seen(ctx context.Context, began time.Time) []Figure {
	on := func(node int, what string, is func(*corev1.Node) bool) func(context.Context) (time.Time, error) {
		return func(ctx context.Context) (time.Time, error) { return b.until(ctx, node, what, is) }
	}
	rows := []struct {
		what string
		wait func(context.Context) (time.Time, error)
	}{
		{"health", func(ctx context.Context) (time.Time, error) { return b.remediated(ctx, world.NodeName(brokenNode)) }},
		{"plans", on(joiningNode, "to be cordoned by the plan that it joins", isCordoned)},
		{"profiles", on(profiledNode, "to show its next state", showsState(state.Required))},
		{"scheduler", on(waitingNode, "to be cordoned", isCordoned)},
	}
	figures := make([]Figure, len(rows))
	group, ctx := errgroup.WithContext(ctx)
	for i, row := range rows {
		group.Go(func() error {
			at, err := row.wait(ctx)
			figures[i] = atMost("blindness after kill -9 of the only worker, from the start of the next: "+row.what, at.Sub(began).Seconds(), "s", blindMost)
			return err
		})
	}
	noError(group.Wait())
	return figures
}

// until waits until a node is as wished, and returns when that was seen.
func (b blinded) until(ctx context.Context, node int, what string, is func(*corev1.Node) bool) (time.Time, error) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer stop()
	s := look(ctx, b.Cluster.Client.CoreV1().RESTClient(), "nodes", corev1.LabelHostname+"="+world.NodeName(node), &corev1.Node{}, is)
	return s.until(ctx, world.NodeName(node)+" "+what, func(_, wished int) bool { return wished == 1 })
}

// remediated waits for the remediation object of a node, and returns when it was seen.
func (b blinded) remediated(ctx context.Context, node string) (time.Time, error) {
	ctx, stop := context.WithTimeout(ctx, 3*time.Minute)
	defer stop()
	err := b.objects.until(ctx, 1)
	return b.objects.there()[node], err
}

func (b blinded) patch(ctx context.Context, node int, patch string) error {
	return world.PatchNode(ctx, b.Cluster.Client, world.NodeName(node), "%s", patch)
}

func isCordoned(node *corev1.Node) bool { return node.Spec.Unschedulable }

func showsState(s state.State) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool { return node.Labels[state.StateLabel] == string(s) }
}
