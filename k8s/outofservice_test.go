package k8s_test

import (
	"errors"
	"strconv"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func callerOf(requestor string) k8s.Caller {
	h := holder(requestor, true).Holder
	return k8s.Caller{WorkflowID: h.WorkflowID, RunID: h.RunID}
}

func setOutOfService(t *testing.T, client k8stest.Fake, requestor string) (foreign bool) {
	t.Helper()
	node := get(t, client)
	silent(node)
	if _, err := client.All.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	is, err := k8s.SetOutOfService(t.Context(), client, "n1", callerOf(requestor), k8s.Silence{})
	if err != nil {
		t.Fatal(err)
	}
	return is.Foreign
}

func silent(node *corev1.Node) {
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
}

func TestANodeThatComesBackKeepsNoTaint(t *testing.T) {
	renewal := 0
	renew := func(t *testing.T, client k8stest.Fake) {
		renewal++
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n1", ResourceVersion: strconv.Itoa(renewal)}}
		if err := client.All.Tracker().Update(coordinationv1.SchemeGroupVersion.WithResource("leases"), lease, lease.Namespace); err != nil {
			t.Error(err)
		}
	}
	// A reactor must not use the client, which calls it.
	change := func(t *testing.T, client k8stest.Fake, do func(*corev1.Node)) {
		nodes := corev1.SchemeGroupVersion.WithResource("nodes")
		found, err := client.All.Tracker().Get(nodes, "", "n1")
		if err != nil {
			t.Error(err)
			return
		}
		node := found.(*corev1.Node).DeepCopy()
		do(node)
		if err := client.All.Tracker().Update(nodes, node, ""); err != nil {
			t.Error(err)
		}
	}
	boot := func(t *testing.T, client k8stest.Fake) {
		change(t, client, func(n *corev1.Node) { n.Status.NodeInfo.BootID = "boot-2" })
	}
	report := func(t *testing.T, client k8stest.Fake) {
		change(t, client, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionTrue })
	}
	for name, c := range map[string]struct {
		speak func(*testing.T, k8stest.Fake)
		// before: the kubelet speaks before the patch is carried out; otherwise right after it.
		before bool
	}{
		"it renews its lease between look and write": {renew, true}, "it renews its lease after the write": {renew, false},
		"it reports after the write": {report, false}, "it boots after the write": {boot, false},
	} {
		t.Run(name, func(t *testing.T) {
			found := nodeWith(silent)
			found.Status.NodeInfo.BootID = "boot-1"
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n1"}}
			client := k8stest.NewFake(found.DeepCopy(), lease)
			hold(t, client, holder("ops", true))
			seen, err := k8s.ReadKubeletLease(t.Context(), client, "n1")
			if err != nil {
				t.Fatal(err)
			}
			patches := 0
			client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if patches++; patches > 1 {
					return false, nil, nil
				}
				if c.before {
					c.speak(t, client)
					return false, nil, nil
				}
				_, after, err := clienttesting.ObjectReaction(client.All.Tracker())(action)
				c.speak(t, client)
				return true, after, err
			})
			is, err := k8s.SetOutOfService(t.Context(), client, "n1", callerOf("ops"), k8s.Silence{Lease: seen, BootID: "boot-1"})
			if err != nil || is != (k8s.OutOfService{Alive: true}) || k8s.IsOutOfService(get(t, client)) {
				t.Errorf("%+v, %v; taints %v", is, err, get(t, client).Spec.Taints)
			}
			mark, err := k8s.MarkOf(get(t, client))
			if err != nil || mark.OwnsOutOfService(callerOf("ops")) || patches != 2 {
				t.Errorf("mark %+v, %v after %d patches", mark, err, patches)
			}
		})
	}
}

func TestTheTaintOutOfServiceGoesWithItsHolder(t *testing.T) {
	for name, found := range nodesAsFound {
		t.Run(name, func(t *testing.T) {
			client := k8stest.NewFake(found.DeepCopy())
			first := hold(t, client, holder("ops", true))
			hold(t, client, holder("health", true))
			for range 2 {
				if setOutOfService(t, client, "health") || !k8s.IsOutOfService(get(t, client)) {
					t.Fatal("it is not the holder's own")
				}
			}
			release(t, client, "health")
			if k8s.IsOutOfService(get(t, client)) {
				t.Error("the taint is there without its holder")
			}
			setOutOfService(t, client, "ops")
			// Another hold of the holder keeps it as long as the maintenance knows of it, and takes off what a reset run has left.
			again := holder("ops", true)
			again.Prior = first.Prior
			again.Prior.OutOfService = true
			if held := hold(t, client, again); !held.Prior.OutOfService || !k8s.IsOutOfService(get(t, client)) {
				t.Errorf("held again %+v", held.Prior)
			}
			if held := hold(t, client, holder("ops", true)); held.Prior.OutOfService || k8s.IsOutOfService(get(t, client)) {
				t.Errorf("held from the beginning %+v", held.Prior)
			}
			setOutOfService(t, client, "ops")
			release(t, client, "ops")
			expectAsBefore(t, found, get(t, client))
		})
	}
}

func TestTheTaintOutOfServiceOfSomebodyElseStays(t *testing.T) {
	found := nodeWith(func(n *corev1.Node) { n.Spec.Taints = append(n.Spec.Taints, k8s.OutOfServiceTaint) })
	client := k8stest.NewFake(found.DeepCopy())
	hold(t, client, holder("ops", true))
	if !setOutOfService(t, client, "ops") {
		t.Error("it counts as the maintenance's")
	}
	if err := k8s.ClearOutOfService(t.Context(), client, "n1", callerOf("ops")); err != nil || !k8s.IsOutOfService(get(t, client)) {
		t.Errorf("cleared: %v", err)
	}
	release(t, client, "ops")
	expectAsBefore(t, found, get(t, client))
	if _, err := k8s.SetOutOfService(t.Context(), client, "n1", callerOf("ops"), k8s.Silence{}); !errors.Is(err, k8s.ErrNotHolder) {
		t.Errorf("a node that is not held: %v", err)
	}
}

func TestTheTaintOutOfServiceOfANodeWhoseMarkWasStripped(t *testing.T) {
	found := nodesAsFound["plain"]
	client := k8stest.NewFake(found.DeepCopy())
	held := hold(t, client, holder("ops", true))
	setOutOfService(t, client, "ops")
	held.Prior.OutOfService = true
	strip(t, client)
	in := holder("ops", true)
	in.Prior = held.Prior
	if again := hold(t, client, in); !again.Prior.OutOfService {
		t.Error("the mark that is set again does not have it")
	}
	strip(t, client)
	if released := releaseKnown(t, client, "ops", held.Prior); !released.Stripped {
		t.Errorf("released %+v", released)
	}
	expectAsBefore(t, found, get(t, client))
}

func TestAHeldNodeHasTheLabelThatExcludesItFromMedik8s(t *testing.T) {
	values := map[string]*string{"none": nil, "true": new("true"), "false": new("false"), "empty": new("")}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			found := nodeWith(func(n *corev1.Node) {
				if value != nil {
					n.Labels[k8s.ExcludeLabel] = *value
				}
			})
			client := k8stest.NewFake(found.DeepCopy())
			in := holder("ops", true)
			in.Exclude = true
			held := hold(t, client, in)
			second := holder("health", false)
			second.Exclude = true
			hold(t, client, second)
			node := get(t, client)
			mark, err := k8s.MarkOf(node)
			if err != nil || node.Labels[k8s.ExcludeLabel] != "true" {
				t.Fatalf("labels %v: %v", node.Labels, err)
			}
			if said, there := k8s.ExclusionOf(node, mark); there != (value != nil) || there && said != *value {
				t.Errorf("somebody else says %q, %t", said, there)
			}
			release(t, client, "health")
			if get(t, client).Labels[k8s.ExcludeLabel] != "true" {
				t.Error("the label went with the first of two")
			}
			strip(t, client)
			releaseKnown(t, client, "ops", held.Prior)
			expectAsBefore(t, found, get(t, client))
			hold(t, client, in)
			release(t, client, "ops")
			expectAsBefore(t, found, get(t, client))
		})
	}
}

func TestWhoToleratesOutOfService(t *testing.T) {
	for name, c := range map[string]struct {
		toleration corev1.Toleration
		want       bool
	}{
		"all":               {corev1.Toleration{Operator: corev1.TolerationOpExists}, true},
		"all that evict":    {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}, true},
		"the taint":         {corev1.Toleration{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown"}, true},
		"another value":     {corev1.Toleration{Key: corev1.TaintNodeOutOfService, Value: "other"}, false},
		"a node not ready":  {corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists}, false},
		"what does not let": {corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}, false},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{c.toleration}}}
		if got := k8s.ToleratesOutOfService(pod); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
