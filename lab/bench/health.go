package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/world"
)

const (
	// healthNodes are checked, of which healthIll fall ill within healthSpread, and healthMost may be at a time.
	healthNodes, healthIll, healthMost = 2000, 200, 150
	healthSpread                       = 10 * time.Second
	// healthSteady fall ill one a second.
	healthSteady = 60
	// healthFor is how long a node is ill before it is remediated.
	healthFor = 5 * time.Second
	// healthChecks are idle while what they cost is counted. The watch of each sends at most healthBeats heartbeats an hour.
	healthChecks, healthBeats = 10, 20
	// healthShard is the label by which these share out the nodes.
	healthShard = "bench.drydock.dev/shard"
	healthGroup = "bench.drydock.dev"
	// healthTemplate is the name of the template that objects are made from, in the namespace default.
	healthTemplate = "bench"
)

// wards measure health checks.
type wards struct {
	*bench
	objects *remediations
}

// measureHealth is how many remediations begin where many nodes fall ill at once, how long after the end of its duration each does, and
// what checks cost while all is well.
func (b *bench) measureHealth(ctx context.Context) []Figure {
	h := wardOf(ctx, b)
	return slices.Concat(h.allowed(ctx), h.delays(ctx), h.idle(ctx, b.sizes.healthIdle))
}

// wardOf prepares the cluster: a remediator that does nothing, whose objects are watched.
func wardOf(ctx context.Context, b *bench) *wards {
	for plural, kind := range map[string]string{"restarts": "Restart", "restarttemplates": "RestartTemplate"} {
		noError(post(ctx, b, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{
			"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[3]s"},
			"spec":{"group":%[3]q,"scope":"Namespaced","names":{"kind":%[2]q,"listKind":"%[2]sList","plural":%[1]q,"singular":%[4]q},
			"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object",
			"x-kubernetes-preserve-unknown-fields":true}}}]}}`, plural, kind, healthGroup, strings.ToLower(kind))))
		noError(poll(ctx, plural+" to be served", func() (bool, error) {
			err := b.Cluster.Client.CoreV1().RESTClient().Get().AbsPath("/apis", healthGroup, "v1", plural).Do(ctx).Error()
			if apierrors.IsNotFound(err) {
				return false, nil
			}
			return err == nil, err
		}))
	}
	noError(post(ctx, b, "/apis/"+healthGroup+"/v1/namespaces/default/restarttemplates", fmt.Sprintf(`{"apiVersion":"%s/v1",
		"kind":"RestartTemplate","metadata":{"name":%q},"spec":{"template":{"spec":{}}}}`, healthGroup, healthTemplate)))
	kube := must(world.Dynamic(b.Cluster.Kubeconfig))
	restarts := schema.GroupVersionResource{Group: healthGroup, Version: "v1", Resource: "restarts"}
	objects := must(watchRemediations(ctx, kube.Resource(restarts).Namespace(metav1.NamespaceDefault)))
	return &wards{bench: b, objects: objects}
}

func post(ctx context.Context, b *bench, path, body string) error {
	err := b.Cluster.Client.CoreV1().RESTClient().Post().AbsPath(path).Body([]byte(body)).SetHeader("Content-Type", "application/json").Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// check starts a check, and waits until it has counted its nodes.
func (b *wards) check(ctx context.Context, name, selector, fields string, nodes int) {
	input := fmt.Sprintf(`{"selector":%s,"unhealthyConditions":[{"type":"Broken","status":"True","duration":%q}],%s,
		"remediationTemplate":{"apiVersion":"%s/v1","kind":"RestartTemplate","namespace":"default","name":%q}}`,
		selector, healthFor, fields, healthGroup, healthTemplate)
	noError(world.Begin(ctx, b.Temporal.Client, api.HealthCheckID("", name), api.HealthCheckType, input))
	b.untilCheck(ctx, name, "to have counted its nodes", func(s api.HealthStatus) bool { return s.ObservedNodes == nodes })
}

func (b *wards) untilCheck(ctx context.Context, name, what string, is func(api.HealthStatus) bool) {
	noError(poll(ctx, "health check "+name+" "+what, func() (bool, error) {
		status, err := world.Ask[api.HealthStatus](ctx, b.Temporal.Client, api.HealthCheckID("", name), api.QueryStatus, api.HealthStatusRequest{Limit: 1})
		return err == nil && is(status), nil // it may not have begun yet
	}))
}

// end waits until all nodes of a check are well, and removes it.
func (b *wards) end(ctx context.Context, name string) {
	b.untilCheck(ctx, name, "to be over", func(s api.HealthStatus) bool {
		return s.HealthyNodes == s.ObservedNodes && s.Remediating == 0
	})
	noError(b.Temporal.Client.SignalWorkflow(ctx, api.HealthCheckID("", name), "", api.MsgRemove, nil))
	noError(b.Temporal.Client.GetWorkflow(ctx, api.HealthCheckID("", name), "").Get(ctx, nil))
}

// everyNode selects all nodes.
const everyNode = `{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"Exists"}]}`

// breaks has nodes fall ill one after the other within a time, and returns since when each is.
func (b *wards) breaks(ctx context.Context, from, to int, within time.Duration) (map[string]time.Time, error) {
	var mu sync.Mutex
	since := map[string]time.Time{}
	began := time.Now()
	return since, inParallel(ctx, to-from, requestsAtOnce, func(ctx context.Context, i int) error {
		if err := world.Sleep(ctx, time.Until(began.Add(within*time.Duration(i)/time.Duration(to-from)))); err != nil {
			return err
		}
		at, err := b.condition(ctx, world.NodeName(from+i), "True")
		mu.Lock()
		defer mu.Unlock()
		since[world.NodeName(from+i)] = at
		return err
	})
}

func (b *wards) mends(ctx context.Context, nodes []string) error {
	return inParallel(ctx, len(nodes), requestsAtOnce, func(ctx context.Context, i int) error {
		_, err := b.condition(ctx, nodes[i], "False")
		return err
	})
}

func (b *wards) condition(ctx context.Context, node string, status corev1.ConditionStatus) (time.Time, error) {
	since := time.Now().Truncate(time.Second)
	return since, world.SetCondition(ctx, b.Cluster.Client, node, "Broken", status, since)
}

// allowed has more nodes fall ill than may be: remediations begin until there are too many, go on once there are as few as may be,
// and at no moment there is one more.
func (b *wards) allowed(ctx context.Context) []Figure {
	const name = "allowed"
	world.Say("health: %d of %d nodes fall ill within %s, maxUnhealthy %d", healthIll, healthNodes, healthSpread, healthMost)
	b.check(ctx, name, everyNode, fmt.Sprintf(`"maxUnhealthy":%d`, healthMost), healthNodes)
	since := must(b.breaks(ctx, 0, healthIll, healthSpread))
	b.untilCheck(ctx, name, "to know of all", func(s api.HealthStatus) bool { return s.Unhealthy == healthIll })
	inRush := b.objects.there()
	// As many recover as are too many: of those that nobody remediates.
	var spared []string
	for i := healthIll - 1; i >= 0 && len(spared) < healthIll-healthMost; i-- {
		if _, begun := inRush[world.NodeName(i)]; !begun {
			spared = append(spared, world.NodeName(i))
		}
	}
	noError(b.mends(ctx, spared))
	noError(b.objects.until(ctx, healthMost))
	// One more is one too many.
	must(b.condition(ctx, spared[0], "True"))
	b.untilCheck(ctx, name, "to know of one more", func(s api.HealthStatus) bool { return s.Unhealthy == healthMost+1 && s.Blocked != "" })
	most := b.objects.most()
	for node := range since {
		spared = append(spared, node)
	}
	noError(b.mends(ctx, spared))
	noError(b.objects.until(ctx, 0))
	b.end(ctx, name)
	return []Figure{
		report("remediations begun while nodes fell ill", float64(len(inRush)), "remediations"),
		atMost(fmt.Sprintf("most remediations at any moment, %d allowed", healthMost), float64(most), "remediations", healthMost),
		atLeast("- and as many as are allowed", float64(most), "remediations", healthMost),
	}
}

// delays are how soon remediations begin: of nodes that fall ill one after the other, and of many that do so at once, of which
// Temporal and the API server, both on this machine, begin only so many a second.
func (b *wards) delays(ctx context.Context) []Figure {
	steady := b.begins(ctx, "steady", healthSteady, healthSteady*time.Second)
	rush := b.begins(ctx, "rush", healthIll, healthSpread)
	const to = "from the end of a duration to the remediation object"
	return []Figure{
		report(to+", one node a second, median", ms(steady.median()), "ms"),
		atMost(to+", one node a second, p99", ms(steady.p99()), "ms", 2000),
		report(fmt.Sprintf("%s, %d nodes in %s, median", to, healthIll, healthSpread), ms(rush.median()), "ms"),
		report(fmt.Sprintf("%s, %d nodes in %s, p99", to, healthIll, healthSpread), ms(rush.p99()), "ms"),
		report(fmt.Sprintf("from the recovery of all %d to the last object's end", healthIll), ms(rush.ended), "ms"),
	}
}

// begun is how long after the second in which the duration of each node's condition ended its remediation object was seen, in order,
// and how long after their recovery the last of them was gone.
type begun struct {
	delays []time.Duration
	ended  time.Duration
}

func (b begun) median() time.Duration { return b.delays[len(b.delays)/2] }
func (b begun) p99() time.Duration    { return b.delays[len(b.delays)*99/100] }

// begins has so many nodes fall ill one after the other within a time, and all of them remediated.
func (b *wards) begins(ctx context.Context, name string, ill int, within time.Duration) begun {
	var result begun
	world.Say("health: %d of %d nodes fall ill within %s, and all are remediated", ill, healthNodes, within)
	b.check(ctx, name, everyNode, `"maxUnhealthy":"100%"`, healthNodes)
	since := must(b.breaks(ctx, healthIll, healthIll+ill, within))
	noError(b.objects.until(ctx, ill))
	var nodes []string
	for node, seen := range b.objects.there() {
		at, is := since[node]
		if !is {
			noError(fmt.Errorf("node %s was remediated, and is not ill", node))
		}
		result.delays, nodes = append(result.delays, seen.Sub(at.Add(healthFor))), append(nodes, node)
	}
	slices.Sort(result.delays)
	if result.delays[0] < 0 {
		noError(fmt.Errorf("a remediation began %s before its node's duration was over", -result.delays[0]))
	}
	noError(b.mends(ctx, nodes))
	recovered := time.Now()
	noError(b.objects.until(ctx, 0))
	result.ended = time.Since(recovered)
	b.end(ctx, name)
	return result
}

// idle is what checks cost while all is well, scaled to an hour.
func (b *wards) idle(ctx context.Context, period time.Duration) []Figure {
	b.shards(ctx, healthNodes)
	var ids []string
	for i := range healthChecks {
		ids = append(ids, api.HealthCheckID("", shard(i)))
	}
	spent := func() (actions, beats float64) {
		for _, id := range ids {
			actions += float64(b.history(ctx, id).actions)
		}
		return actions, b.beats(ctx)
	}
	// What the checks said when they began is over once nothing is told any more.
	noError(b.untilQuiet(ctx, atRest, ids...))
	world.Say("health: %d checks of %d nodes, all of them well, for %s", healthChecks, healthNodes, period)
	actions, beats := spent()
	noError(world.Sleep(ctx, period))
	after, beatsAfter := spent()
	hourly := func(n float64) float64 { return n * float64(time.Hour) / float64(period) }
	return []Figure{
		report(fmt.Sprintf("actions in histories of %d idle checks, an hour", healthChecks), hourly(after-actions), "actions"),
		report("heartbeats beside them, an hour", hourly(beatsAfter-beats), "heartbeats"),
		atMost("billable actions of idle checks, an hour", hourly(after-actions+beatsAfter-beats), "actions", healthChecks*healthBeats),
	}
}

// shards starts the checks that share out the nodes.
func (b *wards) shards(ctx context.Context, nodes int) {
	noError(inParallel(ctx, nodes, requestsAtOnce, func(ctx context.Context, i int) error {
		return world.PatchNode(ctx, b.Cluster.Client, world.NodeName(i), `{"metadata":{"labels":{%q:%q}}}`, healthShard, shard(i%healthChecks))
	}))
	for i := range healthChecks {
		selector := fmt.Sprintf(`{"matchLabels":{%q:%q}}`, healthShard, shard(i))
		b.check(ctx, shard(i), selector, `"maxUnhealthy":"100%"`, nodes/healthChecks)
	}
}

func shard(i int) string { return fmt.Sprintf("shard-%d", i) }

// atRest is for how long nothing happens to health checks and profiles that are at rest.
const atRest = 15 * time.Second
