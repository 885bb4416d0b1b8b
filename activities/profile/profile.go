// Package profile has the side effects of profiles: it evaluates all nodes, carries out triggers, writes the state on nodes, and
// sends notifications.
package profile

import (
	"context"
	"encoding/json"
	"time"

	"go.temporal.io/sdk/client"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/nodeevent"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/k8s"
	"drydock.dev/drydock/rules/preflight"
	rules "drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/rules/profile/state"
)

// Activities are the side effects of profiles.
type Activities struct {
	// Nodes are watched with all that is on them.
	Nodes    *k8s.Nodes
	Temporal client.Client
	// Namespace is the Temporal namespace of the workflows, and Home identifies it among others.
	Namespace string
	Home      execution.Namespace
	// File has the profiles; nil is that the worker has none.
	File *File
	// Defaults are the worker's defaults of maintenances, as JSON.
	Defaults json.RawMessage
	Events   nodeevent.Recorder
	Facts    Facts
	Sender   Sender
	// Counts are metrics; never nil.
	Counts Counts

	evaluators evaluators
	asked      asked
}

// Facts are what checks look at besides nodes.
type Facts interface {
	Gather(ctx context.Context, needs check.Needs, nodes []*corev1.Node) rules.Facts
	// Take takes Leases, or fails with an error that is ErrTaken of package facts.
	Take(ctx context.Context, claims []check.Claim) error
}

// Sender sends notifications; the same key is the same notification.
type Sender interface {
	Send(ctx context.Context, to notice.Notice, message notice.Message, key string) error
}

// Counts are the metrics of profiles.
type Counts interface {
	// Shown are the nodes of each profile in each state, as an evaluation sees them, and Left is that none goes on on this worker.
	Shown(counts []api.ProfileCount)
	Left()
	// Failed counts a transition that was not carried out, Entered the pods of a node that goes into maintenance.
	Failed(profile string)
	Entered(ctx context.Context, profile, node string)
}

// Ref names a profile of a node.
type Ref struct {
	Profile string `json:"profile"`
	Node    string `json:"node"`
}

// UnderWay is a transition that is carried out, or whose end the node may not show yet.
type UnderWay struct {
	Ref
	UID string `json:"uid"`
	// RunID is the first run of its workflow; empty is that it is being begun. IDTaken: another workflow runs under its ID, of which
	// only its end is waited for.
	RunID   string      `json:"runId,omitempty"`
	IDTaken bool        `json:"idTaken,omitempty"`
	To      state.State `json:"to"`
	Enter   bool        `json:"enter,omitempty"`
	Began   time.Time   `json:"began"`
	// Claims are Leases that it takes, or has taken.
	Claims []check.Claim `json:"claims,omitempty"`
	// Stopped: it was asked to end, because the node does not have the profile any more.
	Stopped bool `json:"stopped,omitempty"`
	// Ended: it has, at EndedAt, and Moved is what it wrote on the node; zero is nothing. Lost: it ended without a word, and a write of
	// its may still be on its way.
	Ended   bool      `json:"ended,omitempty"`
	EndedAt time.Time `json:"endedAt,omitzero"`
	Moved   time.Time `json:"moved,omitzero"`
	Lost    bool      `json:"lost,omitempty"`
}

// IsForward reports that a transition does not lead back to operational.
func IsForward(to state.State) bool { return to != state.Operational }

// Failed is a transition that was not carried out, and is not decided on before Until.
type Failed struct {
	Ref
	To    state.State `json:"to"`
	Enter bool        `json:"enter,omitempty"`
	Until time.Time   `json:"until"`
	Why   string      `json:"why"`
}

// Notice is a notification that is due.
type Notice struct {
	Ref
	UID      string `json:"uid"`
	Instance string `json:"instance"`
	// At is when it was due, which the node's annotation keeps.
	At time.Time `json:"at"`
	// Was is what the profile was like then.
	Was state.Profile `json:"was"`
	Why string        `json:"why,omitempty"`
}

// Key identifies a notice.
func (n Notice) Key() [3]string { return [3]string{n.Node, n.Profile, n.Instance} }

// Left is a maintenance of a profile that is not in the state any more for which it was begun. RunID is its first run.
type Left struct {
	Node      string `json:"node"`
	Requestor string `json:"requestor"`
	RunID     string `json:"runId"`
	// Done: what it was for is done, and the node is to be validated. Otherwise the node is given back as it is.
	Done bool `json:"done,omitempty"`
}

// Is reports whether both are the same maintenance.
func (l Left) Is(other Left) bool {
	l.Done = other.Done
	return l == other
}

// EvaluateInput is what the workflow knows.
type EvaluateInput struct {
	UnderWay api.List[UnderWay] `json:"underWay,omitempty"`
	Failed   api.List[Failed]   `json:"failed,omitempty"`
	Sending  api.List[Notice]   `json:"sending,omitempty"`
	Leaving  []Left             `json:"leaving,omitempty"`
	// Problem is what the workflow knows of why the file is not in force.
	Problem string `json:"problem,omitempty"`
	// Denied is what it knows of the permissions that are missing.
	Denied []preflight.Ungranted `json:"denied,omitempty"`
	// Room is how many transitions may be returned, Forward how many of them that do not lead back to operational: those that wait for
	// something must not keep others from giving it back. Notices is how many notifications.
	Room    int `json:"room"`
	Forward int `json:"forward"`
	Notices int `json:"notices"`
}

// Evaluated is what is to be done.
type Evaluated struct {
	// Absent: the worker has no profiles.
	Absent  bool                         `json:"absent,omitempty"`
	Begin   []api.ProfileTransitionInput `json:"begin,omitempty"`
	Notices []Notice                     `json:"notices,omitempty"`
	// Settled are transitions whose end the nodes show by now, Ended those that do not run though nobody said so.
	Settled []Ref      `json:"settled,omitempty"`
	Ended   []UnderWay `json:"ended,omitempty"`
	// Stop are transitions whose profile was taken from the node's label.
	Stop []Ref `json:"stop,omitempty"`
	// Leave are maintenances to end, Gone those of them that have ended.
	Leave []Left `json:"leave,omitempty"`
	Gone  []Left `json:"gone,omitempty"`
	// Problem says why the file is not in force as it stands; nil is what the workflow knows.
	Problem *string `json:"problem,omitempty"`
	// Denied are the permissions that are missing; nil is what the workflow knows.
	Denied *[]preflight.Ungranted `json:"denied,omitempty"`
}

func (e Evaluated) isEmpty() bool {
	return !e.Absent && len(e.Begin)+len(e.Notices)+len(e.Stop)+len(e.Ended)+len(e.Leave)+len(e.Gone) == 0 && len(e.Settled) < reportSettled && e.Problem == nil && e.Denied == nil
}

// reportSettled is how many transitions with a visible end are worth a result of their own.
const reportSettled = 50
