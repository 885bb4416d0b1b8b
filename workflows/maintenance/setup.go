package maintenance

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/settings"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/inbox"
)

// identity is which maintenance this is. It does not change once the input is read.
type identity struct {
	// cluster is the name in front of IDs, empty if there is one cluster only.
	cluster    string
	workflowID string
	// runID is the first run of the chain: it stays the same after a reset or a continue-as-new. original is this run, or the
	// run that a reset copied.
	runID, original string
	// planID is the workflow ID of the plan that began it, empty if none did.
	planID string
	// planBegan is when that plan began; zero of a plan of an earlier version.
	planBegan time.Time
	spec      spec.Maintenance
	// prepared is what the worker's configuration makes of the input.
	prepared *settings.Prepared
}

func identityOf(ctx workflow.Context, s *state) *identity {
	info := workflow.GetInfo(ctx)
	// The run's own ID is not for decisions: it differs when a reset run replays the history of the run before it.
	original := cmp.Or(info.OriginalRunID, info.WorkflowExecution.RunID)
	plan := ""
	if parent := info.ParentWorkflowExecution; parent != nil {
		if _, _, err := api.ParsePlanID(parent.ID); err == nil {
			plan = parent.ID
		}
	}
	return &identity{
		cluster: api.ClusterOf(info.TaskQueueName), planID: plan, planBegan: api.PlanBegan(info.Memo), prepared: &s.Prepared,
		workflowID: info.WorkflowExecution.ID, runID: cmp.Or(info.FirstRunID, original), original: original,
	}
}

// summary is one line about the maintenance, for lists and events.
func (i *identity) summary() string {
	text := sentence(fmt.Sprintf("maintenance of %s by %s", i.spec.Node, i.spec.Requestor), "", i.spec.Reason)
	if i.spec.Ticket != "" {
		text += " [" + i.spec.Ticket + "]"
	}
	return text
}

// subject is the maintenance as hooks and checks see it.
func (i *identity) subject() checks.Subject {
	return checks.Subject{
		Node: i.spec.Node, Requestor: i.spec.Requestor, Reason: i.spec.Reason, Ticket: i.spec.Ticket, Cluster: i.cluster,
		WorkflowID: i.workflowID, RunID: i.runID,
	}
}

// thisRun refuses a message for an earlier maintenance of the node.
func (i *identity) thisRun(run string) error {
	if run != "" && run != i.runID && run != i.original {
		return fmt.Errorf("it is meant for run %s, and this is run %s", run, i.runID)
	}
	return nil
}

// setUp reads the input, and fills in the worker's defaults.
func (m *maintenance) setUp(input []byte) error {
	// A wrong input is refused whatever the worker's defaults are.
	if _, err := spec.Decode(input, nil); err != nil {
		return inbox.InvalidSpec(err)
	}
	if err := inbox.Days(m.control.life, input, spec.Maintenance{}); err != nil {
		return inbox.InvalidSpec(err)
	}
	prepare := workflow.ExecuteLocalActivity(call.Local(m.control.life), call.Settings.Prepare, json.RawMessage(input))
	if err := prepare.Get(m.control.life, m.prepared); err != nil {
		return fmt.Errorf("preparing: %w", err)
	}
	m.journal.change(func(s *api.Status) { s.Starter = m.prepared.Starter })
	var err error
	if m.spec, err = spec.Decode(input, m.prepared.Defaults); err != nil {
		return inbox.InvalidSpec(err)
	}
	if m.prepared.Unknown != "" {
		return inbox.InvalidSpec(errors.New(m.prepared.Unknown))
	}
	if err := api.CheckReportToOf(m.spec.ReportTo); err != nil { // needs no named change: earlier releases refuse the field
		return inbox.InvalidSpec(err)
	}
	if err := cmp.Or(m.checkNotBefore(), m.spec.Reserved()); err != nil && changed(m.control.life, changeInput) {
		return inbox.InvalidSpec(err)
	}
	m.journal.change(func(s *api.Status) { s.Spec = m.spec })
	for _, name := range m.spec.Requestors() {
		m.requestors.add(name) // it may have joined already: messages are read from the first moment on
	}
	m.plans.begin()
	m.outbox.beginReports()
	return nil
}

// checkNotBefore refuses a time that was over when the maintenance was started: it is a mistake.
func (m *maintenance) checkNotBefore() error {
	started := workflow.GetInfo(m.control.life).WorkflowStartTime
	if m.spec.NotBefore == nil || !m.spec.NotBefore.Before(started.Add(-spec.LateNotice)) {
		return nil
	}
	return fmt.Errorf("notBefore: %s was over at the start, at %s: leave it out to begin at once, or give a time to come",
		instant(*m.spec.NotBefore), instant(started))
}

// forPolicy is the specification for the activities that judge the maintenance by the policy; nil without a policy.
func (i *identity) forPolicy() json.RawMessage {
	if !i.prepared.Policy {
		return nil
	}
	return encode(i.spec)
}

func (m *maintenance) register() {
	attributes := []temporal.SearchAttributeUpdate{
		api.AttributeNode.ValueSet(m.spec.Node), api.AttributeRequestor.ValueSet(m.spec.Requestor),
		api.AttributeCluster.ValueSet(m.cluster), api.AttributePhase.ValueSet(string(api.Pending)),
	}
	if m.prepared.Kinds {
		attributes = append(attributes, api.AttributeKind.ValueSet(api.KindMaintenance))
	}
	m.journal.attribute(attributes...)
}

// startCanonical starts a maintenance that was started under another ID under its own, and returns that.
func (m *maintenance) startCanonical(id string) (api.Result, error) {
	input := encode(m.spec)
	as := call.Child(id, m.summary())
	as.StaticDetails = "Started by workflow " + markdown.Text(m.workflowID) + "."
	options := workflow.WithChildOptions(m.control.life, as)
	child := workflow.ExecuteChildWorkflow(options, api.NodeMaintenanceType, input)
	var started workflow.Execution
	err := child.GetChildWorkflowExecution().Get(m.control.life, &started)
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

func (m *maintenance) specOf(id string) (json.RawMessage, error) {
	ctx := call.Quick(m.control.life, "compare with the running maintenance")
	answers, err := run[[]execution.Answered](ctx, call.Executions.Query, execution.QueryInput{
		Executions: []execution.Run{{WorkflowID: id}}, Query: api.QueryStatus,
	})
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
	return encode(running.Spec), nil
}

func (m *maintenance) result() (api.Result, error) {
	status := m.journal.status()
	result := api.Result{
		WorkflowID: m.workflowID, RunID: m.runID, Node: m.spec.Node, Requestor: m.spec.Requestor,
		Phase: status.Phase, Message: status.Failure, CreatedAt: status.CreatedAt, Transitions: status.Transitions,
	}
	result.Moves = status.EarlierDrains.Moves
	if status.Drain != nil {
		result.Moves = result.Moves.Plus(status.Drain.Moves)
	}
	if m.spec.ReportTo != nil {
		result.DoneID = doneID(status, m.spec.Requestor)
	}
	switch status.Phase {
	case api.Cancelled:
		return result, temporal.NewCanceledError(result)
	case api.Failed:
		kind := cmp.Or(m.state.End.Kind, api.ErrorMaintenanceFailed)
		return result, temporal.NewNonRetryableApplicationError(status.Failure, kind, nil, result)
	}
	return result, nil
}
