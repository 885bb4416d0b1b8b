package maintenance

import (
	"cmp"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/activities/execution"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/rules/spec"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/call"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	"encoding/json"
	"errors"
	"fmt"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// setUp reads the input, with the worker's defaults under it.
func (m *maintenance) setUp(input []byte) error {
	// A wrong input is refused before anything else, whatever the worker's defaults are.
	if _, err := spec.Decode(input, nil); err != nil {
		return inbox.InvalidSpec(err)
	}
	prepare := workflow.ExecuteLocalActivity(call.Local(m.clock.life), call.Settings.Prepare, json.RawMessage(input))
	if err := prepare.Get(m.clock.life, &m.prepared); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	var err error
	if m.spec, err = spec.Decode(input, m.prepared.Defaults); err != nil {
		return inbox.InvalidSpec(err)
	}
	if m.prepared.Unknown != "" {
		return inbox.InvalidSpec(errors.New(m.prepared.Unknown))
	}
	m.journal.change(func(s *api.Status) { s.Spec = m.spec })
	for _, name := range m.spec.Requestors() {
		m.requestors.add(name) // it may have joined already: messages are read from the first moment on
	}
	return nil
}

// forPolicy is the specification for whoever judges the maintenance by the policy; nil where there is none.
func (i *identity) forPolicy() json.RawMessage {
	if !i.prepared.Policy {
		return nil
	}
	text, err := json.Marshal(i.spec)
	if err != nil {
		// What is no specification is refused by whoever judges.
		return json.RawMessage(`""`)
	}
	return text
}

// register makes the maintenance findable.
func (m *maintenance) register() {
	m.journal.attribute(
		api.AttributeNode.ValueSet(m.spec.Node), api.AttributeRequestor.ValueSet(m.spec.Requestor),
		api.AttributeCluster.ValueSet(m.cluster), api.AttributePhase.ValueSet(string(api.Pending)),
	)
}

// open has the maintenance follow its node, tell its channels, and find out when it was reset.
func (m *maintenance) open() {
	workflow.GoNamed(m.clock.life, "guard", m.hold.guard)
	m.outbox.open()
}

// startCanonical starts the maintenance under its own ID, for whoever started it under another, and returns that ID.
func (m *maintenance) startCanonical(id string) (api.Result, error) {
	input, err := json.Marshal(m.spec)
	if err != nil {
		return api.Result{}, err
	}
	options := workflow.WithChildOptions(m.clock.life, call.Child(id, m.summary()))
	child := workflow.ExecuteChildWorkflow(options, api.NodeMaintenanceType, json.RawMessage(input))
	var started workflow.Execution
	err = child.GetChildWorkflowExecution().Get(m.clock.life, &started)
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
	ctx := call.Quick(m.clock.life, "compare with the running maintenance")
	err := workflow.ExecuteActivity(ctx, call.Executions.Query, execution.QueryInput{
		Executions: []execution.Run{{WorkflowID: id}}, Query: api.QueryStatus,
	}).Get(m.clock.life, &answers)
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
func (m *maintenance) result() (api.Result, error) {
	status := m.journal.status()
	result := api.Result{
		WorkflowID: m.workflowID, RunID: m.runID, Node: m.spec.Node, Requestor: m.spec.Requestor,
		Phase: status.Phase, Message: status.Failure, Transitions: status.Transitions,
	}
	switch status.Phase {
	case api.Cancelled:
		return result, temporal.NewCanceledError(result)
	case api.Failed:
		kind := cmp.Or(m.end.Kind, api.ErrorMaintenanceFailed)
		return result, temporal.NewNonRetryableApplicationError(status.Failure, kind, nil, result)
	}
	return result, nil
}
