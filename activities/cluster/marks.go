package cluster

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/schedule"
)

// maxMarks bounds each list of marks in a report.
const maxMarks = 200

// KnownMark is a mark that the scheduler knows of: a holder's, one that was given back lately, or a stray one.
type KnownMark struct {
	Node  string `json:"node"`
	RunID string `json:"runId"`
	// Until is when the mark of a node that was given back is surprising: watches lag behind. Zero is never.
	Until time.Time `json:"until,omitzero"`
	// Stray marks are nobody's slot; a watch reports when they vanish.
	Stray bool `json:"stray,omitempty"`
}

// MarksSeen are marks on nodes that are no holder's.
type MarksSeen struct {
	// Foreign are marks that are not this cluster's maintenances', the first of them; ForeignAll counts them.
	Foreign    api.List[api.StrayMark] `json:"foreign,omitempty"`
	ForeignAll int                     `json:"foreignAll,omitempty"`
	// Unknown are marks of this cluster's maintenances that the scheduler does not know of, the first of them.
	Unknown api.List[api.StrayMark] `json:"unknown,omitempty"`
	// Vanished are the stray marks that are known and no more there.
	Vanished api.List[KnownMark] `json:"vanished,omitempty"`
}

// nodeRun names a mark.
type nodeRun struct{ node, run string }

// marksOn returns the marks that the scheduler does not expect.
func (c *Activities) marksOn(nodes []*corev1.Node, cluster string, known []KnownMark, now time.Time) MarksSeen {
	var seen MarksSeen
	expected := make(map[nodeRun]bool, len(known))
	for _, k := range known {
		if k.Until.IsZero() || now.Before(k.Until) {
			expected[nodeRun{k.Node, k.RunID}] = true
		}
	}
	there := map[nodeRun]bool{}
	var foreign, unknown []api.StrayMark
	for _, node := range nodes {
		mark, err := c.Nodes.MarkOf(node)
		if err != nil {
			foreign = append(foreign, execution.Unreadable(node.Name))
			continue
		}
		for _, h := range mark.Holders {
			if c.Home.IsOfProfile(cluster, node.Name, h) {
				continue
			}
			stray := c.Home.Classify(cluster, node.Name, h)
			name := nodeRun{node.Name, h.RunID}
			there[name] = true
			switch {
			case stray.Kind != "":
				foreign = append(foreign, stray)
			case !expected[name]:
				stray.Kind = api.StrayUnknown
				unknown = append(unknown, stray)
			}
		}
	}
	seen.Foreign, seen.ForeignAll, seen.Unknown = firstByNode(foreign), len(foreign), firstByNode(unknown)
	for _, k := range known {
		if k.Stray && !there[nodeRun{k.Node, k.RunID}] {
			seen.Vanished = append(seen.Vanished, k)
		}
	}
	return seen
}

// firstByNode are the first of the marks, by the names of their nodes.
func firstByNode(marks []api.StrayMark) []api.StrayMark {
	slices.SortFunc(marks, func(a, b api.StrayMark) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.RunID, b.RunID))
	})
	return marks[:min(len(marks), maxMarks)]
}

// unknownMarks notes since when marks are unknown to a watch.
type unknownMarks map[nodeRun]time.Time

// persistent are those that were there from the start, or are for a while.
func (u unknownMarks) persistent(marks []api.StrayMark, now time.Time) (long []api.StrayMark) {
	fresh := now
	if len(u) == 0 {
		fresh = time.Time{}
	}
	u[nodeRun{}] = now // from now on it is not the start any more
	for _, m := range marks {
		name := nodeRun{m.Node, m.RunID}
		if _, noted := u[name]; !noted {
			u[name] = fresh
		}
		if now.Sub(u[name]) >= unknownFor {
			long = append(long, m)
		}
	}
	return long
}

// knownHolders are the marks that holders are expected to have.
func knownHolders(holders []WatchedHolder) []KnownMark {
	known := make([]KnownMark, 0, len(holders))
	for _, h := range holders {
		known = append(known, KnownMark{Node: h.Node, RunID: h.RunID})
	}
	return known
}

// markedNodes remembers, across attempts of the activity and from one watch to the next, what was seen of each
// request's mark on its node: true once the mark was there, false once its absence was reported, which is done once.
type markedNodes map[string]bool

func rememberMarked(ctx context.Context, in WatchInput) markedNodes {
	marked := markedNodes{}
	if activity.HasHeartbeatDetails(ctx) && activity.GetHeartbeatDetails(ctx, &marked) == nil {
		return marked
	}
	marked = markedNodes{}
	for _, request := range in.Missing {
		marked[request] = false
	}
	for _, request := range in.Marked {
		marked[request] = true
	}
	return marked
}

// lists are the requests whose mark was seen, and those whose missing mark was reported.
func (m markedNodes) lists() (seen, missing []string) {
	for _, request := range slices.Sorted(maps.Keys(m)) {
		if m[request] {
			seen = append(seen, request)
		} else {
			missing = append(missing, request)
		}
	}
	return seen, missing
}

// lostMarks are the marks that were there and are gone, by requests, and since when.
type lostMarks map[string]time.Time

// lost reports whether a mark is gone for good. A maintenance that gives its node back takes the mark off, and
// signals that a moment later.
func (l lostMarks) lost(request string) bool {
	if _, noted := l[request]; !noted {
		l[request] = time.Now()
	}
	return time.Since(l[request]) >= lostFor
}

// due is when to look again for marks that are gone; nil is never.
func (l lostMarks) due() <-chan time.Time {
	if len(l) == 0 {
		return nil
	}
	return time.After(lostFor)
}

// shown are the nodes of a watch, and how their marks are read.
type shown struct {
	*k8s.View
	marks *k8s.Nodes
}

// changes are to be sent to the holders. A mark that was never seen may not be set yet: it counts as missing only
// where it is overdue. gone makes sure that a node is.
func (m markedNodes) changes(nodes shown, holders []WatchedHolder, lost lostMarks, overdue bool, gone func(node string) bool) []api.NodeChange {
	var changes []api.NodeChange
	for _, h := range holders {
		if h.Unmarked {
			continue
		}
		seen, known := m[h.RequestID]
		reported := known && !seen
		node, ok := nodes.Get(h.Node)
		if !ok {
			// Once is enough: its maintenance now waits for the node, or marks it, by itself, which may take long.
			if !reported && gone(h.Node) {
				changes = append(changes, api.NodeChange{RequestID: h.RequestID, Missing: true})
				m[h.RequestID] = false
			}
			continue
		}
		mark, err := nodes.marks.MarkOf(node)
		held := err == nil && mark.HeldBy(h.WorkflowID, h.RunID)
		if held {
			m[h.RequestID] = true
			delete(lost, h.RequestID)
		}
		switch {
		case held && mark.WantsCordon() && !node.Spec.Unschedulable:
			changes = append(changes, api.NodeChange{RequestID: h.RequestID, Uncordoned: true})
		case held || reported:
		case seen && lost.lost(h.RequestID), !seen && overdue:
			changes = append(changes, api.NodeChange{RequestID: h.RequestID, Unmarked: true})
			m[h.RequestID] = false
			delete(lost, h.RequestID)
		}
	}
	return changes
}

// digest changes when somebody else than Drydock makes a node available or unavailable, adds or removes one: that
// Drydock cordons and uncordons its own the scheduler knows.
func (c *Activities) digest(nodes []*corev1.Node, grouper schedule.Grouper) string {
	counts := count(nodes, grouper, func(n *corev1.Node) bool { return isOut(n) && !c.isMarked(n) })
	h := fnv.New64a()
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(h, "%s=%d/%d;", key, counts[key].Unavailable, counts[key].Nodes)
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// isMarked reports whether a maintenance of this namespace's holds the node. What others do to a node is not ours to leave
// out of any count.
func (c *Activities) isMarked(node *corev1.Node) bool {
	mark, err := c.Nodes.MarkOf(node)
	return err == nil && slices.ContainsFunc(mark.Holders, c.Home.Owns)
}
