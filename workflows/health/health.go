// Package health is the workflow of a health check: it decides which of its nodes are ill, and which of them are remediated and
// when. It sees the cluster through the HealthWatch and acts through a NodeRemediation for each node.
package health

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/settings"
	"drydock/api"
	"drydock/rules/health"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/loop"
	"drydock/workflows/reset"
)

// check is one run of HealthCheck. It is made of parts, which share the core.
type check struct {
	*core
	lookout  *lookout
	fleet    *fleet
	stock    *stock
	bulletin *bulletin
	office   *office
}

// identity is what a check is: fixed from its start.
type identity struct {
	cluster, name, workflowID string
	// runID is the first run of the chain.
	runID string
}

// core is what all parts share.
type core struct {
	*loop.Loop
	identity
	state state
}

// Check decides which nodes are ill, and has them remediated. Its workflow ID is api.HealthCheckID, its input a health.Spec
// in JSON. Packed is what a run hands to the next.
func Check(ctx workflow.Context, input converter.RawValue, packed []byte) error {
	c, err := newCheck(ctx, inbox.Payload(input), packed)
	if err != nil {
		return err
	}
	if err := c.listen(ctx); err != nil {
		return err
	}
	return reset.Run(ctx, c.wasReset, func(root workflow.Context) error {
		c.Ctx, _ = workflow.NewDisconnectedContext(root) // somebody who cancels it asks for its end, see office
		if err := c.prepare(); err != nil {
			return err
		}
		return c.run(root, input)
	})
}

func newCheck(root workflow.Context, input, packed []byte) (*check, error) {
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	cluster, name, err := api.ParseHealthCheckID(info.WorkflowExecution.ID)
	if err == nil && cluster != api.ClusterOf(info.TaskQueueName) {
		err = fmt.Errorf("workflow ID %q is of cluster %q, and its task queue is of cluster %q",
			info.WorkflowExecution.ID, cluster, api.ClusterOf(info.TaskQueueName))
	}
	if err != nil {
		return nil, inbox.InvalidSpec(err)
	}
	original := cmp.Or(info.OriginalRunID, info.WorkflowExecution.RunID)
	c := &core{Loop: &loop.Loop{Ctx: ctx, Dirty: true}, identity: identity{
		cluster: cluster, name: name, workflowID: info.WorkflowExecution.ID, runID: cmp.Or(info.FirstRunID, original),
	}}
	spec, err := health.Decode(input)
	if err != nil {
		return nil, inbox.InvalidSpec(err)
	}
	c.state = state{Spec: spec, CreatedAt: info.WorkflowStartTime}
	if len(packed) > 0 {
		if !inbox.IsContinued(root) {
			return nil, inbox.InvalidSpec(errors.New("a second input is what a run hands to the next: give the check only"))
		}
		if c.state, err = unpack(packed); err != nil {
			return nil, inbox.InvalidSpec(err)
		}
	}
	c.ContinueAfter = c.state.ContinueAfter
	return assemble(c), nil
}

// assemble puts the parts together.
func assemble(c *core) *check {
	k := &check{core: c, bulletin: &bulletin{core: c}}
	k.lookout = &lookout{core: c}
	k.fleet = &fleet{core: c, legs: map[string]*leg{}}
	k.stock = &stock{core: c, fleet: k.fleet, silent: map[string]bool{}}
	k.fleet.heardOf, k.fleet.suspect = k.stock.heardOf, k.stock.suspect
	k.office = &office{core: c}
	k.lookout.ended = k.fleet.doubt
	c.Crowded, c.Telling = k.fleet.crowded, k.bulletin.telling
	return k
}

// prepare finds out what the worker's configuration makes of the check, once.
func (c *check) prepare() error {
	if c.state.Prepared != nil {
		return nil
	}
	prepared, err := c.resolve(c.Ctx, c.state.Spec)
	if err != nil {
		return err
	}
	c.state.Prepared = &prepared
	c.register()
	return nil
}

// resolve has the worker look up what a spec names of its configuration.
func (c *core) resolve(ctx workflow.Context, spec health.Spec) (settings.Prepared, error) {
	var first settings.Prepared
	for i, sample := range samples(c.name, spec) {
		var prepared settings.Prepared
		if err := workflow.ExecuteLocalActivity(call.Local(ctx), call.Settings.Prepare, sample).Get(ctx, &prepared); err != nil {
			return first, fmt.Errorf("preparing: %w", err)
		}
		if prepared.Unknown != "" {
			return first, inbox.InvalidSpec(errors.New(prepared.Unknown))
		}
		if i == 0 {
			first = settings.Prepared{
				Starter: prepared.Starter, SearchAttributes: prepared.SearchAttributes, Kinds: prepared.Kinds, Channels: prepared.Channels,
				Audited: prepared.Audited,
			}
		}
	}
	return first, nil
}

// samples are the inputs of maintenances that name all that a spec does of the worker's configuration; the first has the
// channels of the check.
func samples(name string, spec health.Spec) []json.RawMessage {
	told := map[string]any{"node": "any"}
	if spec.Notify != nil {
		told["notify"] = *spec.Notify
	}
	first, _ := json.Marshal(told) // of texts
	all := []json.RawMessage{first}
	for _, step := range spec.Steps() {
		if step.Maintenance == nil {
			continue
		}
		if input, err := step.Maintenance.InputOf("any", api.RemediationRequestor(name)); err == nil { // it was decoded
			all = append(all, input)
		}
	}
	return all
}

// register makes the check findable.
func (c *core) register() {
	attributes := c.attributes(api.KindHealthCheck)
	if len(attributes) == 0 {
		return
	}
	if err := workflow.UpsertTypedSearchAttributes(c.Ctx, attributes...); err != nil {
		workflow.GetLogger(c.Ctx).Error("setting search attributes", "error", err)
	}
}

// attributes are the search attributes of a workflow of the check, none where the namespace has none.
func (c *core) attributes(kind string, more ...temporal.SearchAttributeUpdate) []temporal.SearchAttributeUpdate {
	if !c.state.Prepared.SearchAttributes {
		return nil
	}
	attributes := append(more, api.AttributeRequestor.ValueSet(api.RemediationRequestor(c.name)), api.AttributeCluster.ValueSet(c.cluster))
	if c.state.Prepared.Kinds {
		attributes = append(attributes, api.AttributeKind.ValueSet(kind))
	}
	return attributes
}

// run decides whenever something happened, until the check is removed.
func (c *check) run(root workflow.Context, input converter.RawValue) error {
	for {
		c.Dirty = false
		c.judge()
		switch {
		case c.Leaving():
			if c.IsIdle() {
				return c.continueAsNew(root, input)
			}
		case c.step():
			c.describe()
			return nil
		}
		c.describe()
		if err := c.Await(); err != nil {
			return err
		}
	}
}

// step does what is to be done now, and tells whether it is all over.
func (c *check) step() (over bool) {
	if c.state.Removed {
		c.lookout.leave()
		return c.lookout.left && c.IsIdle()
	}
	if !c.stock.known() {
		return false
	}
	c.decide()
	c.fleet.run()
	c.lookout.tell()
	return false
}

// decide has the rules say what is to be done, and does it.
func (c *check) decide() {
	d := health.Decide(health.Input{Spec: c.state.Spec, State: c.state.Health, Now: c.Now(), Waiting: c.fleet.waiting()})
	c.state.Health = d.State
	c.fleet.withdraw(d.Withdrawn)
	c.fleet.begin(d.Begin)
	c.lookout.intend(d)
	c.bulletin.tell(d.Events)
	c.WakeAt(d.Wake, "decide again: a duration is over, a step's time, or a delay")
}

// wasReset has everything found out anew: this run goes on from the past, and what was done since is not in its history.
func (c *check) wasReset(ctx workflow.Context) (runID string, err error) {
	c.note("finding out anew which remediations run", "this run was reset: what was done since is not in its history")
	c.stock.doubt()
	c.lookout.anew()
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	c.Dirty = true
	return runID, err
}

func (c *core) note(what, why string) { c.Note(&c.state.Carried, what, why) }

// fails keeps for people that an activity fails, which is tried again.
func (c *core) fails(what string, err error, next time.Time) {
	c.Fails(&c.state.Carried, what, call.Cause(err), next)
}

// troubles are what fails in the check and in the watch.
func (c *core) troubles() []api.Trouble { return slices.Concat(c.Troubles(), c.state.Watch) }

// within is how an activity is called that is begun again where it does not succeed in time: none may keep a check from
// deciding or from continuing as new.
func (c *core) within(summary string) workflow.Context {
	return call.Within(call.Quick(c.Ctx, summary), actWithin)
}

const actWithin = time.Minute
