// Package maintenance is the workflow of one node maintenance, from the request for a slot to the release of the node.
package maintenance

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock/activities/execution"
	"drydock/activities/settings"
	"drydock/api"
	"drydock/rules/notices"
	"drydock/rules/spec"
	"drydock/rules/validation"
	"drydock/workflows/call"
	"drydock/workflows/inbox"
)

// maintenance is one run of NodeMaintenance.
type maintenance struct {
	spec   spec.Maintenance
	status api.Status
	// cluster is the name in front of IDs, empty where there is one cluster only.
	cluster string
	// attributes: the namespace has Drydock's search attributes.
	attributes bool

	// life outlives every cancellation; the steps until Ready run under steps, which cancel ends.
	life   workflow.Context
	steps  workflow.Context
	cancel workflow.CancelFunc

	// unread tells whether there are messages that were not looked at yet.
	unread func() bool
	// What the outside world said, for the steps to wait on.
	answer  *slotAnswer
	drained bool
	// anew: an operator wants what waits, a drain or the next attempt, to begin now.
	anew        bool
	cancelled   string
	release     bool
	holdReasons []string
	changes     []api.NodeChange
	nodeGone    string
	// inPreflight: a preflight is waited for, and what blocks is heard of from it.
	inPreflight bool

	// What has to be undone.
	request string
	// requested is since when it waits for the slot, by which it is ranked.
	requested time.Time
	touched   bool
	uid       string
	mark      string

	// ladder are the rungs of the drain, the SLA among them.
	ladder     []spec.Rung
	escalation escalation

	// told counts the states that the outside was told of, and channels are where; groups are those of the node.
	told     int
	plans    []notices.Plan
	channels []*channel
	groups   []string
	// hookPlans are those of the hooks that the specification names; toClose were called and have a closing, openHooks
	// are under way, beside of them beside the maintenance.
	hookPlans          []validation.HookPlan
	toClose, openHooks []*hook
	hooksCalled        int
	beside             int
	// bootID is the node's at the cordon, word what somebody said of the validation, again that it is to be tried again.
	bootID      string
	word        *validation.Signal
	again       bool
	validations int
	// listening: somebody's word on the node is waited for; deciding: a decision about what failed.
	listening, deciding bool
	// audited: a record of the maintenance is kept. heldUID is the node's that was held last.
	audited bool
	heldUID string
	// conditions: the node shows lifecycle conditions, and conditionsShown that it does.
	conditions, conditionsShown bool

	// shown is the phase that the node's label has, recordoned how often a lifted cordon was set again.
	shown      api.Phase
	cordoned   time.Time
	recordoned int
	// contested: somebody keeps lifting the cordon, and it is not set again.
	contested bool
	// guarding is set while guard reacts to a change of the node, which cancelGuard ends.
	guarding    bool
	cancelGuard workflow.CancelFunc
}

// ending is the error by which a step ends the maintenance in a given phase.
type ending struct {
	phase   api.Phase
	kind    string
	message string
}

func (e ending) Error() string { return e.message }

// errGivenBack: the escalation gave the node back, and the maintenance begins again with the slot.
var errGivenBack = errors.New("the node is given back")

// NodeMaintenance takes one node out of service, holds it for its requestors and brings it back. Its input is the
// JSON of spec.Maintenance. It is addressed by MaintenanceID; a run under another ID starts that one and returns.
func NodeMaintenance(root workflow.Context, input converter.RawValue) (api.Result, error) {
	m := newMaintenance(root)
	if err := m.listen(root); err != nil {
		return api.Result{}, err
	}
	if err := m.setUp(inbox.Payload(input)); err != nil {
		return api.Result{}, err
	}
	if id := api.MaintenanceID(m.cluster, m.spec.Node, m.spec.Requestor); id != m.status.WorkflowID {
		return m.startCanonical(id)
	}
	m.register()
	m.openChannels(m.plans)
	return m.run()
}

// run is the maintenance from beginning to end.
func (m *maintenance) run() (api.Result, error) {
	err := m.procedure()
	// Whatever happened, the node and the slot go back, on a context that no cancellation reaches.
	m.bringBack(err)
	m.awaitChannels()
	m.keepRecord()
	return m.result(err)
}

// procedure is the life of a maintenance as its states have it (maintenance-operator, state diagram; PIKA, approach).
func (m *maintenance) procedure() error {
	m.tell(notices.MaintenanceUnknown, "")
	if err := inOrder(m.awaitApproval, m.preflight, m.awaitNotice); err != nil {
		return err
	}
	for {
		err := inOrder(m.acquireSlot, m.beforeCordon, m.cordon, m.waitForPods, m.drain, m.afterDrain)
		if err == nil {
			break
		}
		if !errors.Is(err, errGivenBack) {
			return err
		}
		if err := m.giveBack(); err != nil {
			return err
		}
	}
	return inOrder(m.holdForRequestors, m.validate, m.beforeRelease)
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func newMaintenance(root workflow.Context) *maintenance {
	info := workflow.GetInfo(root)
	m := &maintenance{cluster: api.ClusterOf(info.TaskQueueName)}
	m.life, _ = workflow.NewDisconnectedContext(root)
	m.steps, m.cancel = workflow.WithCancel(m.life)
	m.status = api.Status{
		WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID,
		Phase: api.Pending, Since: workflow.Now(root), Attempt: 1,
	}
	return m
}

// setUp reads the input, with the worker's defaults under it.
func (m *maintenance) setUp(input []byte) error {
	// A wrong input is refused before anything else, whatever the worker's defaults are.
	if _, err := spec.Decode(input, nil); err != nil {
		return inbox.InvalidSpec(err)
	}
	var prepared settings.Prepared
	if err := workflow.ExecuteLocalActivity(call.Local(m.life), call.Settings.Prepare, json.RawMessage(input)).Get(m.life, &prepared); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	var err error
	if m.spec, err = spec.Decode(input, prepared.Defaults); err != nil {
		return inbox.InvalidSpec(err)
	}
	if prepared.Unknown != "" {
		return inbox.InvalidSpec(errors.New(prepared.Unknown))
	}
	m.attributes, m.groups = prepared.SearchAttributes, prepared.Groups
	m.plans, m.hookPlans, m.audited, m.conditions = prepared.Channels, prepared.Hooks, prepared.Audited, prepared.Conditions
	m.ladder = m.spec.Ladder()
	m.status.Spec = m.spec
	for _, name := range m.spec.Requestors() {
		// It may have joined already: messages are read from the first moment on.
		if !slices.ContainsFunc(m.status.Requestors, func(r api.RequestorStatus) bool { return r.Name == name }) {
			m.status.Requestors = append(m.status.Requestors, api.RequestorStatus{Name: name})
		}
	}
	return nil
}

// register makes the maintenance findable and lets it follow its node.
func (m *maintenance) register() {
	m.attribute(
		api.AttributeNode.ValueSet(m.spec.Node), api.AttributeRequestor.ValueSet(m.spec.Requestor),
		api.AttributeCluster.ValueSet(m.cluster), api.AttributePhase.ValueSet(string(api.Pending)),
	)
	workflow.GoNamed(m.life, "guard", m.guard)
}

// startCanonical starts the maintenance under its own ID, for whoever started it under another, and returns that ID.
func (m *maintenance) startCanonical(id string) (api.Result, error) {
	input, err := json.Marshal(m.spec)
	if err != nil {
		return api.Result{}, err
	}
	options := call.Child(id, m.summary())
	child := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(m.life, options), api.NodeMaintenanceType, json.RawMessage(input))
	var started workflow.Execution
	err = child.GetChildWorkflowExecution().Get(m.life, &started)
	result := api.Result{WorkflowID: id, RunID: started.RunID, Node: m.spec.Node, Requestor: m.spec.Requestor}
	if err == nil {
		result.Message = "started as workflow " + id
		return result, nil
	}
	if !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return api.Result{}, fmt.Errorf("starting workflow %s: %w", id, err)
	}
	running, err := m.specOf(id)
	if err != nil {
		return api.Result{}, err
	}
	if string(running) != string(input) {
		return api.Result{}, temporal.NewNonRetryableApplicationError(fmt.Sprintf(
			"workflow %s already runs with another specification; running: %s; asked for: %s", id, running, input), api.ErrorConflict, nil)
	}
	result.Message = "workflow " + id + " already runs with the same specification"
	return result, nil
}

// specOf asks a running maintenance for its specification, as JSON.
func (m *maintenance) specOf(id string) ([]byte, error) {
	var answers []execution.Answered
	err := workflow.ExecuteActivity(call.Quick(m.life, "compare with the running maintenance"), call.Executions.Query, execution.QueryInput{
		Executions: []execution.Run{{WorkflowID: id}}, Query: api.QueryStatus,
	}).Get(m.life, &answers)
	if err != nil {
		return nil, err
	}
	var running api.Status
	if len(answers) != 1 || answers[0].Gone {
		return nil, fmt.Errorf("workflow %s ended just now: start again", id)
	}
	if err := json.Unmarshal(answers[0].Answer, &running); err != nil {
		return nil, fmt.Errorf("status of workflow %s: %w", id, err)
	}
	return json.Marshal(running.Spec)
}

// result closes the workflow: as completed, as cancelled, or as failed with the reason.
func (m *maintenance) result(err error) (api.Result, error) {
	result := api.Result{
		WorkflowID: m.status.WorkflowID, RunID: m.status.RunID, Node: m.spec.Node, Requestor: m.spec.Requestor,
		Phase: m.status.Phase, Message: m.status.Failure, Transitions: m.status.Transitions,
	}
	switch m.status.Phase {
	case api.Cancelled:
		return result, temporal.NewCanceledError(result)
	case api.Failed:
		kind := api.ErrorMaintenanceFailed
		var end ending
		if errors.As(err, &end) && end.kind != "" {
			kind = end.kind
		}
		return result, temporal.NewNonRetryableApplicationError(m.status.Failure, kind, nil, result)
	}
	return result, nil
}
