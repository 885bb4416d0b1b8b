package health

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/lab/world"
	"drydock.dev/drydock/rules/health"
)

// TestHealthChecks has a check for each part, all of them served by one watch.
func TestHealthChecks(t *testing.T) {
	var calls atomic.Int64
	power := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { calls.Add(1) }))
	t.Cleanup(power.Close)
	c := newClinic(t, 68, fmt.Sprintf("scheduler: {maxParallel: 5}\nwork: {power-cycle: {http: {url: %q}}}\n", power.URL))
	defer c.parts.Wait()
	c.StartWorker()
	template := c.template(fence, "fence", nil)
	classic := func(more string) string { return `"remediationTemplate":` + template + `,` + more }

	// The longest one first: its minute has begun while the others run.
	c.part("escalation and leases", func(c *clinic) { escalatesByTime(c, template) })
	c.part("the life of a remediation", func(c *clinic) { livesAndEnds(c, template) })
	c.part("a failed step", func(c *clinic) { escalatesAtOnce(c) })
	c.part("too few healthy", func(c *clinic) { tooFewHealthy(c, classic(`"minHealthy":3`)) })
	c.part("a storm", func(c *clinic) { storms(c, classic(`"minHealthy":3,"stormCooldownDuration":"4s"`)) })
	c.part("groups", func(c *clinic) { groups(c, classic(`"minHealthy":1,"groups":{"by":["`+rack+`"],"maxUnhealthy":1}`)) })
	c.part("paused", func(c *clinic) { paused(c, classic(`"minHealthy":1`)) })
	c.part("recovers by itself", func(c *clinic) { recovers(c, template) })
	c.part("by hand", func(c *clinic) { confirmed(c, classic(`"minHealthy":1,"healthyDelay":"-1s"`)) })
	c.part("a delay", func(c *clinic) { delayed(c, classic(`"minHealthy":1,"healthyDelay":"30s"`)) })
	c.part("no template", func(c *clinic) { templateGone(c) })
	c.part("another node", func(c *clinic) { nodeReplaced(c, classic(`"minHealthy":1`)) })
	c.part("two checks", func(c *clinic) { overlaps(c, template) })
	c.part("excluded", func(c *clinic) { excluded(c, classic(`"minHealthy":1`)) })
	c.part("under maintenance", func(c *clinic) { underMaintenance(c, classic(`"minHealthy":1`)) })
	c.part("a repair of our own", func(c *clinic) { repairs(c, &calls) })
	c.part("reset", func(c *clinic) { isReset(c, classic(`"minHealthy":1`)) })
	c.part("terminated", func(c *clinic) { terminated(c, classic(`"minHealthy":1`)) })
}

// livesAndEnds follows one remediation with a real NotReady, from the first moment to the last.
func livesAndEnds(c *clinic, template string) {
	const conditions = `"unhealthyConditions":[{"type":"Ready","status":"False","duration":"3s"},{"type":"Ready","status":"Unknown","duration":"3s"}],`
	g := c.check("life", 3, conditions+`"remediationTemplate":`+template+`,"minHealthy":"51%"`)
	node := g.nodes[1]
	g.well()
	g.Ready(node, false)
	since := transition(g, node)
	g.explains(node, "Ready is False since", "ill after 3s")
	object := g.remediated(fence, node)
	g.finalizer(fence, node, "fence-agents-remediation.medik8s.io/far-finalizer")
	if created := object.GetCreationTimestamp().Time; created.Before(since.Add(3 * time.Second)) {
		g.Errorf("NotReady since %s, remediated at %s", since, created)
	}
	asDocumented(g, object, node)
	status := g.until("it remediates one of three", func(s api.HealthStatus) bool {
		return s.Phase == health.PhaseRemediating && s.ObservedNodes == 3 && s.HealthyNodes == 2 && len(s.UnhealthyNodes) == 1 &&
			len(s.UnhealthyNodes[0].Remediations) == 1
	})
	if r := status.UnhealthyNodes[0].Remediations[0]; r.Resource == nil || r.Resource.UID != string(object.GetUID()) || r.TemplateName != "fence" ||
		status.InFlightRemediations[node].IsZero() {
		g.Errorf("its status says %+v, in flight %v", r, status.InFlightRemediations)
	}
	g.Exits(g.Drydock("health", "list"), 0, "life", "Remediating")
	g.Exits(g.Drydock("health", "status", "life"), 0, node, "Remediating", "2 of 3")
	g.explains(node, "remediating", "no timeout")

	// What it follows from stays as it is.
	refused := func(fields string) {
		g.Exits(g.Drydock("health", "apply", "--file", g.specFile(fields), "--comment", "a test"), 1, "remediat")
	}
	other := strings.ReplaceAll(template, `"name":"fence"`, `"name":"other"`)
	refused(conditions + `"remediationTemplate":` + other + `,"minHealthy":"51%"`)
	refused(conditions + `"maintenance":{},"minHealthy":"51%"`)
	g.Exits(g.Drydock("health", "remove", "life"), 1, "being remediated")
	g.Exits(g.Drydock("health", "apply", "--file", g.specFile(conditions+`"remediationTemplate":`+template+`,"minHealthy":2`)), 0)

	// Another status of the condition begins another duration, and changes nothing for what is at work.
	g.PatchNode(node, `{"metadata":{"labels":{"`+world.NotReadyLabel+`":null}}}`)
	g.until("the node has recovered, and a finalizer holds the object", func(s api.HealthStatus) bool {
		return s.Phase == health.PhaseRemediating && s.HealthyNodes == 2 && len(s.UnhealthyNodes) == 1 && s.UnhealthyNodes[0].ConditionsHealthyTimestamp != nil
	})
	g.Eventually("the object is being deleted", func() error {
		o, err := g.object(fence, node, "", "", nil)
		if err == nil && o.GetDeletionTimestamp() == nil {
			err = errors.New("it is not")
		}
		return err
	})
	if g.lease(node) == nil {
		g.Error("its lease was given back before the object was gone")
	}
	g.finalizer(fence, node, "")
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
	for _, reason := range []string{health.EventDetectedUnhealthy, health.EventRemediationCreated, health.EventRemediationRemoved} {
		if times := g.happened(reason, node); times != 1 {
			g.Errorf("event %s was told %d times", reason, times)
		}
	}
	g.Exits(g.Drydock("health", "remove", "life", "--comment", "done with it"), 0)
	g.Eventually("it has ended", func() error {
		if r := g.Drydock("health", "status", "life"); !strings.Contains(r.Out(), "it was removed") {
			return errors.New(r.Out())
		}
		return nil
	})
}

func transition(g *group, node string) time.Time {
	g.Helper()
	for _, c := range g.Node(node).Status.Conditions {
		if c.Type == "Ready" {
			return c.LastTransitionTime.Time
		}
	}
	g.Fatalf("node %s has no condition Ready", node)
	return time.Time{}
}

// asDocumented checks what is written on a remediation object.
func asDocumented(g *group, o *unstructured.Unstructured, node string) {
	g.Helper()
	if o.GetName() != node {
		g.Errorf("it is called %s", o.GetName())
	}
	want := map[string]string{
		"app.kubernetes.io/part-of": "node-healthcheck-controller", "drydock.dev/health-check": g.name,
	}
	for key, value := range want {
		if o.GetLabels()[key] != value {
			g.Errorf("label %s is %q, want %q", key, o.GetLabels()[key], value)
		}
	}
	want = map[string]string{
		"remediation.medik8s.io/node-name": node, "remediation.medik8s.io/template-name": "fence",
		"drydock.dev/workflow": api.RemediationID(g.Cluster, g.name, node),
	}
	for key, value := range want {
		if o.GetAnnotations()[key] != value {
			g.Errorf("annotation %s is %q, want %q", key, o.GetAnnotations()[key], value)
		}
	}
	if strategy, _, _ := unstructured.NestedString(o.Object, "spec", "strategy"); strategy != "fence" {
		g.Errorf("its spec is %v", o.Object["spec"])
	}
	lease := g.lease(node)
	if lease == nil || *lease.Spec.HolderIdentity != "NodeHealthCheck-"+g.name || *lease.Spec.LeaseDurationSeconds != 660 {
		g.Errorf("the node's lease is %+v", lease)
	}
}

func tooFewHealthy(c *clinic, fields string) {
	g := c.check("few", 4, fields)
	g.breakAtOnce(g.nodes[:2])
	g.until("it knows of two, and nothing begins", func(s api.HealthStatus) bool {
		return s.Phase == health.PhaseEnabled && s.HealthyNodes == 2 && s.Unhealthy == 2 && s.Remediating == 0 && s.Blocked != ""
	})
	g.explains(g.nodes[0], "2 of 4 nodes are healthy, and 3 have to be (minHealthy 3)")
	g.mends(g.nodes[0])
	g.remediated(fence, g.nodes[1])
	if made := g.creations(g.nodes[0]); made != 0 {
		g.Errorf("%d objects were made of the node that recovered", made)
	}
	g.mends(g.nodes[1])
	g.released(fence, g.nodes[1])
	g.well()
}

func storms(c *clinic, fields string) {
	g := c.check("storm", 5, fields)
	g.breakAtOnce(g.nodes[:3])
	g.until("a storm", func(s api.HealthStatus) bool {
		return s.Storm != nil && s.Storm.Cooldown == nil && s.HealthyNodes == 2 && s.Remediating == 0
	})
	g.mends(g.nodes[0])
	status := g.until("the storm cools down", func(s api.HealthStatus) bool { return s.Storm != nil && s.Storm.Over != nil && s.HealthyNodes == 3 })
	over := *status.Storm.Over
	for _, node := range g.nodes[1:3] {
		if created := g.remediated(fence, node).GetCreationTimestamp().Time; created.Before(over.Truncate(time.Second)) {
			g.Errorf("%s was remediated at %s, and the storm is over at %s", node, created, over)
		}
	}
	for _, reason := range []string{health.EventStormStarted, health.EventStormCooldownStarted, health.EventStormEnded} {
		if times := g.happened(reason, ""); times != 1 {
			g.Errorf("event %s was told %d times", reason, times)
		}
	}
	g.mends(g.nodes[1])
	g.mends(g.nodes[2])
	g.well()
}

// rack is the label of the groups, which some nodes do not have.
const rack = "e2e.drydock.dev/rack"

func groups(c *clinic, fields string) {
	g := c.take("groups", 4)
	for _, node := range g.nodes[2:] {
		g.PatchNode(node, `{"metadata":{"labels":{"`+rack+`":"a"}}}`)
	}
	g.start(fields)
	g.breakAtOnce(g.nodes[1:])
	g.remediated(fence, g.nodes[1])
	g.explains(g.nodes[2], "0 of 2 nodes of group a are healthy, and 1 have to be")
	g.mends(g.nodes[2])
	g.remediated(fence, g.nodes[3])
	if made := g.creations(g.nodes[2]); made != 0 {
		g.Errorf("%d objects were made of the node that recovered", made)
	}
	g.mends(g.nodes[1])
	g.mends(g.nodes[3])
	g.well()
}

func paused(c *clinic, fields string) {
	g := c.check("paused", 3, fields)
	g.Exits(g.Drydock("health", "pause", "paused", "--comment", "storage moves", "--by", "jane"), 0, "paused")
	g.Exits(g.Drydock("health", "pause", "paused", "--comment", "and the network", "--by", "bob"), 0, "paused")
	g.breaks(g.nodes[0])
	g.until("it is paused, and counts", func(s api.HealthStatus) bool {
		return s.Phase == health.PhasePaused && s.ObservedNodes == 3 && s.HealthyNodes == 2 && s.Unhealthy == 1 && s.Remediating == 0
	})
	g.explains(g.nodes[0], "storage moves")
	g.Exits(g.Drydock("health", "resume", "paused", "--by", "jane"), 0)
	g.explains(g.nodes[0], "and the network")
	g.Exits(g.Drydock("health", "resume", "paused", "--by", "jane"), 1, "bob")
	if made := g.creations(g.nodes[0]); made != 0 {
		g.Errorf("%d objects were made while it was paused", made)
	}
	g.Exits(g.Drydock("health", "resume", "paused", "--of", "bob", "--by", "jane"), 0)
	g.remediated(fence, g.nodes[0])
	// A pause stops what is new alone.
	g.Exits(g.Drydock("health", "pause", "paused", "--comment", "again", "--by", "jane"), 0)
	g.mends(g.nodes[0])
	g.released(fence, g.nodes[0])
	g.Exits(g.Drydock("health", "resume", "paused", "--all", "--by", "jane"), 0)
	g.well()
}

func recovers(c *clinic, template string) {
	const conditions = `"unhealthyConditions":[{"type":"` + broken + `","status":"True","duration":"30s"}],`
	g := c.check("recovers", 3, conditions+`"remediationTemplate":`+template+`,"minHealthy":1`)
	node := g.nodes[0]
	since := g.breaks(node)
	g.until("it will be ill", func(s api.HealthStatus) bool { return s.Soon == 1 && s.HealthyNodes == 2 && s.Unhealthy == 0 })
	g.mends(node)
	g.well()
	// The second time its duration is a whole one again.
	again := g.breaks(node)
	if created := g.remediated(fence, node).GetCreationTimestamp().Time; created.Before(again.Add(30 * time.Second)) {
		g.Errorf("ill since %s and again since %s, remediated at %s", since, again, created)
	}
	g.mends(node)
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
}

func confirmed(c *clinic, fields string) {
	g := c.check("confirmed", 3, fields)
	node, other := g.nodes[0], g.nodes[1]
	g.breaks(node)
	g.breaks(other)
	g.remediated(fence, node)
	g.remediated(fence, other)
	g.Exits(g.Drydock("health", "confirm", node, "--comment", "too early"), 1, "recovered")
	g.mends(node)
	g.mends(other)
	g.until("somebody has to confirm", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 2 && allHealthyAgain(s) && s.HealthyNodes == 1
	})
	g.explains(node, "confirm")
	g.Exits(g.Drydock("health", "confirm", node), 2, "--comment")
	g.Exits(g.Drydock("health", "confirm", node, "--comment", "memory replaced"), 0)
	g.released(fence, node)
	g.remediated(fence, other)
	// The same by the annotation, which is taken off.
	g.PatchNode(other, `{"metadata":{"annotations":{"`+confirmedAnnotation+`":"yes"}}}`)
	g.released(fence, other)
	g.Eventually("the annotation is taken off", func() error {
		if _, there := g.Node(other).Annotations[confirmedAnnotation]; there {
			return errors.New("it is there")
		}
		return nil
	})
	g.well()
}

func allHealthyAgain(s api.HealthStatus) bool {
	for _, n := range s.UnhealthyNodes {
		if n.ConditionsHealthyTimestamp == nil {
			return false
		}
	}
	return true
}

func delayed(c *clinic, fields string) {
	g := c.check("delayed", 3, fields)
	node := g.nodes[0]
	g.breaks(node)
	g.remediated(fence, node)
	g.mends(node)
	status := g.until("it is delayed", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && s.UnhealthyNodes[0].HealthyDelayed != nil && *s.UnhealthyNodes[0].HealthyDelayed
	})
	// A relapse begins the delay anew.
	first := *status.UnhealthyNodes[0].ConditionsHealthyTimestamp
	g.breaks(node)
	g.until("it has fallen ill again", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && s.UnhealthyNodes[0].ConditionsHealthyTimestamp == nil
	})
	g.mends(node)
	status = g.until("it is delayed again", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && s.UnhealthyNodes[0].ConditionsHealthyTimestamp != nil
	})
	second := *status.UnhealthyNodes[0].ConditionsHealthyTimestamp
	if !second.After(first) {
		g.Errorf("recovered at %s and at %s", first, second)
	}
	g.released(fence, node)
	if now := time.Now(); now.Before(second.Add(30 * time.Second)) {
		g.Errorf("recovered at %s, and released by %s", second, now)
	}
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
}

func templateGone(c *clinic) {
	ref := c.template(fence, "fleeting", nil)
	g := c.check("templates", 3, `"remediationTemplate":`+ref+`,"minHealthy":1`)
	g.well()
	if _, err := g.object(fence+"Template", "fleeting", "", "delete", nil); err != nil {
		g.Fatal(err)
	}
	disabled := g.until("it is disabled", func(s api.HealthStatus) bool { return s.Phase == health.PhaseDisabled })
	if len(disabled.Conditions) == 0 || disabled.Conditions[0].Reason != health.DisabledTemplateNotFound || !strings.Contains(disabled.Reason, "fleeting") {
		g.Errorf("it is disabled: %q, %+v", disabled.Reason, disabled.Conditions)
	}
	g.breaks(g.nodes[0])
	g.until("its node is ill, and counted", func(s api.HealthStatus) bool { return s.HealthyNodes == 2 && s.Unhealthy == 1 && s.Remediating == 0 })
	g.explains(g.nodes[0], "there is no template FenceAgentsRemediationTemplate remediators/fleeting")
	if made := g.creations(g.nodes[0]); made != 0 {
		g.Errorf("%d objects were made", made)
	}
	g.template(fence, "fleeting", nil)
	g.remediated(fence, g.nodes[0])
	g.mends(g.nodes[0])
	g.released(fence, g.nodes[0])
	g.well()
}

func nodeReplaced(c *clinic, fields string) {
	g := c.check("replaced", 3, fields)
	node := g.nodes[0]
	g.breaks(node)
	first := g.remediated(fence, node)
	fresh := g.DeleteNode(node)
	g.released(fence, node)
	g.until("the node has left", func(s api.HealthStatus) bool {
		return s.ObservedNodes == 2 && s.HealthyNodes == 2 && len(s.UnhealthyNodes) == 0
	})
	g.CreateNode(fresh)
	g.well()
	g.breaks(node)
	if second := g.remediated(fence, node); second.GetUID() == first.GetUID() {
		g.Error("the object is the earlier one")
	}
	g.mends(node)
	g.released(fence, node)
	g.well()
}

func overlaps(c *clinic, template string) {
	fields := `"remediationTemplate":` + template + `,"minHealthy":1`
	g := c.check("elder", 3, fields)
	nowhere := fmt.Sprintf(`{"name":"nowhere","selector":{"matchLabels":{%q:"nowhere"}},"maintenance":{"input":{"work":"nowhere"}}}`, ward)
	g.Exits(g.Drydock("health", "start", "--file", g.File("nowhere.json", nowhere)), 2, `there is no "nowhere"`)
	younger := &group{clinic: g.clinic, name: "younger", nodes: g.nodes}
	spec := strings.ReplaceAll(fmt.Sprintf(`{"name":"younger","selector":{"matchLabels":{%q:"elder"}},
		"unhealthyConditions":[{"type":%q,"status":"True","duration":"1s"}],%s}`, ward, broken, fields), "\n", " ")
	g.Exits(g.Drydock("health", "start", "--file", g.File("younger.json", spec)), 0, "started")
	status := younger.until("it says that it overlaps", func(s api.HealthStatus) bool { return s.Overlap != "" })
	if status.Phase != health.PhaseEnabled || !strings.Contains(status.Overlap, "health check elder, which is older, selects node "+g.nodes[0]) {
		g.Errorf("it is %s: %q", status.Phase, status.Overlap)
	}
	g.breaks(g.nodes[0])
	object := g.remediated(fence, g.nodes[0])
	holder, other := g, younger
	if object.GetLabels()["drydock.dev/health-check"] != g.name {
		holder, other = younger, g // whichever has the node's lease first
	}
	other.until("it waits, and names who remediates the node", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && strings.Contains(s.UnhealthyNodes[0].Blocked, holder.name)
	})
	g.mends(g.nodes[0])
	g.released(fence, g.nodes[0])
	g.well() // the check may hear a moment later that nothing is left
	younger.well()
	if made := g.creations(g.nodes[0]); made != 1 {
		g.Errorf("%d objects were made", made)
	}
	g.Exits(g.Drydock("health", "remove", "elder"), 0)
	younger.until("it is alone", func(s api.HealthStatus) bool { return s.Overlap == "" })
}

func excluded(c *clinic, fields string) {
	g := c.check("excluded", 4, fields)
	for i, value := range []string{"true", "false", ""} {
		g.PatchNode(g.nodes[i], fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, excludeLabel, value))
		g.breaks(g.nodes[i])
	}
	g.remediated(fence, g.nodes[1])
	g.remediated(fence, g.nodes[2])
	g.explains(g.nodes[0], "the node is excluded by its label "+excludeLabel)
	if made, told := g.creations(g.nodes[0]), g.happened(health.EventInvalidNodeLabel, g.nodes[2]); made != 0 || told != 1 {
		g.Errorf("%d objects were made of the excluded node, event InvalidNodeLabel told %d times", made, told)
	}
	g.PatchNode(g.nodes[0], fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, excludeLabel))
	g.remediated(fence, g.nodes[0])
	for _, node := range g.nodes[:3] {
		g.mends(node)
	}
	g.well()
}

func underMaintenance(c *clinic, fields string) {
	g := c.check("maintained", 3, fields)
	node := g.nodes[0]
	run := g.ReadyNow(node)
	g.breaks(node)
	g.explains(node, "the node is under maintenance")
	g.until("it is ill, and nothing begins", func(s api.HealthStatus) bool { return s.Unhealthy == 1 && s.Remediating == 0 })
	if made := g.creations(node); made != 0 {
		g.Errorf("%d objects were made", made)
	}
	g.Signal(run, api.MsgCancel, api.Cancel{Release: true})
	g.remediated(fence, node)
	g.mends(node)
	g.released(fence, node)
	g.well()
}

// repairs has a node that is as good as dead repaired by a maintenance of our own.
func repairs(c *clinic, calls *atomic.Int64) {
	g := c.check("repairs", 3, `"unhealthyConditions":[{"type":"Ready","status":"Unknown","duration":"2s"}],
		"maintenance":{"input":{"work":"power-cycle"}},"minHealthy":1`)
	node := g.nodes[0]
	before := g.Imprint(node)
	g.Silent(node)
	run := g.Temporal.GetWorkflow(g.Ctx, api.MaintenanceID(g.Cluster, node, "health-repairs"), "")
	g.Eventually("the node is maintained", func() error {
		status, err := g.maintenance(run.GetID())
		if err == nil && (status.Spec.Type != "unplanned" || status.Spec.Remediation == nil || status.Spec.Remediation.Check != "repairs") {
			err = fmt.Errorf("its specification is %+v", status.Spec)
		}
		return err
	})
	g.Eventually("its power is cycled", func() error {
		if calls.Load() == 0 {
			return errors.New("nobody has called")
		}
		return nil
	})
	g.until("the maintenance is the step", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 1 && s.UnhealthyNodes[0].Remediations[0].WorkflowID == run.GetID()
	})
	if lease := g.lease(node); lease == nil || *lease.Spec.HolderIdentity != "NodeHealthCheck-repairs" {
		g.Errorf("its lease is %+v", lease)
	}
	g.Ready(node, true)
	if result := g.MustEnd(run, api.Completed); result.Phase != api.Completed {
		g.Errorf("the maintenance ended %+v", result)
	}
	g.Back(node, before)
	g.released(fence, node)
	g.well()
	if n := calls.Load(); n != 1 {
		g.Errorf("the power was cycled %d times", n)
	}
}

func (g *group) maintenance(id string) (api.Status, error) {
	var status api.Status
	value, err := g.Temporal.QueryWorkflow(g.Ctx, id, "", api.QueryStatus)
	if err != nil {
		return status, err
	}
	return status, value.Get(&status)
}

// isReset has a check forget that it has begun a remediation: it finds it again, and begins none beside it.
func isReset(c *clinic, fields string) {
	g := c.check("reset", 3, fields)
	node := g.nodes[0]
	run := g.Temporal.GetWorkflow(g.Ctx, api.HealthCheckID(g.Cluster, g.name), "")
	g.breaks(node)
	object := g.remediated(fence, node)
	g.ResetTo(run, g.FirstTask(run.GetID()), false)
	g.until("it has found its remediation", func(s api.HealthStatus) bool {
		return s.Phase == health.PhaseRemediating && s.HealthyNodes == 2 && len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 1
	})
	if now := g.remediated(fence, node); now.GetUID() != object.GetUID() {
		g.Error("it is another object")
	}
	g.mends(node)
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
}

// terminated has a check ended by force and begun anew while it remediates.
func terminated(c *clinic, fields string) {
	g := c.check("terminated", 3, fields)
	node := g.nodes[0]
	g.breaks(node)
	g.remediated(fence, node)
	if err := g.Temporal.TerminateWorkflow(g.Ctx, api.HealthCheckID(g.Cluster, g.name), "", "a test"); err != nil {
		g.Fatal(err)
	}
	g.mends(node)
	g.start(fields)
	g.released(fence, node)
	g.well()
	if made := g.creations(node); made != 1 {
		g.Errorf("%d objects were made", made)
	}
}

// escalatesByTime has everything that takes a minute: steps that time out, of two kinds and of one, and a lease of somebody else's.
func escalatesByTime(c *clinic, template string) {
	multiple := map[string]string{multipleAnnotation: "true"}
	steps := func(first, second string) string {
		return fmt.Sprintf(`"minHealthy":1,"escalatingRemediations":[{"order":7,"timeout":"1h","remediationTemplate":%s},
			{"order":2,"timeout":"1m","remediationTemplate":%s}]`, second, first)
	}
	two := c.check("two-kinds", 3, steps(template, c.template(self, "reboot", multiple)))
	one := c.check("one-kind", 3, steps(c.template(self, "soft", multiple), c.template(self, "hard", multiple)))
	held := c.check("held", 3, `"remediationTemplate":`+template+`,"minHealthy":1`)
	holder, seconds, now := "nmo", int32(3600), metav1.NowMicro()
	leases := c.Kube.CoordinationV1().Leases(leasesNamespace)
	if _, err := leases.Create(c.Ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + held.nodes[0]},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	for _, g := range []*group{two, one, held} {
		g.breaks(g.nodes[0])
	}
	first, soft := two.remediated(fence, two.nodes[0]), one.remediated(self, one.nodes[0])
	if soft.GetName() == one.nodes[0] || !strings.HasPrefix(soft.GetName(), one.nodes[0]+"-") {
		c.Errorf("of a kind that takes several it is called %s", soft.GetName())
	}
	held.explains(held.nodes[0], "nmo")
	if made := held.creations(held.nodes[0]); made != 0 {
		c.Errorf("%d objects were made of a node that somebody else has", made)
	}
	if err := leases.Delete(c.Ctx, "node-"+held.nodes[0], metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}

	const step = time.Minute + site.Patience
	two.Within(step, "the second kind follows the first", func() error {
		if n := len(two.objectsFor(self, two.nodes[0])); n != 1 {
			return fmt.Errorf("%d objects; %s", n, two.told(two.nodes[0]))
		}
		return nil
	})
	second := two.remediated(self, two.nodes[0])
	if after := second.GetCreationTimestamp().Sub(first.GetCreationTimestamp().Time); after < time.Minute {
		c.Errorf("the second step began %s after the first", after)
	}
	if first = two.remediated(fence, two.nodes[0]); first.GetAnnotations()[timedOutAnnotation] == "" {
		c.Errorf("the first object has the annotations %v", first.GetAnnotations())
	}
	one.Within(step, "the second of a kind follows the first", func() error {
		if n := len(one.objectsFor(self, one.nodes[0])); n != 2 {
			return fmt.Errorf("%d objects; %s", n, one.told(one.nodes[0]))
		}
		return nil
	})
	for _, o := range one.objectsFor(self, one.nodes[0]) {
		if marked := o.GetAnnotations()[timedOutAnnotation] != ""; marked != (o.GetUID() == soft.GetUID()) {
			c.Errorf("%s has the annotations %v", o.GetName(), o.GetAnnotations())
		}
	}
	one.until("both steps are in its status", func(s api.HealthStatus) bool {
		return len(s.UnhealthyNodes) == 1 && len(s.UnhealthyNodes[0].Remediations) == 2 && s.UnhealthyNodes[0].Remediations[0].TimedOut != nil
	})
	held.Within(step, "the lease is tried again", func() error {
		if n := len(held.objectsFor(fence, held.nodes[0])); n != 1 {
			return fmt.Errorf("%d objects; %s", n, held.told(held.nodes[0]))
		}
		return nil
	})
	if told := held.happened(health.EventRemediationSkipped, held.nodes[0]); told != 1 {
		c.Errorf("event RemediationSkipped was told %d times", told)
	}
	for _, g := range []*group{two, one, held} {
		g.mends(g.nodes[0])
	}
	for _, g := range []*group{two, one, held} {
		g.released(fence, g.nodes[0])
		g.released(self, g.nodes[0])
		g.well()
	}
}

// escalatesAtOnce has a remediator fail.
func escalatesAtOnce(c *clinic) {
	multiple := map[string]string{multipleAnnotation: "true"}
	steps := fmt.Sprintf(`"minHealthy":1,"escalatingRemediations":[{"order":1,"timeout":"10m","remediationTemplate":%s},
		{"order":2,"timeout":"10m","remediationTemplate":%s}]`, c.template(self, "gentle", multiple), c.template(self, "rough", multiple))
	g := c.check("fails", 3, steps)
	node := g.nodes[0]
	g.breaks(node)
	first := g.remediated(self, node)
	g.says(self, first.GetName(), "Succeeded", "False")
	g.Eventually("the next step begins", func() error {
		if n := len(g.objectsFor(self, node)); n != 2 {
			return fmt.Errorf("%d objects; %s", n, g.told(node))
		}
		return nil
	})
	for _, o := range g.objectsFor(self, node) {
		if marked := o.GetAnnotations()[timedOutAnnotation] != ""; marked != (o.GetUID() == first.GetUID()) {
			g.Errorf("%s has the annotations %v", o.GetName(), o.GetAnnotations())
		}
	}
	g.mends(node)
	g.released(self, node)
	g.well()
}
