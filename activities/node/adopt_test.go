package node

import (
	"testing"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

// TestAdoptNodeRemembersTheSameNode: a mark that was stripped from a Ready node is set again by AdoptNode, and what the node
// shows by then is Drydock's own doing.
func TestAdoptNodeRemembersTheSameNode(t *testing.T) {
	s := k8stest.New(activitytest.Node("n1"))
	n := &Activities{Client: s.Client(t), Temporal: current(activitytest.RunID)}
	first, err := activitytest.Call(t, n.HoldNode, holdN1(true))
	if err != nil {
		t.Fatal(err)
	}
	stripped := s.Node("n1")
	delete(stripped.Annotations, api.HoldersAnnotation)
	s.Set(stripped)
	in := holdN1(true)
	in.UID, in.Prior = first.UID, first.Prior
	again, err := activitytest.Call(t, n.AdoptNode, in)
	if err != nil || again.Prior == nil || !again.Prior.Cordoned || len(again.Prior.Protections) != 0 {
		t.Fatalf("held %+v, %v", again, err)
	}
	if _, err := activitytest.Call(t, n.ReleaseNode, ReleaseInput{Node: "n1", RunID: activitytest.RunID, Prior: again.Prior}); err != nil {
		t.Fatal(err)
	}
	if after := s.Node("n1"); after.Spec.Unschedulable || len(after.Annotations) != 1 || len(k8s.GivenBackOn(after)) != 1 {
		t.Errorf("unschedulable %v, annotations %v", after.Spec.Unschedulable, after.Annotations)
	}
}
