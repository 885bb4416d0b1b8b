package cluster

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/k8s"
)

const (
	// markLag is how long a mark that was taken off its node may still be seen: the release is signalled at once, and
	// watches follow.
	markLag = 500 * time.Millisecond
	// fewNodes are read one by one where no watch of all nodes runs.
	fewNodes = 20
)

// HeldSlot is a slot and the mark that its holder has on the node.
type HeldSlot struct {
	RequestID  string `json:"requestId"`
	Node       string `json:"node"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
}

// SeeGivenBack returns the requests of the slots that have no mark on their node. It waits a moment for marks that
// have just been taken off. A node that is not there proves nothing: it may register again. It costs no request while the
// shared watch of nodes runs.
func (c *Activities) SeeGivenBack(ctx context.Context, slots []HeldSlot) ([]string, error) {
	if len(slots) <= fewNodes && !c.Nodes.IsRunning() {
		nodes, err := c.Nodes.Find(ctx, nodesOf(slots))
		return unmarked(slots, func(name string) (*corev1.Node, bool) { n, ok := nodes[name]; return n, ok }),
			failure.Translate(ctx, c.Nodes.Client(), err)
	}
	view, err := c.Nodes.View(ctx)
	if err != nil {
		return nil, failure.Translate(ctx, c.Nodes.Client(), err)
	}
	defer view.Close()
	late := time.NewTimer(markLag)
	defer late.Stop()
	for {
		if err := view.Err(); err != nil {
			return nil, failure.Translate(ctx, c.Nodes.Client(), err)
		}
		back := unmarked(slots, view.Get)
		if len(back) == len(slots) {
			return back, nil
		}
		select {
		case <-view.Changed:
		case <-late.C:
			return back, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func nodesOf(slots []HeldSlot) (names []string) {
	for _, s := range slots {
		names = append(names, s.Node)
	}
	return names
}

// unmarked are the requests whose holder has no mark on the node. What cannot be read is no proof that it has none.
func unmarked(slots []HeldSlot, get func(name string) (*corev1.Node, bool)) []string {
	var back []string
	for _, s := range slots {
		node, there := get(s.Node)
		if !there {
			continue
		}
		if mark, err := k8s.MarkOf(node); err == nil && !mark.HeldBy(s.WorkflowID, s.RunID) {
			back = append(back, s.RequestID)
		}
	}
	return back
}
