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
	flights *flights
	roster  *roster
	news    *bulletin
	office  *office
}

// identity is what a plan is: fixed once its input is read.
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

// assemble puts the parts together.
func assemble(c *core) *plan {
	p := &plan{core: c, news: &bulletin{core: c}, flights: &flights{core: c, ours: map[string]bool{}}}
	p.roster = &roster{core: c, news: p.news, stop: p.flights.stop, forget: func(node string) { delete(p.flights.ours, node) }}
	c.crowded = func() bool { return len(p.flights.ours) >= maxChildren }
	c.told = p.news.told
	p.office = &office{core: c, flights: p.flights, news: p.news, pause: p.pause}
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
		p.flights.attend()
		if p.leaving() {
			if p.idle() {
				return p.continueAsNew(root, input)
			}
		} else if p.step() {
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

// step does what is to be done now, and tells whether the plan is over.
func (p *plan) step() (over bool) {
	if p.state.Stop != "" {
		p.state.WaitingFor, p.state.Until = fmt.Sprintf("its last nodes: it ends %s then", p.state.Stop), time.Time{}
		return p.flights.none()
	}
	if p.doubts > 0 || !p.roster.known() {
		return false
	}
	d := rollout.Decide(p.spec.Strategy, p.state.Nodes, p.state.Progress, p.now())
	if d.CanaryPassed {
		p.state.Progress.CanaryPassed = true
		p.news.note("the canary has passed")
	}
	p.waitsFor(d)
	switch {
	case d.Pause != "":
		p.pause(d.Pause)
		return false
	case len(d.Start) == 0 && !d.End:
		return false
	case p.roster.stale():
		p.roster.look()
		return false
	case d.End:
		return p.flights.none()
	}
	for _, i := range d.Start[:min(len(d.Start), p.flights.room())] {
		p.flights.begin(i)
	}
	return false
}

// waitsFor keeps what a decision waits for, and tells of it where somebody has to act.
func (p *plan) waitsFor(d rollout.Decision) {
	p.state.WaitingFor, p.state.Until = d.Waits, d.Until
	if d.WaitsForApproval && !p.state.AskedApproval {
		p.state.AskedApproval = true
		p.news.tell(notices.PlanCanaryWaits, "the canary is done: approve, or cancel")
	}
}

// await waits until something happened, or for the time that the last decision named.
func (p *plan) await() error {
	woken := func() bool { return p.dirty }
	var err error
	until := p.state.Until
	if until.IsZero() || p.state.Stop != "" || p.leaving() {
		err = workflow.Await(p.ctx, woken)
	} else {
		_, err = workflow.AwaitWithOptions(p.ctx, workflow.AwaitOptions{
			Timeout: max(until.Sub(p.now()), time.Second), TimerOptions: workflow.TimerOptions{Summary: p.state.WaitingFor},
		}, woken)
	}
	p.dirty = false
	return err
}

// idle tells that nothing would be lost with this run. The ends of maintenances that run are the next run's to wait for.
func (p *plan) idle() bool {
	return p.doubts == 0 && p.flights.settled() && !p.roster.looking && p.news.told() && !p.unread() && workflow.AllHandlersFinished(p.ctx)
}

// pause begins nothing more until somebody resumes the plan.
func (p *plan) pause(why string) {
	p.state.Progress.Paused = true
	p.enter(api.PlanPaused, why)
	p.news.tell(notices.PlanPaused, why)
}

// end tells how the plan ended, and has its record kept.
func (p *plan) end() {
	counts := rollout.Count(p.state.Nodes)
	switch {
	case p.state.Stop != "":
		p.enter(p.state.Stop, p.state.StoppedWhy)
	case counts.Total == 0 && len(p.spec.Nodes) > 0:
		p.enter(api.PlanIncomplete, "none of its nodes exists")
	case counts.Total == 0:
		p.enter(api.PlanCompleted, "no node matches it")
	case counts.Failures() > 0:
		p.enter(api.PlanIncomplete, fmt.Sprintf("%d of %d nodes failed", counts.Failures(), counts.Total))
	default:
		p.enter(api.PlanCompleted, "")
	}
	p.state.WaitingFor, p.state.Until = "", time.Time{}
	meter.PlansEnded.Count(p.ctx, string(p.state.Phase))
	p.news.tell(notices.PlanEnded, p.summary())
	p.describe()
	if p.prepared.Audited {
		p.news.record()
	}
	p.news.flush()
}

// result closes the workflow: as completed, as cancelled, or as failed with the reason.
func (p *plan) result() (api.PlanResult, error) {
	result := api.PlanResult{
		Name: p.name, WorkflowID: p.workflowID, RunID: p.runID, Phase: p.state.Phase, Message: p.summary(),
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
		result.Failures = append(result.Failures, nodeOf(n))
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
