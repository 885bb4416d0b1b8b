package cluster

import (
	"context"
	"time"

	"drydock/activities/failure"
	"drydock/k8s"
)

// markLag is how long a mark that was taken off its node may still be seen: the release is told at once, and watches follow.
const markLag = 500 * time.Millisecond

// HeldSlot is a slot and the mark that its holder has on the node.
type HeldSlot struct {
	RequestID  string `json:"requestId"`
	Node       string `json:"node"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
}

// SeeGivenBack tells which of the slots have no mark on their node, by their requests. It waits a moment for marks that
// have just been taken off. A node that is not there proves nothing: it may register again. It costs no request while the
// shared watch of nodes runs.
func (c *Activities) SeeGivenBack(ctx context.Context, slots []HeldSlot) ([]string, error) {
	view, err := c.Nodes.View(ctx)
	if err != nil {
		return nil, failure.Translate(err)
	}
	defer view.Close()
	late := time.NewTimer(markLag)
	defer late.Stop()
	for {
		if err := view.Err(); err != nil {
			return nil, failure.Translate(err)
		}
		back := unmarked(view, slots)
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

// unmarked are the requests whose holder has no mark on the node. What cannot be read is no proof that it has none.
func unmarked(view *k8s.View, slots []HeldSlot) []string {
	var back []string
	for _, s := range slots {
		node, there := view.Get(s.Node)
		if !there {
			continue
		}
		if mark, err := k8s.MarkOf(node); err == nil && !mark.HeldBy(s.WorkflowID, s.RunID) {
			back = append(back, s.RequestID)
		}
	}
	return back
}
