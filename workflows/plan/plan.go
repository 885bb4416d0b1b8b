// Package plan is the workflow of a maintenance plan: many nodes under one intent, each in a maintenance of its own.
package plan

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/settings"
	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/rollout"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/meter"
	"drydock/workflows/reset"
)

// plan is one run of MaintenancePlan. It is made of parts, which share the core.
type plan struct {
	*core
	course course
	roster *roster
	news   *bulletin
	office *office
}

// course is how the nodes of a plan go: one after the other, or together.
type course interface {
	// listen takes the messages that are of this course only, and handlers are those that people and scripts send to any plan.
	listen(in *inbox.Inbox)
	handlers() []inbox.Handler
	// attend has what is under way be waited for.
	attend()
	// step does what is to be done now, and tells whether the plan is over.
	step() (over bool)
	// wake is when to look again, if nothing happens before, and for what; zero is never.
	wake() (at time.Time, what string)
	// settled tells that nothing is under way that a next run could not find out about.
	settled() bool
	// stop ends the plan so, and gives back what can be; effect says in words what that is.
	stop(phase api.PlanPhase, why string)
	stopping() (effect string)
	// copied takes up what an earlier run did that this one is a copy of.
	copied(ctx workflow.Context) error
	// end is how the plan has ended, and why.
	end() (phase api.PlanPhase, why string)
}

// identity is what a plan is: fixed once its input is read, but for how it chooses its nodes.
type identity struct {
	cluster, name, workflowID string
	// runID is the first run of the chain.
	runID string
	spec  rollout.Plan
}

// MaintenancePlan takes many nodes out of service and brings them back, in the order and at the pace of its strategy. Its
// workflow ID is api.PlanID, its input a rollout.Plan in JSON. Packed is what a run hands to the next.
func MaintenancePlan(ctx workflow.Context, input converter.RawValue, packed []byte) (api.PlanResult, error) {
	p, err := newPlan(ctx, inbox.Payload(input), packed)
	if err != nil {
		return api.PlanResult{}, err
	}
	if err := p.office.listen(ctx); err != nil {
		return api.PlanResult{}, err
	}
	var result api.PlanResult
	err = reset.Run(ctx, p.wasReset, func(root workflow.Context) error {
		p.ctx, _ = workflow.NewDisconnectedContext(root) // the procedure waits in a coroutine of its own
		if err := p.prepare(); err != nil {
			return err
		}
		if err := p.run(root, input); err != nil {
			return err
		}
		var err error
		result, err = p.result()
		return err
	})
	return result, err
}

func newPlan(root workflow.Context, input, packed []byte) (*plan, error) {
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	cluster, name, err := api.ParsePlanID(info.WorkflowExecution.ID)
	if err == nil && cluster != api.ClusterOf(info.TaskQueueName) {
		err = fmt.Errorf("workflow ID %q is of cluster %q, and its task queue is of cluster %q",
			info.WorkflowExecution.ID, cluster, api.ClusterOf(info.TaskQueueName))
	}
	if err != nil {
		return nil, inbox.InvalidSpec(err)
	}
	original := cmp.Or(info.OriginalRunID, info.WorkflowExecution.RunID)
	c := &core{ctx: ctx, dirty: true, identity: identity{
		cluster: cluster, name: name, workflowID: info.WorkflowExecution.ID, runID: cmp.Or(info.FirstRunID, original),
	}}
	if c.spec, err = rollout.Decode(name, input); err == nil {
		err = inbox.Days[rollout.Plan](ctx, input)
	}
	if err != nil {
		return nil, inbox.InvalidSpec(err)
	}
	if c.spec.Together() && workflow.GetVersion(ctx, changeStages, workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		return nil, inbox.InvalidSpec(fmt.Errorf("strategy.type: %q is not one of %s", rollout.AllAtOnce, rollout.Rolling))
	}
	if why := c.spec.Reserved(); why != nil && !inbox.IsContinued(root) &&
		workflow.GetVersion(ctx, changeReserved, workflow.DefaultVersion, 1) != workflow.DefaultVersion {
		return nil, inbox.InvalidSpec(why)
	}
	c.state = state{Phase: api.PlanRunning, Since: workflow.Now(root), CreatedAt: info.WorkflowStartTime}
	if len(packed) > 0 {
		if !inbox.IsContinued(root) {
			return nil, inbox.InvalidSpec(errors.New("a second input is what a run hands to the next: give the plan only"))
		}
		if c.state, err = unpack(packed); err != nil {
			return nil, inbox.InvalidSpec(err)
		}
	}
	return assemble(c), nil
}

// changeStages: there are plans whose nodes go through stages together. Before, such an input was refused.
const changeStages = "plan-stages"

// changeReserved: the requestor of the maintenances that plans share is that of no other plan. Before, such a plan began.
const changeReserved = "plan-reserved-requestor"

// assemble puts the parts together.
func assemble(c *core) *plan {
	p := &plan{core: c, news: &bulletin{core: c}}
	p.roster = &roster{core: c, news: p.news}
	c.crowded = func() bool { return false }
	c.told, c.summarize = p.news.told, c.summary
	if c.spec.Together() {
		p.course = newStages(c, p.roster, p.news)
	} else {
		p.course = newRolling(c, p.roster, p.news)
	}
	p.roster.stop = p.course.stop
	p.office = &office{core: c, course: p.course}
	return p
}

// prepare finds out what the worker's configuration makes of the plan, once.
func (p *plan) prepare() error {
	if p.state.Prepared != nil {
		p.prepared = *p.state.Prepared
		return nil
	}
	sample, err := p.spec.InputOf("any", p.now())
	if err != nil {
		return inbox.InvalidSpec(err)
	}
	if err := workflow.ExecuteLocalActivity(call.Local(p.ctx), call.Settings.Prepare, json.RawMessage(sample)).Get(p.ctx, &p.prepared); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	if p.prepared.Unknown != "" {
		return inbox.InvalidSpec(errors.New(p.spec.InPlan(p.prepared.Unknown)))
	}
	// Defaults, hooks and the policy are the maintenances' own to look up.
	p.prepared = settings.Prepared{
		Starter: p.prepared.Starter, SearchAttributes: p.prepared.SearchAttributes, Kinds: p.prepared.Kinds,
		Channels: p.prepared.Channels, Audited: p.prepared.Audited,
	}
	p.state.Prepared = &p.prepared
	p.register()
	p.news.tell(notices.PlanBegun, p.spec.Reason)
	return nil
}

// register makes the plan findable.
func (p *plan) register() {
	attributes := []temporal.SearchAttributeUpdate{
		api.AttributeRequestor.ValueSet(p.spec.Requestor), api.AttributeCluster.ValueSet(p.cluster),
		api.AttributePhase.ValueSet(string(p.state.Phase)),
	}
	if p.prepared.Kinds {
		attributes = append(attributes, api.AttributeKind.ValueSet(api.KindPlan))
	}
	p.attribute(attributes...)
}

// run decides whenever something happened, until nothing is left to do.
func (p *plan) run(root workflow.Context, input converter.RawValue) error {
	for {
		p.course.attend()
		if p.leaving() {
			if p.idle() {
				return p.continueAsNew(root, input)
			}
		} else if p.course.step() {
			break
		}
		p.describe()
		if err := p.await(); err != nil {
			return err
		}
	}
	p.end()
	return nil
}

// await waits until something happened, or for the time that the course names.
func (p *plan) await() error {
	woken := func() bool { return p.dirty }
	var err error
	at, what := p.course.wake()
	if at.IsZero() || p.leaving() {
		err = workflow.Await(p.ctx, woken)
	} else {
		_, err = workflow.AwaitWithOptions(p.ctx, workflow.AwaitOptions{
			Timeout: max(at.Sub(p.now()), time.Second), TimerOptions: workflow.TimerOptions{Summary: what},
		}, woken)
	}
	p.dirty = false
	return err
}

// idle tells that nothing would be lost with this run. The ends of maintenances that run are the next run's to wait for.
func (p *plan) idle() bool {
	return p.doubts == 0 && p.course.settled() && !p.roster.looking && p.news.told() && !p.unread() && workflow.AllHandlersFinished(p.ctx)
}

// end tells how the plan ended, and has its record kept.
func (p *plan) end() {
	p.enter(p.course.end())
	p.state.WaitingFor, p.state.Until = "", time.Time{}
	meter.PlansEnded.Count(p.ctx, string(p.state.Phase))
	p.news.tell(notices.PlanEnded, p.summarize())
	p.describe()
	if p.prepared.Audited {
		p.news.record()
	}
	p.news.flush()
}

// result closes the workflow: as completed, as cancelled, or as failed with the reason.
func (p *plan) result() (api.PlanResult, error) {
	result := api.PlanResult{
		Name: p.name, WorkflowID: p.workflowID, RunID: p.runID, Phase: p.state.Phase, Message: p.summarize(),
		CreatedAt: p.state.CreatedAt, EndedAt: p.state.Since, Counts: rollout.Count(p.state.Nodes),
	}
	for i := range p.state.Nodes {
		n := &p.state.Nodes[i]
		if n.State != rollout.Failed && n.State != rollout.Held {
			continue
		}
		if len(result.Failures) == maxFailures {
			result.MoreFailures++
			continue
		}
		result.Failures = append(result.Failures, p.nodeOf(n))
	}
	switch p.state.Phase {
	case api.PlanCancelled:
		return result, temporal.NewCanceledError(result)
	case api.PlanIncomplete, api.PlanAborted:
		return result, temporal.NewNonRetryableApplicationError(result.Message, api.ErrorPlanIncomplete, nil, result)
	}
	return result, nil
}

// maxFailures bounds the failures of a result.
const maxFailures = 100
