// Package cluster observes all nodes, and the workflows that hold some of them, for the scheduler.
package cluster

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/activities/heartbeat"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/nodestate"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/rules/schedule"
)

const (
	// settle lets a burst of node changes end before they are reported.
	settle = 200 * time.Millisecond
	// describeEvery is how often the workflows of holders are described, describeFirst when for the first time: while
	// a rollout runs, a new watch begins every few seconds.
	describeEvery = 10 * time.Second
	describeFirst = 3 * time.Second
	// lostFor is how long a mark that was there may be gone before that is reported.
	lostFor = 2 * time.Second
	// gather is how long to wait for more, once a holder was found dead.
	gather = time.Second
	// unknownFor is how long a mark must be unknown to be reported where it was not there from the start: what is granted
	// while a watch runs only the next one knows, which begins within seconds.
	unknownFor = 10 * time.Second
	// markWithin is how long after a grant a mark may be missing on the node before its maintenance is asked: it knows
	// whether it has set it.
	markWithin = 30 * time.Second
	// maxOthers bounds the nodes that are named as unavailable without a maintenance.
	maxOthers = 20
	// maxSuggested bounds the missing nodes that are compared with all others for a typo.
	maxSuggested = 20
)

// Activities observe all nodes, and the workflows that hold some of them, for the scheduler.
type Activities struct {
	Nodes    *k8s.Nodes
	Temporal client.Client
	// Home is the namespace that the worker's workflows live in.
	Home execution.Namespace
	// Pods are those of the nodes that are Ready; nil looks at none.
	Pods *k8s.NodePods
	// Evictions come before looking for pods; nil is none.
	Evictions k8s.Load
	// PhaseCounts counts what the holders do; nil counts nothing.
	PhaseCounts *PhaseCounts

	arrived sentArrivals
}

// ObserveInput asks for counts of all nodes and for facts on some.
type ObserveInput struct {
	Groups   []schedule.Group `json:"groups,omitempty"`
	Revision int              `json:"revision"`
	// Names are the nodes whose facts are wanted.
	Names api.List[string] `json:"names"`
	// Ours are nodes that hold a slot or gave it back lately. What Drydock's own mark explains is left out of their
	// unavailability: the scheduler counts its grants itself, and a watch may lag behind a release.
	Ours api.List[string] `json:"ours,omitempty"`
	// Cluster is the name in front of its workflow IDs, Known are the marks that are expected on nodes.
	Cluster string              `json:"cluster,omitempty"`
	Known   api.List[KnownMark] `json:"known,omitempty"`
}

// Observed is an observation, and a digest of what others than Drydock can change, by which WatchCluster notices that
// it is out of date.
type Observed struct {
	Observation schedule.Observation `json:"observation"`
	Digest      string               `json:"digest"`
	// Columns are the facts where they are many (see Pack).
	Columns *FactColumns `json:"columns,omitempty"`
	// Marks are those that the scheduler does not count as its holders'.
	Marks MarksSeen `json:"marks,omitzero"`
}

// ObserveNodes returns the state of the cluster now. It costs no request while the shared watch of nodes runs.
func (c *Activities) ObserveNodes(ctx context.Context, in ObserveInput) (Observed, error) {
	grouper, err := schedule.NewGrouper(in.Groups)
	if err != nil {
		return Observed{}, err
	}
	view, err := c.Nodes.View(ctx)
	if err != nil {
		return Observed{}, failure.Translate(ctx, c.Nodes.Client(), err)
	}
	defer view.Close()
	nodes := view.List()
	ours := map[string]bool{}
	for _, name := range in.Ours {
		ours[name] = true
	}
	unavailable := func(n *corev1.Node) bool { return isOut(n) && !(ours[n.Name] && c.isMarked(n)) }
	counts := count(nodes, grouper, unavailable)
	o := schedule.Observation{
		At: time.Now(), Revision: in.Revision, Nodes: counts[""].Nodes, Unavailable: counts[""].Unavailable,
		Others: others(nodes, unavailable),
		Groups: counts, Facts: make(map[string]schedule.NodeFacts, len(in.Names)),
	}
	delete(o.Groups, "")
	var names []string
	missing := 0
	for _, name := range in.Names {
		node, ok := view.Get(name)
		if ok {
			o.Facts[name] = schedule.NodeFacts{Unavailable: unavailable(node), Groups: grouper.Keys(node.Labels)}
			continue
		}
		facts := schedule.NodeFacts{Missing: true}
		if missing++; missing <= maxSuggested {
			if names == nil {
				names = k8s.NodeNames(nodes)
			}
			facts.Suggestion = strings.Join(k8s.Similar(name, names), ", ")
		}
		o.Facts[name] = facts
	}
	seen := c.marksOn(nodes, in.Cluster, in.Known, o.At)
	return Observed{Observation: o, Digest: c.digest(nodes, grouper), Marks: seen}.Pack(in.Names), nil
}

// GlanceNodes is ObserveNodes where the shared watch of nodes runs, and an error where it does not, so that its caller waits for no
// request.
func (c *Activities) GlanceNodes(ctx context.Context, in ObserveInput) (Observed, error) {
	if !c.Nodes.IsRunning() {
		return Observed{}, errors.New("no watch of the nodes runs on this worker")
	}
	return c.ObserveNodes(ctx, in)
}

// WatchInput is what the scheduler knows: WatchCluster returns when that is no longer true.
type WatchInput struct {
	Groups []schedule.Group `json:"groups,omitempty"`
	// Digest is the last observation's; empty if nothing waits, so that only the holders matter.
	Digest  string                  `json:"digest,omitempty"`
	Holders api.List[WatchedHolder] `json:"holders,omitempty"`
	// Marked are the requests that had their mark on their node when an earlier watch looked, Missing those whose missing
	// mark or node was reported.
	Marked  api.List[string] `json:"marked,omitempty"`
	Missing api.List[string] `json:"told,omitempty"`
	// Cluster is the name in front of its workflow IDs, Known are the marks that are expected on nodes besides those of
	// the Holders.
	Cluster string              `json:"cluster,omitempty"`
	Known   api.List[KnownMark] `json:"known,omitempty"`
	// IgnoreUnknown: there are more marks that nobody knows of than can be kept.
	IgnoreUnknown bool `json:"ignoreUnknown,omitempty"`
}

// WatchedHolder is a workflow that holds a slot.
type WatchedHolder struct {
	RequestID  string `json:"requestId"`
	Node       string `json:"node"`
	WorkflowID string `json:"workflowId"`
	// RunID is the first of its chain, Since is when it was granted its slot.
	RunID string    `json:"runId"`
	Since time.Time `json:"since,omitzero"`
	// Unmarked: it marks no node, and only its workflow is looked after.
	Unmarked bool `json:"unmarked,omitempty"`
}

// WatchReport is what WatchCluster noticed.
type WatchReport struct {
	// Stale: the last observation no longer holds.
	Stale bool `json:"stale,omitempty"`
	// Ended are holders whose workflow no longer runs, so that nobody will release their slot.
	Ended api.List[EndedHolder] `json:"ended,omitempty"`
	// Changes are what happened to nodes that are held.
	Changes api.List[api.NodeChange] `json:"changes,omitempty"`
	// Marked and Missing are the next watch's.
	Marked  api.List[string] `json:"marked,omitempty"`
	Missing api.List[string] `json:"told,omitempty"`
	// Unknown are marks of this cluster's maintenances that the scheduler does not know of, Vanished those stray ones that
	// it knows and that are no more.
	Unknown  api.List[api.StrayMark] `json:"unknown,omitempty"`
	Vanished api.List[KnownMark]     `json:"vanished,omitempty"`
}

// silent reports whether there is nothing to report.
func (r WatchReport) silent() bool {
	return !r.Stale && len(r.Ended)+len(r.Changes)+len(r.Unknown)+len(r.Vanished) == 0
}

// EndedHolder is a holder that does not run any more.
type EndedHolder struct {
	WatchedHolder
	Status string `json:"status"`
}

// WatchCluster returns when something happened that the scheduler should know of: nodes became available or
// unavailable by others than Drydock, a held node was deleted, unmarked or made schedulable, or a holder's workflow
// ended without giving its slot back.
func (c *Activities) WatchCluster(ctx context.Context, in WatchInput) (WatchReport, error) {
	grouper, err := schedule.NewGrouper(in.Groups)
	if err != nil {
		return WatchReport{}, err
	}
	view, err := c.Nodes.View(ctx)
	if err != nil {
		return WatchReport{}, failure.Translate(ctx, c.Nodes.Client(), err)
	}
	defer view.Close()
	began := time.Now()
	marked := rememberMarked(ctx, in)
	known := append(knownHolders(in.Holders), in.Known...)
	unknown := unknownMarks{}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	poll := c.pollHolders(ctx, in, grouper, view)
	c.lookForArrivals(ctx, in.Holders)
	lost := lostMarks{}
	beat := time.NewTicker(heartbeat.Every)
	defer beat.Stop()
	for {
		if err := view.Err(); err != nil {
			return WatchReport{}, failure.Translate(ctx, c.Nodes.Client(), err)
		}
		activity.RecordHeartbeat(ctx, marked)
		report := WatchReport{Changes: marked.changes(shown{view, c.Nodes}, in.Holders, lost, time.Since(began) > markWithin, func(node string) bool {
			activity.RecordHeartbeat(ctx, marked)
			return c.isGone(ctx, node)
		})}
		report.Marked, report.Missing = marked.lists()
		nodes := view.List()
		report.Stale = in.Digest != "" && in.Digest != c.digest(nodes, grouper)
		marks := c.marksOn(nodes, in.Cluster, known, time.Now())
		report.Vanished, report.Ended = marks.Vanished, poll.take()
		if !in.IgnoreUnknown {
			report.Unknown = unknown.persistent(marks.Unknown, time.Now())
		}
		if !report.silent() {
			return report, nil
		}
		select {
		case <-view.Changed:
			err = pause(ctx, settle)
		case <-poll.found:
			err = pause(ctx, gather)
		case <-beat.C:
		case <-lost.due():
		case <-ctx.Done():
			return WatchReport{}, ctx.Err()
		case <-activity.GetWorkerStopChannel(ctx):
			return WatchReport{}, failure.WorkerStopping()
		}
		if err != nil {
			return WatchReport{}, err
		}
	}
}

// isGone makes sure that there is no such node: the watch of one worker may lag behind that of another, which has seen the
// node register.
func (c *Activities) isGone(ctx context.Context, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, heartbeat.Every)
	defer cancel()
	there, err := c.Nodes.Exists(ctx, node)
	return err == nil && !there
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isOut reports whether a node is out of service: by itself, or because a profile has it in maintenance.
func isOut(n *corev1.Node) bool { return nodestate.IsUnavailable(n) || isInMaintenance(n) }

func isInMaintenance(n *corev1.Node) bool {
	return n.Labels[state.StateLabel] == string(state.Maintenance)
}

func whyOut(n *corev1.Node) string {
	if nodestate.IsUnavailable(n) {
		return nodestate.WhyUnavailable(n)
	}
	return "in maintenance by a profile"
}

// others are the nodes that are unavailable, the first of them by name, and why.
func others(nodes []*corev1.Node, unavailable func(*corev1.Node) bool) []schedule.UnavailableNode {
	var found []schedule.UnavailableNode
	for _, n := range nodes {
		if unavailable(n) {
			found = append(found, schedule.UnavailableNode{Node: n.Name, Why: whyOut(n)})
		}
	}
	slices.SortFunc(found, func(a, b schedule.UnavailableNode) int { return strings.Compare(a.Node, b.Node) })
	return found[:min(len(found), maxOthers)]
}

// count counts all nodes under the key "", and those of each group under the group's.
func count(nodes []*corev1.Node, grouper schedule.Grouper, unavailable func(*corev1.Node) bool) map[string]schedule.GroupCount {
	counts := map[string]schedule.GroupCount{"": {}}
	for _, node := range nodes {
		down := 0
		if unavailable(node) {
			down = 1
		}
		for _, key := range append(grouper.Keys(node.Labels), "") {
			c := counts[key]
			counts[key] = schedule.GroupCount{Nodes: c.Nodes + 1, Unavailable: c.Unavailable + down}
		}
	}
	return counts
}
