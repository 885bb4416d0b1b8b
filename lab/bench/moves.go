package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/witness"
	"drydock.dev/drydock/lab/world"
)

const (
	// movesNodes are in the cluster; a case cordons those that it does not need.
	movesNodes = 50
	// movesAtOnce are out of service at a time.
	movesAtOnce = 2
	// movesApps are the Deployments of the pods, of which movesRequest lets twelve on a node.
	movesApps    = 10
	movesRequest = "2500m"
	// movesSettle bounds the wait for the pods to run.
	movesSettle = 2 * time.Minute
)

// movesCase is a plan over the first nodes of a cluster.
type movesCase struct {
	name        string
	nodes, pods int
	// outside are further nodes of the cluster, which the plan leaves alone.
	outside int
	// spread has the pods spread over nodes and zones.
	spread bool
}

// movesWithDefaults are the cases where kube-scheduler scores as it does by default, movesPacked those where it fills nodes up.
var (
	movesWithDefaults = []movesCase{
		{name: "default scoring, 20 nodes, 160 pods", nodes: 20, pods: 160},
		{name: "topology spread, 20 nodes, 160 pods", nodes: 20, pods: 160, spread: true},
		{name: "default scoring, 20 of 30 nodes, 240 pods", nodes: 20, pods: 240, outside: 10},
	}
	movesPacked = []movesCase{
		{name: "bin packing, 20 nodes, 160 pods", nodes: 20, pods: 160},
		{name: "bin packing, 50 nodes, 500 pods", nodes: 50, pods: 500},
		{name: "bin packing, 20 of 30 nodes, 240 pods", nodes: 20, pods: 240, outside: 10},
	}
)

func moves(plotName string, cases []movesCase) func(*bench, context.Context) []Figure {
	return func(b *bench, ctx context.Context) (figures []Figure) {
		shown := plot{title: "How often a pod moves", unit: "times"}
		for i, c := range cases {
			var counted api.PlanResult
			planned := named(c.name+", by a plan", func() float64 {
				moved := b.move(ctx, c, fmt.Sprintf("moves-plan-%d", i), func(ctx context.Context, name string) error {
					_, _, err := b.goesOver(ctx, c.nodes, func(ctx context.Context) error { return b.startPlan(ctx, name, c.nodes, movesAtOnce, "") })
					return errors.Join(err, b.Temporal.Client.GetWorkflow(ctx, api.PlanID("", name), "").Get(ctx, &counted))
				})
				if seen := int(math.Round(moved * float64(c.pods))); counted.Moves.Ended != seen {
					noError(fmt.Errorf("the plan counts %+v, and %d pods moved", counted.Moves, seen))
				}
				return moved
			})
			s := &shuttle{bench: b}
			looped := named(c.name+", by kubectl", func() float64 {
				return b.move(ctx, c, fmt.Sprintf("moves-kubectl-%d", i), func(ctx context.Context, _ string) error {
					return inParallel(ctx, c.nodes, movesAtOnce, func(ctx context.Context, i int) error {
						_, err := s.kubectl(ctx, world.NodeName(i))
						return errors.Join(err, s.cordon(ctx, world.NodeName(i), false))
					})
				})
			})
			world.Say("%s: each pod moves %.2f times by a plan (as it says, %s), %.2f times by kubectl drain", c.name, planned, counted.Moves, looped)
			figures = append(figures,
				atMost("moves of a pod by a plan, "+c.name, planned, "times", 1.3),
				report("- by a loop of kubectl drain", looped, "times"))
			shown.add("by a plan", c.name, planned)
			shown.add("by a loop of kubectl drain", c.name, looped)
		}
		noError(shown.draw(plotName))
		return figures
	}
}

// move runs the pods of a case, has its nodes drained, and returns how often a pod moved.
func (b *bench) move(ctx context.Context, c movesCase, name string, drain func(ctx context.Context, name string) error) float64 {
	s := &shuttle{bench: b, name: name}
	for i := range movesNodes {
		noError(s.cordon(ctx, world.NodeName(i), i >= c.nodes+c.outside))
	}
	in := world.Namespace{Kube: b.Cluster.Client, Name: name}
	noError(in.Create(ctx))
	for i := range movesApps {
		noError(in.Deployment(ctx, c.template(fmt.Sprintf("%s-%d", name, i)), int32(c.pods/movesApps)))
	}
	noError(in.Runs(ctx, movesSettle, c.pods))
	var mu sync.Mutex
	all := map[types.UID]bool{}
	var broken error
	watching, stop := context.WithCancel(ctx)
	defer stop()
	err := witness.Pods(watching, b.Cluster.Client, name, func(_ watch.EventType, p *corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		all[p.UID] = true
	}, func(err error) {
		mu.Lock()
		defer mu.Unlock()
		broken = err
	})
	noError(errors.Join(err, drain(ctx, name), in.Runs(ctx, movesSettle, c.pods)))
	mu.Lock()
	defer mu.Unlock()
	noError(errors.Join(broken, s.end(ctx)))
	return float64(len(all)-c.pods) / float64(c.pods)
}

// template is that of the pods of one Deployment.
func (c movesCase) template(app string) corev1.PodTemplateSpec {
	pods := world.Pods(app)
	pods.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(movesRequest)}
	if c.spread {
		own := &metav1.LabelSelector{MatchLabels: pods.Labels}
		pods.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own},
			{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: own},
		}
	}
	return pods
}
