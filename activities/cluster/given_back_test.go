package cluster

import (
	"context"
	"slices"
	"testing"
	"time"

	"drydock.dev/drydock/activities/activitytest"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/k8s/k8stest"
)

func TestASlotIsGivenBackWhenItsMarkIsOffTheNode(t *testing.T) {
	s := k8stest.New(
		activitytest.Node("held", activitytest.Cordoned, activitytest.Marked("w", "r")),
		activitytest.Node("bare"),
		activitytest.Node("others", activitytest.Marked("v", "q")),
		activitytest.Node("soon", activitytest.Cordoned, activitytest.Marked("w", "r")),
	)
	client := s.Client(t)
	c := &Activities{Nodes: k8s.NewNodes(client)}
	ask := func(nodes ...string) []string {
		t.Helper()
		var slots []HeldSlot
		for _, n := range nodes {
			slots = append(slots, HeldSlot{RequestID: n, Node: n, WorkflowID: "w", RunID: "r"})
		}
		back, err := c.SeeGivenBack(t.Context(), slots)
		if err != nil {
			t.Fatal(err)
		}
		return back
	}
	if back := ask("held", "bare", "others", "missing"); !slices.Equal(back, []string{"bare", "others"}) {
		t.Errorf("given back: %v", back)
	}
	// Where a watch of all nodes runs, it is asked, and a mark that goes a moment later is waited for.
	view, err := c.Nodes.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	time.AfterFunc(markLag/10, func() { s.Set(activitytest.Node("soon")) })
	if back := ask("soon", "bare"); !slices.Equal(back, []string{"soon", "bare"}) {
		t.Errorf("given back: %v", back)
	}
	if back := ask("held", "bare", "others", "missing"); !slices.Equal(back, []string{"bare", "others"}) {
		t.Errorf("given back: %v", back)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if back, err := c.SeeGivenBack(ended, []HeldSlot{{Node: "held", WorkflowID: "w", RunID: "r"}}); err == nil {
		t.Errorf("given back: %v", back)
	}
}
