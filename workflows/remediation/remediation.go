// Package remediation is the workflow of one remediation of one node by a health check: it takes the node's lease, makes the
// remediation objects or has the node maintained, and takes all of it back once the check says that the node is healthy. What is
// to be done the check decides, by its orders.
package remediation

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	activity "drydock/activities/health"
	"drydock/api"
	"drydock/rules/bounds"
	"drydock/rules/health"
	"drydock/workflows/auditrecord"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
	"drydock/workflows/loop"
	"drydock/workflows/reset"
)

// remediation is one run of NodeRemediation. It is made of parts, which share the core.
type remediation struct {
	*core
	messenger *messenger
	hand      *hand
	eye       *eye
}

// identity is what a remediation is: fixed once its input is read.
type identity struct {
	cluster, check, node, workflowID string
	// runID is the first run of the chain.
	runID string
	in    api.RemediationInput
}

// core is what all parts share.
type core struct {
	*loop.Loop
	identity
	state state
}

// state is all that a run hands to the next.
type state struct {
	// Order is the latest that was taken, and CheckRunID the run of the check that gave it.
	Order      health.Order `json:"order"`
	CheckRunID string       `json:"checkRunId"`
	BeganAt    time.Time    `json:"beganAt"`
	// Leased: the node's lease is held.
	Leased bool `json:"leased,omitempty"`
	// Maintained are the maintenances that steps have begun.
	Maintained []Maintained `json:"maintained,omitempty"`
	// Progress is what there is to say; Told what the check was told last, and when.
	Progress health.Progress `json:"progress"`
	Told     string          `json:"told,omitempty"`
	ToldAt   time.Time       `json:"toldAt,omitzero"`
	// Old: the objects that are older than 48 h are marked.
	Old bool `json:"old,omitempty"`
	// Ending says why it ends without an order.
	Ending string `json:"ending,omitempty"`
	// Recovered: the node was seen healthy or gone while no check answered.
	Recovered bool `json:"recovered,omitempty"`
	// Orphaned is since when the check does not run.
	Orphaned time.Time `json:"orphaned,omitzero"`
	// Sought: what maintenance an earlier workflow has left is known.
	Sought bool `json:"sought,omitempty"`
	loop.Carried
}

// NodeRemediation remediates a node for a health check. Its workflow ID is api.RemediationID, its input an api.RemediationInput.
// Packed is what a run hands to the next.
func NodeRemediation(ctx workflow.Context, input converter.RawValue, packed []byte) (api.RemediationProgress, error) {
	r, err := newRemediation(ctx, inbox.Payload(input), packed)
	if err != nil {
		return api.RemediationProgress{}, err
	}
	if err := r.listen(ctx); err != nil {
		return api.RemediationProgress{}, err
	}
	err = reset.Run(ctx, r.wasReset, func(root workflow.Context) error {
		r.Ctx, _ = workflow.NewDisconnectedContext(root)
		return r.run(root, input)
	})
	return r.state.Progress, err
}

func newRemediation(root workflow.Context, input, packed []byte) (*remediation, error) {
	ctx, _ := workflow.NewDisconnectedContext(root)
	info := workflow.GetInfo(root)
	var in api.RemediationInput
	cluster, check, node, err := api.ParseRemediationID(info.WorkflowExecution.ID)
	if err == nil && cluster != api.ClusterOf(info.TaskQueueName) {
		err = fmt.Errorf("workflow ID %q is of cluster %q, and its task queue is of cluster %q",
			info.WorkflowExecution.ID, cluster, api.ClusterOf(info.TaskQueueName))
	}
	if err == nil {
		in, err = decode(input, check, node)
	}
	if err != nil {
		return nil, inbox.InvalidSpec(err)
	}
	original := cmp.Or(info.OriginalRunID, info.WorkflowExecution.RunID)
	c := &core{Loop: &loop.Loop{Ctx: ctx, Dirty: true}, identity: identity{
		cluster: cluster, check: check, node: node, workflowID: info.WorkflowExecution.ID, runID: cmp.Or(info.FirstRunID, original), in: in,
	}}
	c.state = state{
		Order: health.Order{Node: node, Step: in.Step, Revision: in.Revision, Why: in.Why}, CheckRunID: in.CheckRunID, BeganAt: info.WorkflowStartTime,
		Progress: health.Progress{
			Node: node, UID: in.UID, ControlPlane: in.ControlPlane, RunID: c.runID, Revision: in.Revision, Step: in.Step, StartedAt: info.WorkflowStartTime,
		},
	}
	if in.Resume {
		c.state.Progress.Steps = in.Left
		c.state.Leased = c.began()
	}
	if len(packed) > 0 {
		if !inbox.IsContinued(root) {
			return nil, inbox.InvalidSpec(errors.New("a second input is what a run hands to the next: give the remediation only"))
		}
		if err := api.Unpack(packed, &c.state); err != nil {
			return nil, inbox.InvalidSpec(fmt.Errorf("carried state: %w", err))
		}
	}
	c.ContinueAfter = c.state.ContinueAfter
	return assemble(c), nil
}

// maxSteps bounds the steps of a check.
const maxSteps = 50

// decode reads the input of the remediation of a node by a check.
func decode(input []byte, check, node string) (api.RemediationInput, error) {
	in, err := inbox.Decode[api.RemediationInput](input)
	switch {
	case err != nil:
		return in, err
	case in.Check != check || in.Node != node:
		return in, fmt.Errorf("check, node: the workflow ID is that of %s and %s", check, node)
	case len(in.Steps) == 0 || len(in.Steps) > maxSteps:
		return in, fmt.Errorf("steps: there are %d: want 1 to %d", len(in.Steps), maxSteps)
	case in.Step < 0 || in.Step >= len(in.Steps):
		return in, fmt.Errorf("step: %d: want 0 to %d", in.Step, len(in.Steps)-1)
	case in.Revision < 0:
		return in, fmt.Errorf("revision: %d is negative", in.Revision)
	case api.RunID(in.CheckRunID) != nil:
		return in, fmt.Errorf("checkRunId: %w", api.RunID(in.CheckRunID))
	}
	for i, step := range in.Steps {
		if (step.Template == nil) == (step.Maintenance == nil) {
			return in, fmt.Errorf("steps[%d]: want either template or maintenance", i)
		}
	}
	in.Why = bounds.Cut(in.Why, bounds.Text)
	return in, nil
}

// assemble puts the parts together.
func assemble(c *core) *remediation {
	r := &remediation{core: c, messenger: &messenger{core: c}, hand: &hand{core: c}}
	r.hand.repairs = &repairs{core: c, hand: r.hand}
	r.eye = &eye{core: c}
	r.hand.changed = func(seen *activity.RemediationSeen) { r.eye.known = seen }
	return r
}

// run does what the orders ask for, until nothing of the remediation is left.
func (r *remediation) run(root workflow.Context, input converter.RawValue) error {
	for {
		r.Dirty = false
		switch {
		case r.Leaving():
			r.eye.shut()
			r.hand.repairs.rest()
			if r.IsIdle() {
				packed, err := api.Pack(r.state)
				if err != nil {
					return err
				}
				return workflow.NewContinueAsNewError(root, api.NodeRemediationType, input, packed)
			}
		case r.step():
			r.describe()
			r.record()
			return nil
		}
		r.describe()
		if err := r.Await(); err != nil {
			return err
		}
	}
}

// record has the audit record kept of a remediation that has begun something.
func (r *remediation) record() {
	begun := slices.ContainsFunc(r.state.Progress.Steps, func(s health.StepState) bool { return !s.StartedAt.IsZero() })
	if !r.in.Audited || !begun {
		return
	}
	var attributes []temporal.SearchAttributeUpdate
	if _, kinds := workflow.GetTypedSearchAttributes(r.Ctx).GetKeyword(api.AttributeKind); kinds {
		attributes = []temporal.SearchAttributeUpdate{api.AttributeKind.ValueSet(api.KindRecord), api.AttributeCluster.ValueSet(r.cluster)}
	}
	id := api.RemediationRecordID(r.cluster, r.identity.check, r.node, r.runID)
	auditrecord.Begin(r.Ctx, id, "record of the remediation of "+r.node, api.Reference{WorkflowID: r.workflowID, RunID: r.runID}, attributes,
		func(id string, why error) { r.note("the audit record was not begun as "+id, call.Cause(why)) })
}

// step does what is to be done now, and tells whether it is all over.
func (r *remediation) step() (over bool) {
	if !r.ends() && !r.hand.busy {
		r.state.Ending = r.pointless()
	}
	switch {
	case r.state.Progress.Ended:
	case r.hand.busy:
	case r.hand.rests():
		if !r.ends() {
			r.eye.open()
		}
	case r.seeks():
		r.hand.seek()
	case r.ends() && r.hand.removing && r.left():
		r.eye.open()
	case r.ends():
		r.eye.shut()
		r.hand.clear()
	case len(r.unmarked()) > 0: // a remediator is told to stop before the next one begins
		r.hand.mark(r.unmarked())
	case r.missing() >= 0:
		r.hand.make(r.missing())
	case r.state.Order.Old && !r.state.Old:
		r.hand.mark(nil)
	default:
		r.eye.open()
	}
	if r.state.Progress.Ended {
		r.eye.shut()
	}
	r.hand.repairs.follow()
	r.messenger.tell()
	return r.state.Progress.Ended && r.messenger.done()
}

// ends tells that everything is to be taken back.
func (c *core) ends() bool { return c.state.Order.Healthy || c.state.Ending != "" }

// pointless says why it ends without an order; empty is that it goes on.
func (r *remediation) pointless() string {
	switch {
	case r.deserted():
		return "somebody has deleted what remediates the node"
	case r.began() || r.seeks():
		return ""
	case r.in.Resume: // whether it begins anew is for the check to decide
		return "an earlier workflow of it has ended without a word"
	case r.alone():
		return "its check does not run, and nothing has begun"
	default:
		return ""
	}
}

// seeks tells that an earlier workflow may have begun a maintenance, and it is not known which.
func (c *core) seeks() bool {
	return c.in.Resume && !c.state.Sought &&
		slices.ContainsFunc(c.in.Steps, func(s health.Remediation) bool { return s.Maintenance != nil })
}

// missing is the index of the step that should be at work and has not begun, -1 where there is none.
func (c *core) missing() int {
	want := c.state.Order.Step
	if s := c.stepState(want); s != nil && !s.StartedAt.IsZero() {
		return -1
	}
	if c.in.Resume && c.state.Order.Revision == 0 {
		return -1 // the check has not said yet what it wants
	}
	return want
}

// deserted tells that nothing is left of what was begun, though nobody has ordered that.
func (c *core) deserted() bool {
	return c.missing() < 0 && !c.began() &&
		slices.ContainsFunc(c.state.Progress.Steps, func(s health.StepState) bool { return s.Resource != nil && s.Gone })
}

// left tells that there are remediation objects.
func (c *core) left() bool {
	return slices.ContainsFunc(c.state.Progress.Steps, func(s health.StepState) bool { return s.Resource != nil && !s.Gone })
}

// unmarked are the steps that have timed out and are not marked so.
func (c *core) unmarked() (steps []int) {
	for _, i := range c.state.Order.TimedOut {
		if s := c.stepState(i); s != nil && !s.StartedAt.IsZero() && s.TimedOut == nil && !s.Gone {
			steps = append(steps, i)
		}
	}
	return steps
}

func (c *core) stepState(index int) *health.StepState {
	i := slices.IndexFunc(c.state.Progress.Steps, func(s health.StepState) bool { return s.Index == index })
	if i < 0 {
		return nil
	}
	return &c.state.Progress.Steps[i]
}

// began tells that something of a step is there.
func (c *core) began() bool {
	return slices.ContainsFunc(c.state.Progress.Steps, func(s health.StepState) bool { return !s.StartedAt.IsZero() && !s.Gone })
}

// setStep keeps how a step stands.
func (c *core) setStep(s health.StepState) {
	s.Failure = bounds.Cut(s.Failure, bounds.Text)
	if known := c.stepState(s.Index); known != nil {
		*known = s
		return
	}
	c.state.Progress.Steps = append(c.state.Progress.Steps, s)
	slices.SortFunc(c.state.Progress.Steps, func(a, b health.StepState) int { return cmp.Compare(a.Index, b.Index) })
}

// wasReset has everything found out anew: what was done since is not in the history of this run.
func (r *remediation) wasReset(ctx workflow.Context) (runID string, err error) {
	r.note("finding out anew what there is", "this run was reset: what was done since is not in its history")
	r.state.Old, r.state.Told = false, ""
	r.state.Progress.Ended = false
	r.messenger.urgent, r.Dirty = true, true
	err = workflow.ExecuteActivity(call.Quick(ctx, "see which run this is"), call.Executions.ThisRun).Get(ctx, &runID)
	return runID, err
}

func (c *core) note(what, why string) { c.Note(&c.state.Carried, what, why) }
