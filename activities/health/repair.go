package health

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/activities/caller"
	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/activities/failure"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/bounds"
	rules "drydock.dev/drydock/rules/health"
)

// RepairInput asks for the maintenance by which a check remediates a node.
type RepairInput struct {
	Check string `json:"check"`
	Node  string `json:"node"`
	// UID is that of the node when the remediation began; empty is any.
	UID          string `json:"uid,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
	Step         int    `json:"step,omitempty"`
	// Begun: a step of the remediation has an object or a maintenance. The control plane does without the node already.
	Begun  bool         `json:"begun,omitempty"`
	Repair rules.Repair `json:"repair"`
	// Why says what the node has.
	Why string `json:"why,omitempty"`
	// Conditions are the check's: where the node has none of them any more nothing is begun. Empty does not look.
	Conditions []rules.UnhealthyCondition `json:"conditions,omitempty"`
	// Etcd is the check's, for control-plane nodes.
	Etcd *rules.EtcdQuestion `json:"etcd,omitempty"`
	// Slot is the request whose slot lets a control-plane node be remediated; empty is none.
	Slot string `json:"slot,omitempty"`
}

// About implements caller.Input.
func (in RepairInput) About() caller.Subject {
	return caller.Subject{Check: in.Check, Node: in.Node, Request: in.Slot}
}

// BegunRepair is the maintenance, or why there is none.
type BegunRepair struct {
	// RunID is the first run of the maintenance's chain.
	RunID     string    `json:"runId,omitempty"`
	StartedAt time.Time `json:"startedAt,omitzero"`
	// Adopted: it ran already. Refused says why there is none: what runs under its workflow ID is no remediation.
	Adopted bool   `json:"adopted,omitempty"`
	Refused string `json:"refused,omitempty"`
	// Replaced: there is another node of its name by now.
	Replaced bool `json:"replaced,omitempty"`
	// Indispensable says why the control plane cannot do without the node now.
	Indispensable string `json:"indispensable,omitempty"`
	// Waiting says what has to be over first. Ask again after a while.
	Waiting string `json:"waiting,omitempty"`
	// NeedsSlot: the node is one of the control plane, and the scheduler knows of no slot of the remediation's.
	NeedsSlot bool `json:"needsSlot,omitempty"`
}

// BeginRepair begins the maintenance of a node, or adopts the one that runs.
func (a *Activities) BeginRepair(ctx context.Context, in RepairInput) (BegunRepair, error) {
	not, err := a.mayRepair(ctx, in)
	if err != nil {
		return BegunRepair{}, failure.Translate(ctx, a.Objects.Kube(), err)
	}
	if not != (BegunRepair{}) {
		// An earlier attempt may have begun it, whose answer was lost.
		if found, err := a.FindRepair(ctx, in); err != nil || found.RunID != "" {
			return found, err
		}
		return not, nil
	}
	fields := map[string]json.RawMessage{}
	if len(in.Repair.Input) > 0 {
		if err := json.Unmarshal(in.Repair.Input, &fields); err != nil {
			return BegunRepair{}, temporal.NewNonRetryableApplicationError("maintenance: "+err.Error(), api.ErrorInvalidSpec, nil)
		}
	}
	fields["node"], fields["remediation"] = quoted(in.Node), json.RawMessage(`{"check":`+string(quoted(in.Check))+`}`)
	if fields["reason"] == nil {
		fields["reason"] = quoted(bounds.Cut("health check "+in.Check+": "+in.Why, bounds.Text))
	}
	if in.Repair.OutOfService {
		fields["outOfService"] = json.RawMessage("true")
	}
	queue := activity.GetInfo(ctx).TaskQueue
	id := api.MaintenanceID(api.ClusterOf(queue), in.Node, api.RemediationRequestor(in.Check))
	run, err := a.Temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: queue,
		WorkflowIDReusePolicy:                    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy:                 enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		StaticSummary:                            "maintenance of " + in.Node + " for health check " + in.Check,
		Memo:                                     map[string]any{api.MemoBegun: true},
	}, api.NodeMaintenanceType, fields)
	var running *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case err == nil:
		return BegunRepair{RunID: run.GetRunID(), StartedAt: time.Now()}, nil
	case !errors.As(err, &running):
		return BegunRepair{}, fmt.Errorf("beginning the maintenance of %s: %w", in.Node, err)
	}
	return a.adoptRepair(ctx, id, in)
}

// mayRepair reads the node once more, as it is now: the decision may rest on an older state.
func (a *Activities) mayRepair(ctx context.Context, in RepairInput) (BegunRepair, error) {
	node, err := a.Objects.Kube().CoreV1().Nodes().Get(ctx, in.Node, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return BegunRepair{Refused: "the node is gone"}, nil
	case err != nil:
		return BegunRepair{}, fmt.Errorf("reading node %s: %w", in.Node, err)
	case in.UID != "" && string(node.UID) != in.UID:
		return BegunRepair{Replaced: true}, nil
	}
	asked := ObjectInput{Check: in.Check, Node: in.Node, ControlPlane: in.ControlPlane, Begun: in.Begun, Conditions: in.Conditions, Etcd: in.Etcd, Slot: in.Slot}
	if why := a.mayTouch(asked, node); why != "" {
		return BegunRepair{Refused: why}, nil
	}
	if not := a.withoutSlot(ctx, asked, node); not.answers() {
		return BegunRepair{Waiting: not.Waiting, NeedsSlot: not.NeedsSlot}, nil
	}
	why, err := a.isIndispensable(ctx, asked, node)
	return BegunRepair{Indispensable: why}, err
}

// FindRepair finds the maintenance by which a check remediates a node; its RunID is empty if none runs.
func (a *Activities) FindRepair(ctx context.Context, in RepairInput) (BegunRepair, error) {
	id := api.MaintenanceID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue), in.Node, api.RemediationRequestor(in.Check))
	found, status, err := a.repairUnder(ctx, id)
	if err != nil || repairedFor(status) != in.Check {
		return BegunRepair{}, err
	}
	return found, nil
}

// repairedFor is the check by which a maintenance repairs its node; empty for one that does not.
func repairedFor(status api.Status) string {
	if status.Spec.Remediation == nil {
		return ""
	}
	return status.Spec.Remediation.Check
}

// repairUnder is the maintenance that runs under a workflow ID, the zero value where none does, and what it says.
func (a *Activities) repairUnder(ctx context.Context, id string) (found BegunRepair, status api.Status, err error) {
	d, err := a.Temporal.DescribeWorkflowExecution(ctx, id, "")
	var nobody *serviceerror.NotFound
	if errors.As(err, &nobody) {
		return found, status, nil
	}
	if err != nil {
		return found, status, fmt.Errorf("describing workflow %s: %w", id, err)
	}
	info := d.GetWorkflowExecutionInfo()
	if info.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return found, status, nil
	}
	answer, err := a.Temporal.QueryWorkflow(ctx, id, "", api.QueryStatus)
	if err == nil {
		err = answer.Get(&status)
	}
	if err != nil {
		return found, status, fmt.Errorf("asking workflow %s whose it is: %w", id, err)
	}
	return BegunRepair{RunID: info.GetFirstRunId(), StartedAt: info.GetStartTime().AsTime(), Adopted: true}, status, nil
}

func quoted(text string) json.RawMessage {
	quoted, _ := json.Marshal(text) // a text
	return quoted
}

// adoptRepair takes the maintenance that runs, if it is a remediation of the check's.
func (a *Activities) adoptRepair(ctx context.Context, id string, in RepairInput) (BegunRepair, error) {
	found, status, err := a.repairUnder(ctx, id)
	switch {
	case err != nil:
		return BegunRepair{}, err
	case found.RunID == "":
		return BegunRepair{}, fmt.Errorf("adopting the maintenance of %s: it has just ended", in.Node)
	case repairedFor(status) != in.Check:
		return BegunRepair{Refused: fmt.Sprintf("workflow %s runs and is no remediation of this check: end it (drydock cancel %s --requestor %s)",
			id, in.Node, api.RemediationRequestor(in.Check))}, nil
	case status.Phase == api.Releasing || status.Phase.Ended():
		return BegunRepair{}, fmt.Errorf("adopting the maintenance of %s: it is about to end", in.Node)
	}
	return found, nil
}

// EndRepairInput is a maintenance that is not wanted any more.
type EndRepairInput struct {
	Check string `json:"check"`
	Node  string `json:"node"`
	// RunID is the first run of its chain.
	RunID string `json:"runId"`
	// Healthy: the node is, and what was to be done is done. Otherwise its time is over, and the node is given back as it is.
	Healthy bool   `json:"healthy,omitempty"`
	Why     string `json:"why,omitempty"`
}

// About implements caller.Input. The run is the maintenance's.
func (in EndRepairInput) About() caller.Subject {
	return caller.Subject{Check: in.Check, Node: in.Node}
}

// EndRepair signals a maintenance to end. One that does not run has ended.
func (a *Activities) EndRepair(ctx context.Context, in EndRepairInput) error {
	id := api.MaintenanceID(api.ClusterOf(activity.GetInfo(ctx).TaskQueue), in.Node, api.RemediationRequestor(in.Check))
	said := api.Message{By: "health check " + in.Check, Comment: bounds.Cut(in.Why, bounds.Text)}
	return execution.SignalEnd(ctx, a.Temporal, id, in.RunID, said, in.Healthy)
}
