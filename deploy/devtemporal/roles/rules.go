package roles

import (
	"fmt"
	"slices"
	"strings"

	batchpb "go.temporal.io/api/batch/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
)

// rule returns why a caller with these roles may not make a request. A request of a type that the rule does not expect reads as an empty
// one, which only a worker may send.
type rule func(who Roles, request any) error

// only is the rule of calls whose request does not matter.
func only(may Roles) rule {
	return func(who Roles, _ any) error { return require(who, may, "this call") }
}

func require(who, may Roles, what string) error {
	if who&may == 0 {
		return fmt.Errorf("%s is for the role %s, and the caller has %s", what, strings.ReplaceAll(may.String(), ",", " or "), who)
	}
	return nil
}

// message judges a signal or an update by its name.
func message(who Roles, name string) error {
	name, _, _ = strings.Cut(name, "/") // behind it is what makes a signal the only one of its name
	may := messages[name]
	if may&Approver == 0 {
		may |= Worker
	}
	return require(who, may, fmt.Sprintf("message %.100q", name))
}

// start is what all requests have that start a workflow.
type start interface {
	GetWorkflowType() *commonpb.WorkflowType
	GetWorkflowId() string
	GetInput() *commonpb.Payloads
	GetWorkflowIdReusePolicy() enumspb.WorkflowIdReusePolicy
}

// starting judges the start of a workflow.
func starting(who Roles, request start) error {
	if who&Worker != 0 {
		return nil
	}
	name := request.GetWorkflowType().GetName()
	kind := types[name]
	if err := require(who, kind.by|Worker, fmt.Sprintf("starting workflow type %.100q", name)); err != nil {
		return err
	}
	of := kindsOf(request.GetWorkflowId())
	if !slices.Contains(of, kind) {
		return fmt.Errorf("the ID of a %s begins with %s, behind the cluster's name where there is one", name, kind.id)
	}
	for _, other := range of {
		if err := require(who, other.by, "a workflow ID that begins with "+other.id); err != nil {
			return err
		}
	}
	if len(request.GetInput().GetPayloads()) > 1 {
		return fmt.Errorf("a %s is started with its input alone: the state that it continues with is a worker's to give", name)
	}
	terminates := request.GetWorkflowIdReusePolicy() == enumspb.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING
	if r, ok := request.(interface {
		GetWorkflowIdConflictPolicy() enumspb.WorkflowIdConflictPolicy
	}); ok {
		terminates = terminates || r.GetWorkflowIdConflictPolicy() == enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
	}
	if terminates {
		return require(who, Operator, "starting a workflow in the place of one that it terminates")
	}
	return nil
}

// kindsOf are the kinds of workflows that an ID may be of: by its first part, and by the second, since the first may be a cluster's name.
func kindsOf(id string) []startable {
	parts := strings.SplitN(id, "/", 3)
	var kinds []startable
	for _, kind := range types {
		if slices.Contains(parts[:min(len(parts), 2)], kind.id) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func mayStart(who Roles, request any) error {
	r, _ := request.(*workflowservice.StartWorkflowExecutionRequest)
	return starting(who, r)
}

func maySignal(who Roles, request any) error {
	r, _ := request.(*workflowservice.SignalWorkflowExecutionRequest)
	return message(who, r.GetSignalName())
}

func maySignalWithStart(who Roles, request any) error {
	r, _ := request.(*workflowservice.SignalWithStartWorkflowExecutionRequest)
	if err := message(who, r.GetSignalName()); err != nil {
		return err
	}
	return starting(who, r)
}

func mayUpdate(who Roles, request any) error {
	r, _ := request.(*workflowservice.UpdateWorkflowExecutionRequest)
	return message(who, r.GetRequest().GetInput().GetName())
}

// mayDoAll judges several operations that are one call, such as an update that starts its workflow.
func mayDoAll(who Roles, request any) error {
	r, _ := request.(*workflowservice.ExecuteMultiOperationRequest)
	for _, operation := range r.GetOperations() {
		var err error
		switch o := operation.GetOperation().(type) {
		case *workflowservice.ExecuteMultiOperationRequest_Operation_StartWorkflow:
			err = starting(who, o.StartWorkflow)
		case *workflowservice.ExecuteMultiOperationRequest_Operation_UpdateWorkflow:
			err = mayUpdate(who, o.UpdateWorkflow)
		default:
			err = fmt.Errorf("no role may call several operations with a %T", o)
		}
		if err != nil {
			return err
		}
	}
	return require(who, Starter|Operator|Approver|Worker, "calling several operations")
}

// mayCancel judges a cancellation: who may start a kind of workflow may cancel it.
func mayCancel(who Roles, request any) error {
	r, _ := request.(*workflowservice.RequestCancelWorkflowExecutionRequest)
	may := Operator | Worker
	if kinds := kindsOf(r.GetWorkflowExecution().GetWorkflowId()); len(kinds) > 0 {
		all := ^Roles(0)
		for _, kind := range kinds {
			all &= kind.by
		}
		may |= all
	}
	return require(who, may, "cancelling this workflow")
}

func mayCreateSchedule(who Roles, request any) error {
	r, _ := request.(*workflowservice.CreateScheduleRequest)
	overlaps := []enumspb.ScheduleOverlapPolicy{r.GetInitialPatch().GetTriggerImmediately().GetOverlapPolicy()}
	for _, backfill := range r.GetInitialPatch().GetBackfillRequest() {
		overlaps = append(overlaps, backfill.GetOverlapPolicy())
	}
	return scheduling(who, Starter|Operator, r.GetSchedule(), overlaps...)
}

func mayUpdateSchedule(who Roles, request any) error {
	r, _ := request.(*workflowservice.UpdateScheduleRequest)
	return scheduling(who, Operator, r.GetSchedule())
}

// scheduling judges a schedule as the start that it makes, since nobody is asked when it makes it.
func scheduling(who, may Roles, schedule *schedulepb.Schedule, overlaps ...enumspb.ScheduleOverlapPolicy) error {
	if err := require(who, may, "this change of a schedule"); err != nil {
		return err
	}
	for _, overlap := range append(overlaps, schedule.GetPolicies().GetOverlapPolicy()) {
		if overlap == enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER {
			if err := require(who, Operator, "a schedule that terminates its runs"); err != nil {
				return err
			}
		}
	}
	return starting(who, schedule.GetAction().GetStartWorkflow())
}

func mayReset(who Roles, request any) error {
	r, _ := request.(*workflowservice.ResetWorkflowExecutionRequest)
	return resetting(who, r.GetPostResetOperations())
}

// resetting judges a reset, and what is sent after it.
func resetting(who Roles, after []*workflowpb.PostResetOperation) error {
	if err := require(who, Operator, "resetting a workflow"); err != nil {
		return err
	}
	for _, operation := range after {
		signal, ok := operation.GetVariant().(*workflowpb.PostResetOperation_SignalWorkflow_)
		if !ok {
			return fmt.Errorf("no role may reset a workflow with a %T", operation.GetVariant())
		}
		if err := message(who, signal.SignalWorkflow.GetSignalName()); err != nil {
			return err
		}
	}
	return nil
}

// mayBatch judges what is done to many workflows. The server does it in its own name, so that nobody approves by it.
func mayBatch(who Roles, request any) error {
	if err := require(who, Operator, "a batch operation"); err != nil {
		return err
	}
	who &^= Approver
	r, _ := request.(*workflowservice.StartBatchOperationRequest)
	switch o := r.GetOperation().(type) {
	case *workflowservice.StartBatchOperationRequest_SignalOperation:
		return message(who, o.SignalOperation.GetSignal())
	case *workflowservice.StartBatchOperationRequest_ResetOperation:
		return resettingMany(who, o.ResetOperation)
	case *workflowservice.StartBatchOperationRequest_TerminationOperation, *workflowservice.StartBatchOperationRequest_CancellationOperation,
		*workflowservice.StartBatchOperationRequest_DeletionOperation:
		return nil
	default:
		return fmt.Errorf("no role may start a batch with a %T", o)
	}
}

func resettingMany(who Roles, reset *batchpb.BatchOperationReset) error {
	return resetting(who, reset.GetPostResetOperations())
}
