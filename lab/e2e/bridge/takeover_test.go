package bridge

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/bridge/maintenanceoperator/objects"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/spec"
)

// leftState is a state in which maintenance-operator may leave an object and its node when it stops.
type leftState struct {
	name, reason string
	// held: the finalizer is on. initial is the annotation of what the node was before; cordoned what it is.
	held     bool
	initial  string
	cordoned bool
	// ready is how long ago the object was Ready.
	ready   time.Duration
	failed  bool
	deleted bool
	// ends is the reason that the object comes to; none where it goes. stays: its node was cordoned by somebody else.
	ends  string
	stays bool
}

// leftStates are all of them (shared by the 20 nodes of a cluster).
var leftStates = []leftState{
	{name: "new", ends: objects.Ready},
	{name: "pending", reason: objects.Pending, ends: objects.Ready},
	{name: "scheduled", reason: objects.Scheduled, ends: objects.Ready},
	{name: "scheduled-held", reason: objects.Scheduled, held: true, ends: objects.Ready},
	{name: "cordon", reason: objects.Cordon, held: true, ends: objects.Ready},
	{name: "cordon-begun", reason: objects.Cordon, held: true, initial: "false", ends: objects.Ready},
	{name: "cordon-done", reason: objects.Cordon, held: true, initial: "false", cordoned: true, ends: objects.Ready},
	{name: "waiting", reason: objects.Waiting, held: true, initial: "false", cordoned: true, ends: objects.Ready},
	{name: "draining", reason: objects.Draining, held: true, initial: "false", cordoned: true, ends: objects.Ready},
	{name: "draining-other", reason: objects.Draining, held: true, initial: "true", cordoned: true, ends: objects.Ready, stays: true},
	{name: "ready", reason: objects.Ready, held: true, initial: "false", cordoned: true, ready: time.Minute, ends: objects.Ready},
	{name: "ready-now", reason: objects.Ready, held: true, initial: "false", cordoned: true, ends: objects.Ready},
	{name: "ready-other", reason: objects.Ready, held: true, initial: "true", cordoned: true, ready: time.Minute, ends: objects.Ready, stays: true},
	{name: "ready-long", reason: objects.Ready, held: true, initial: "false", cordoned: true, ready: 3 * time.Hour},
	{name: "gave-up", reason: objects.RequestorFailed, held: true, initial: "false", cordoned: true, ready: time.Minute, failed: true, ends: objects.RequestorFailed},
	{name: "failed-unseen", reason: objects.Ready, held: true, initial: "false", cordoned: true, ready: time.Minute, failed: true, ends: objects.RequestorFailed},
	{name: "deleted-cordon", reason: objects.Cordon, held: true, initial: "false", cordoned: true, deleted: true},
	{name: "deleted-draining", reason: objects.Draining, held: true, initial: "false", cordoned: true, deleted: true},
	{name: "deleted-ready", reason: objects.Ready, held: true, initial: "false", cordoned: true, ready: time.Minute, deleted: true},
	{name: "deleted-uncordoned", reason: objects.Ready, held: true, ready: time.Minute, deleted: true},
}

// leave has an object and its node be as the operator left them.
func (p *peer) leave(s leftState, node string) {
	p.Helper()
	annotations := map[string]string{}
	if s.initial != "" {
		annotations[objects.InitialState] = s.initial
	}
	if s.ready > 0 {
		annotations[objects.ReadyTime] = time.Now().Add(-s.ready).UTC().Format(time.RFC3339)
	}
	metadata := map[string]any{"name": s.name, "annotations": annotations, "ownerReferences": []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "Node", Name: node, UID: p.Node(node).UID},
	}}
	if s.held {
		metadata["finalizers"] = []string{objects.Finalizer}
	}
	p.create("nodemaintenances", "NodeMaintenance", metadata, map[string]any{"requestorID": "any." + s.name, "nodeName": node, "drainSpec": map[string]any{"podSelector": "app=work", "force": true}})
	p.PatchNode(node, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, s.cordoned))
	var conditions []metav1.Condition
	if s.reason != "" {
		status := metav1.ConditionFalse
		if s.reason == objects.Ready {
			status = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: objects.ConditionReady, Status: status, Reason: s.reason})
	}
	if s.failed {
		meta.SetStatusCondition(&conditions, metav1.Condition{Type: objects.RequestorFailed, Status: metav1.ConditionTrue, Reason: "FailedMaintenance"})
	}
	if conditions != nil {
		if err := p.send("status", "nodemaintenances", s.name, map[string]any{"status": map[string]any{"conditions": conditions}}, nil); err != nil {
			p.Fatal(err)
		}
	}
	if s.deleted {
		p.delete(s.name)
	}
}

// The bridge goes on with what maintenance-operator left, in whichever state: nobody's node stays out of service, and none comes back early.
func TestObjectsOfMaintenanceOperatorAreTakenOver(t *testing.T) {
	p := preparePeer(t)
	p.create("maintenanceoperatorconfigs", "MaintenanceOperatorConfig", map[string]any{"name": "default"}, map[string]any{"maxParallelOperations": len(leftStates)})
	nodes := p.Nodes()
	ns := p.Namespace()
	var work *corev1.Pod
	for i, s := range leftStates {
		if s.name == "ready" {
			work = p.Pod(ns, "work", nodes[i].Name) // its requestor has begun
		}
		p.leave(s, nodes[i].Name)
	}
	p.serve()
	for _, s := range leftStates {
		if s.ends == "" {
			p.isGone(s.name)
			continue
		}
		p.shows(s.name, s.ends)
	}
	// What was Ready never seemed not to be, since its requestor works on the node, nor what had failed to be Ready.
	p.mu.Lock()
	for _, s := range leftStates {
		if (s.ends == objects.Ready && s.reason == s.ends || s.reason == objects.RequestorFailed) && len(p.seen[s.name]["ready"]) != 1 {
			t.Errorf("%s showed %q", s.name, p.seen[s.name]["ready"])
		}
	}
	p.mu.Unlock()
	p.MustStay(*work)
	for _, s := range leftStates {
		if s.ends != "" && !slices.Contains(goBack, s.name) {
			p.delete(s.name)
		}
	}
	for i, s := range leftStates {
		if slices.Contains(goBack, s.name) {
			p.MustDrydock("cancel", nodes[i].Name, "--requestor", "any."+s.name, "--release", "--yes")
			p.shows(s.name, objects.Pending)
		} else {
			p.isGone(s.name)
		}
		p.Eventually(s.name+"'s node is given back", func() error {
			if n := p.Node(nodes[i].Name); n.Spec.Unschedulable != s.stays {
				return errors.New("unschedulable is " + fmt.Sprint(n.Spec.Unschedulable))
			}
			return nil
		})
	}
	p.givenBack()
}

// goBack are the states whose objects go back to the operator. Their maintenances are cancelled, after which they are Pending.
var goBack = []string{"pending", "cordon-begun", "draining", "draining-other", "ready", "gave-up"}

// givenBack has the marks of the bridge taken off the objects that are left, which it refuses while a bridge serves them. The operator then
// finds them as its own: Pending, with none of Drydock's marks, and deletable.
func (p *peer) givenBack() {
	p.Helper()
	p.asAdministrator()
	back := []string{"migrate", "--from", "maintenance-operator", "--back", "--yes"}
	p.Exits(p.Drydock(back...), 1, "stop the bridge")
	bridge := p.bridge
	if err := bridge.Process.Stop(site.StopTime); err != nil {
		p.Fatal(err)
	}
	p.MustDrydock(back...)
	for _, name := range goBack {
		var o objects.NodeMaintenance
		if err := p.send("get", "nodemaintenances", name, nil, &o); err != nil {
			p.Fatal(err)
		}
		if len(o.Finalizers) > 0 || o.Annotations[spec.RunAnnotation] != "" {
			p.Errorf("%s has %q, %q", name, o.Finalizers, o.Annotations)
		}
	}
	p.Exits(p.Drydock(back...), 0, "No object has a mark")
}
