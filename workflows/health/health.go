// Package health is the workflow of a health check: it decides which of its nodes are ill, and which of them are remediated and
// when. It has its nodes watched, and acts through a NodeRemediation for each node.
package health

import (
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	activity "drydock.dev/drydock/activities/health"
	"drydock.dev/drydock/activities/node"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
	"drydock.dev/drydock/workflows/announce"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/inbox"
)

// check is the state of a HealthCheck.
type check struct {
	controller.Base
	announce.Outbox
	// Spec is the check as it was configured last.
	Spec      health.Spec  `json:"spec"`
	Health    health.State `json:"health"`
	CreatedAt time.Time    `json:"createdAt"`
	// Prepared is what the worker's configuration makes of the spec; nil is that the worker has not said so yet.
	Prepared *settings.Prepared `json:"prepared,omitempty"`
	// Candidate is a spec that the worker has still to judge.
	Candidate *health.Spec `json:"candidate,omitempty"`
	Judging   judging      `json:"judging,omitzero"`
	// Refused is why the latest candidate was not taken, Invalid why the check cannot begin.
	Refused string `json:"refused,omitempty"`
	Invalid string `json:"invalid,omitempty"`
	// Known: the remediations that run are. Silent are the nodes of those that have not said how far they are; until Patience the check
	// decides nothing without them.
	Known    bool      `json:"known,omitempty"`
	Silent   []string  `json:"silent,omitempty"`
	Patience time.Time `json:"patience,omitzero"`
	// Suspected: a remediation has spoken of which nothing is known. RecountAt is when what runs was last counted because of that.
	Suspected bool      `json:"suspected,omitempty"`
	RecountAt time.Time `json:"recountAt,omitzero"`
	// Queue are remediations that were decided on and have not begun.
	Queue []health.Begin `json:"queue,omitempty"`
	// Children are the workflows that remediate nodes, by node. It is only looked up in.
	Children map[string]child `json:"children,omitempty"`
	// View counts how often everything is to be seen anew: what a watch of an earlier view reports says nothing. Reported is what watches of
	// this view have reported. DeniedAt is since when they may not look at something.
	View     int            `json:"view,omitempty"`
	Reported activity.Known `json:"reported,omitzero"`
	DeniedAt time.Time      `json:"deniedAt,omitzero"`
	// Removed: the check ends.
	Removed   bool      `json:"removed,omitempty"`
	RemovedAt time.Time `json:"removedAt,omitzero"`
	// Events are the latest, Sequence is the number of the last. Unrecorded are those that Kubernetes has not been given yet.
	Events     []api.HealthEvent `json:"events,omitempty"`
	Sequence   int               `json:"sequence,omitempty"`
	Unrecorded []node.EventOn    `json:"unrecorded,omitempty"`

	name string
	// given is the spec that the workflow was started with.
	given health.Spec
}

// child is the workflow that remediates a node.
type child struct {
	// Run is its first run where that is known; reports of others do not count.
	Run string `json:"run,omitempty"`
	// BegunAt is when this check has started it, and Revision that of the order that it was started with.
	BegunAt  time.Time `json:"begunAt,omitzero"`
	Revision int       `json:"revision,omitempty"`
	// Ask: query whether it runs, and how far it is. Lost: it does not run and is restarted.
	Ask  bool `json:"ask,omitempty"`
	Lost bool `json:"lost,omitempty"`
}

var queries = []controller.Query[*check]{
	{Name: api.QueryStatus, Doc: "phase, counts, what blocks, and a page of the nodes that are not healthy", Question: status{}},
	{Name: api.QueryExplain, Doc: "what the check makes of a node: which condition since when, what blocks, what comes next", Question: explain{}},
}

// Check decides which nodes are ill, and has them remediated. Its workflow ID is api.HealthCheckID, its input a health.Spec
// in JSON. Packed is what a run hands to the next.
func Check(ctx workflow.Context, input converter.RawValue, packed []byte) error {
	c, err := newCheck(controller.Identify(ctx), inbox.Payload(input))
	if err != nil {
		return inbox.InvalidSpec(err)
	}
	return c.run(ctx, input, packed)
}

func newCheck(info controller.Info, input []byte) (*check, error) {
	cluster, name, err := api.ParseHealthCheckID(info.WorkflowID)
	c := &check{name: name}
	if err = info.Check(cluster, err); err == nil {
		c.given, err = health.Decode(input)
	}
	return c, err
}

func (c *check) run(ctx workflow.Context, input converter.RawValue, packed []byte) error {
	return controller.Run(ctx, c, controller.Program[*check]{
		Type: api.HealthCheckType, Messages: messages, Queries: queries, Input: input,
	}, packed)
}

func (c *check) Begin(time.Time) { c.Spec, c.CreatedAt = c.given, c.Info.Started }

// Reset implements controller.Controller: what was seen is from before the point that the run was reset to.
func (c *check) Reset(time.Time) {
	c.Known, c.Suspected, c.Silent = false, false, nil
	c.Health.Forget()
	c.seeAnew()
}

// seeAnew has the watch report everything.
func (c *check) seeAnew() {
	c.View++
	c.Reported = activity.Known{Denied: c.Reported.Denied, Around: c.Reported.Around}
}

// Cancel implements controller.Controller: it asks for the end of the check.
func (c *check) Cancel(now time.Time) { controller.CancelAs[*check](c, remove{}, now) }

// remediation is the one that runs of a node; nil is none.
func (c *check) remediation(node string) *health.Running {
	n, _ := c.Health.Node(node)
	return n.Remediation
}

// presentRun is the run of a node's remediation, empty if that is not known.
func (c *check) presentRun(node string) string {
	if run := c.Children[node].Run; run != "" {
		return run
	}
	if r := c.remediation(node); r != nil && r.Progress != nil {
		return r.Progress.RunID
	}
	return ""
}

// setChild keeps what is known of the workflow of a node's remediation.
func (c *check) setChild(node string, one child) {
	if c.Children == nil {
		c.Children = map[string]child{}
	}
	c.Children[node] = one
}

// maxTroubled bounds the nodes that the check reports as impossible to remediate.
const maxTroubled = 5

// nodeTroubles are what kept remediations from beginning that are tried again.
func (c *check) nodeTroubles(now time.Time) (all []api.Trouble) {
	for _, n := range c.Health.Nodes {
		if past := n.Past; n.Remediation == nil && past != nil && past.Trouble != "" && now.Before(past.RetryAt) && len(all) < maxTroubled {
			all = append(all, api.Trouble{What: "node " + n.Name + " is not remediated", Why: past.Trouble, Since: past.EndedAt, NextTry: past.RetryAt})
		}
	}
	return all
}

// troubles are what fails, in the check and in its watch.
func (c *check) troubles(now time.Time) []api.Trouble {
	all := c.Troubles()
	if c.Reported.Denied != "" {
		all = append(all, api.Trouble{
			What: "some of what the check depends on cannot be looked at", Why: c.Reported.Denied, Since: c.DeniedAt, NextTry: now.Add(activity.LookEvery),
		})
	}
	return all
}
