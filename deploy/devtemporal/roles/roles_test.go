package roles_test

import (
	"encoding/base64"
	"errors"
	"testing"

	batchpb "go.temporal.io/api/batch/v1"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	schedulepb "go.temporal.io/api/schedule/v1"
	updatepb "go.temporal.io/api/update/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/api"
	"go.temporal.io/server/common/authorization"

	"drydock.dev/drydock/deploy/devtemporal/roles"
)

const (
	ours    = "drydock"
	r, s, a = roles.Reader, roles.Starter, roles.Approver
	o, w    = roles.Operator, roles.Worker
)

func kind(name string) *commonpb.WorkflowType { return &commonpb.WorkflowType{Name: name} }

func startOf(name, id string, payloads ...*commonpb.Payload) *workflowservice.StartWorkflowExecutionRequest {
	return &workflowservice.StartWorkflowExecutionRequest{
		Namespace: ours, WorkflowType: kind(name), WorkflowId: id, Input: &commonpb.Payloads{Payloads: payloads},
	}
}

func signalOf(name string) *workflowservice.SignalWorkflowExecutionRequest {
	return &workflowservice.SignalWorkflowExecutionRequest{Namespace: ours, SignalName: name}
}

func updateOf(name string) *workflowservice.UpdateWorkflowExecutionRequest {
	return &workflowservice.UpdateWorkflowExecutionRequest{Namespace: ours, Request: &updatepb.Request{Input: &updatepb.Input{Name: name}}}
}

func signalWithStart(signal, name, id string) *workflowservice.SignalWithStartWorkflowExecutionRequest {
	return &workflowservice.SignalWithStartWorkflowExecutionRequest{Namespace: ours, SignalName: signal, WorkflowType: kind(name), WorkflowId: id}
}

func together(start *workflowservice.StartWorkflowExecutionRequest, update string) *workflowservice.ExecuteMultiOperationRequest {
	return &workflowservice.ExecuteMultiOperationRequest{Namespace: ours, Operations: []*workflowservice.ExecuteMultiOperationRequest_Operation{
		{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_StartWorkflow{StartWorkflow: start}},
		{Operation: &workflowservice.ExecuteMultiOperationRequest_Operation_UpdateWorkflow{UpdateWorkflow: updateOf(update)}},
	}}
}

func scheduleOf(name, id string, overlap enumspb.ScheduleOverlapPolicy) *schedulepb.Schedule {
	return &schedulepb.Schedule{
		Policies: &schedulepb.SchedulePolicies{OverlapPolicy: overlap},
		Action: &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{
			StartWorkflow: &workflowpb.NewWorkflowExecutionInfo{WorkflowType: kind(name), WorkflowId: id},
		}},
	}
}

func newSchedule(name, id string) *workflowservice.CreateScheduleRequest {
	return &workflowservice.CreateScheduleRequest{Namespace: ours, Schedule: scheduleOf(name, id, enumspb.SCHEDULE_OVERLAP_POLICY_SKIP)}
}

func cancelOf(id string) *workflowservice.RequestCancelWorkflowExecutionRequest {
	return &workflowservice.RequestCancelWorkflowExecutionRequest{Namespace: ours, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id}}
}

func after(signal string) []*workflowpb.PostResetOperation {
	return []*workflowpb.PostResetOperation{{Variant: &workflowpb.PostResetOperation_SignalWorkflow_{
		SignalWorkflow: &workflowpb.PostResetOperation_SignalWorkflow{SignalName: signal},
	}}}
}

func optionsAfter() []*workflowpb.PostResetOperation {
	return []*workflowpb.PostResetOperation{{Variant: &workflowpb.PostResetOperation_UpdateWorkflowOptions_{}}}
}

func batchSignal(name string) *workflowservice.StartBatchOperationRequest {
	return &workflowservice.StartBatchOperationRequest{Namespace: ours, Operation: &workflowservice.StartBatchOperationRequest_SignalOperation{
		SignalOperation: &batchpb.BatchOperationSignal{Signal: name},
	}}
}

func batchReset(signal string) *workflowservice.StartBatchOperationRequest {
	return &workflowservice.StartBatchOperationRequest{Namespace: ours, Operation: &workflowservice.StartBatchOperationRequest_ResetOperation{
		ResetOperation: &batchpb.BatchOperationReset{PostResetOperations: after(signal)},
	}}
}

// calls are requests with the roles that may make them.
var calls = map[string]struct {
	api     string
	request any
	may     roles.Roles
}{
	"describe":          {"DescribeWorkflowExecution", &workflowservice.DescribeWorkflowExecutionRequest{Namespace: ours}, r | s | a | o | w},
	"query":             {"QueryWorkflow", &workflowservice.QueryWorkflowRequest{Namespace: ours}, r | s | a | o | w},
	"history":           {"GetWorkflowExecutionHistory", &workflowservice.GetWorkflowExecutionHistoryRequest{Namespace: ours}, r | s | a | o | w},
	"list":              {"ListWorkflowExecutions", &workflowservice.ListWorkflowExecutionsRequest{Namespace: ours}, r | s | a | o | w},
	"list schedules":    {"ListSchedules", &workflowservice.ListSchedulesRequest{Namespace: ours}, r | s | a | o | w},
	"outcome of update": {"PollWorkflowExecutionUpdate", &workflowservice.PollWorkflowExecutionUpdateRequest{Namespace: ours}, r | s | a | o | w},
	"the namespace":     {"DescribeNamespace", &workflowservice.DescribeNamespaceRequest{Namespace: ours}, r | s | a | o | w},
	"the cluster":       {"GetClusterInfo", &workflowservice.GetClusterInfoRequest{}, r | s | a | o | w},
	"all namespaces":    {"ListNamespaces", &workflowservice.ListNamespacesRequest{}, 0},
	"another namespace": {"ListWorkflowExecutions", &workflowservice.ListWorkflowExecutionsRequest{Namespace: "other"}, 0},

	"start":                     {"StartWorkflowExecution", startOf("NodeMaintenance", "node-maintenance/w-1/ops"), s | o | w},
	"start in a cluster":        {"StartWorkflowExecution", startOf("NodeMaintenance", "c/node-maintenance/w-1/ops"), s | o | w},
	"start a plan":              {"StartWorkflowExecution", startOf("MaintenancePlan", "maintenance-plan/p"), s | o | w},
	"preflight":                 {"StartWorkflowExecution", startOf("Preflight", "preflight/w-1/x"), s | o | w},
	"ask for permissions":       {"StartWorkflowExecution", startOf("Permissions", "permissions/x"), s | o | w},
	"start a health check":      {"StartWorkflowExecution", startOf("HealthCheck", "health-check/x"), o | w},
	"doctor":                    {"StartWorkflowExecution", startOf("Doctor", "drydock-doctor"), o | w},
	"start the scheduler":       {"StartWorkflowExecution", startOf("Scheduler", "drydock-scheduler"), w},
	"start an unknown type":     {"StartWorkflowExecution", startOf("Mine", "mine"), w},
	"take the scheduler's ID":   {"StartWorkflowExecution", startOf("Preflight", "drydock-scheduler"), w},
	"take a cluster's":          {"StartWorkflowExecution", startOf("Preflight", "preflight/drydock-scheduler"), w},
	"take a health check's ID":  {"StartWorkflowExecution", startOf("Preflight", "health-check/preflight"), o | w},
	"carried state":             {"StartWorkflowExecution", startOf("NodeMaintenance", "node-maintenance/w-1/ops", nil, nil), w},
	"another message as start":  {"StartWorkflowExecution", signalOf("done"), w},
	"start without a request":   {"StartWorkflowExecution", nil, 0},
	"terminate by start":        {"StartWorkflowExecution", terminating(), o | w},
	"terminate by reuse":        {"StartWorkflowExecution", reusing(), o | w},
	"other service":             {"/elsewhere/StartWorkflowExecution", startOf("NodeMaintenance", "node-maintenance/w-1/ops"), 0},
	"standalone activity":       {"StartActivityExecution", &workflowservice.StartActivityExecutionRequest{Namespace: ours}, 0},
	"a call of tomorrow":        {"ApproveEverything", nil, 0},
	"register namespace":        {"RegisterNamespace", &workflowservice.RegisterNamespaceRequest{Namespace: ours}, 0},
	"add search attributes":     {api.OperatorServicePrefix + "AddSearchAttributes", nil, 0},
	"an admin's call":           {api.AdminServicePrefix + "DeleteWorkflowExecution", nil, 0},
	"signal done":               {"SignalWorkflowExecution", signalOf("done"), s | o | w},
	"signal approve":            {"SignalWorkflowExecution", signalOf("approve"), a},
	"signal deny":               {"SignalWorkflowExecution", signalOf("deny"), a},
	"signal escalate":           {"SignalWorkflowExecution", signalOf("escalate"), o | w},
	"signal of the scheduler":   {"SignalWorkflowExecution", signalOf("slot-granted"), w},
	"signal that none knows":    {"SignalWorkflowExecution", signalOf("of-tomorrow"), w},
	"signal by which it is own": {"SignalWorkflowExecution", signalOf("own-principal/1"), w},
	"command to elsewhere":      {"SignalWorkflowExecution", &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: ours}, w},
	"update approve":            {"UpdateWorkflowExecution", updateOf("approve"), a},
	"update extend":             {"UpdateWorkflowExecution", updateOf("extend"), s | o | w},
	"update set-limits":         {"UpdateWorkflowExecution", updateOf("set-limits"), o | w},
	"update freeze":             {"UpdateWorkflowExecution", updateOf("freeze"), o | w},
	"update pause":              {"UpdateWorkflowExecution", updateOf("pause"), o | w},

	"signal with start":        {"SignalWithStartWorkflowExecution", signalWithStart("join", "NodeMaintenance", "node-maintenance/w-1/ops"), s | o | w},
	"approve with start":       {"SignalWithStartWorkflowExecution", signalWithStart("approve", "NodeMaintenance", "node-maintenance/w-1/ops"), 0},
	"scheduler by signal":      {"SignalWithStartWorkflowExecution", signalWithStart("done", "Scheduler", "drydock-scheduler"), w},
	"update with start":        {"ExecuteMultiOperation", together(startOf("NodeMaintenance", "node-maintenance/w-1/ops"), "extend"), s | o | w},
	"approval with start":      {"ExecuteMultiOperation", together(startOf("NodeMaintenance", "node-maintenance/w-1/ops"), "approve"), 0},
	"limits with start":        {"ExecuteMultiOperation", together(startOf("Scheduler", "drydock-scheduler"), "set-limits"), w},
	"operations of no kind":    {"ExecuteMultiOperation", &workflowservice.ExecuteMultiOperationRequest{Operations: []*workflowservice.ExecuteMultiOperationRequest_Operation{{}}, Namespace: ours}, 0},
	"cancel a preflight":       {"RequestCancelWorkflowExecution", cancelOf("preflight/w-1/x"), s | o | w},
	"cancel the scheduler":     {"RequestCancelWorkflowExecution", cancelOf("drydock-scheduler"), o | w},
	"cancel a cluster's":       {"RequestCancelWorkflowExecution", cancelOf("preflight/drydock-scheduler"), o | w},
	"cancel a health check":    {"RequestCancelWorkflowExecution", cancelOf("health-check/preflight"), o | w},
	"cancel what none knows":   {"RequestCancelWorkflowExecution", cancelOf("temporal-sys-scheduler:x"), o | w},
	"schedule a plan":          {"CreateSchedule", newSchedule("MaintenancePlanRun", "maintenance-plan-run/p"), s | o},
	"schedule a health check":  {"CreateSchedule", newSchedule("HealthCheck", "health-check/x"), o},
	"schedule a scheduler":     {"CreateSchedule", newSchedule("Scheduler", "drydock-scheduler"), 0},
	"schedule nothing":         {"CreateSchedule", &workflowservice.CreateScheduleRequest{Namespace: ours}, 0},
	"schedule that terminates": {"CreateSchedule", terminatingSchedule(), o},
	"backfill that terminates": {"CreateSchedule", terminatingBackfill(), o},
	"change a schedule":        {"UpdateSchedule", changed("MaintenancePlanRun", "maintenance-plan-run/p"), o},
	"change it to a scheduler": {"UpdateSchedule", changed("Scheduler", "drydock-scheduler"), 0},
	"pause a schedule":         {"PatchSchedule", &workflowservice.PatchScheduleRequest{Namespace: ours}, o},
	"delete a schedule":        {"DeleteSchedule", &workflowservice.DeleteScheduleRequest{Namespace: ours}, o},
	"terminate":                {"TerminateWorkflowExecution", &workflowservice.TerminateWorkflowExecutionRequest{Namespace: ours}, o},
	"delete":                   {"DeleteWorkflowExecution", &workflowservice.DeleteWorkflowExecutionRequest{Namespace: ours}, o},
	"reset":                    {"ResetWorkflowExecution", &workflowservice.ResetWorkflowExecutionRequest{Namespace: ours}, o},
	"reset, then signal":       {"ResetWorkflowExecution", &workflowservice.ResetWorkflowExecutionRequest{Namespace: ours, PostResetOperations: after("retry")}, o},
	"reset, then approve":      {"ResetWorkflowExecution", &workflowservice.ResetWorkflowExecutionRequest{Namespace: ours, PostResetOperations: after("approve")}, 0},
	"reset, then options":      {"ResetWorkflowExecution", &workflowservice.ResetWorkflowExecutionRequest{Namespace: ours, PostResetOperations: optionsAfter()}, 0},
	"batch termination": {"StartBatchOperation", &workflowservice.StartBatchOperationRequest{Namespace: ours,
		Operation: &workflowservice.StartBatchOperationRequest_TerminationOperation{}}, o},
	"batch signal":    {"StartBatchOperation", batchSignal("cancel"), o},
	"batch approval":  {"StartBatchOperation", batchSignal("approve"), 0},
	"batch reset":     {"StartBatchOperation", batchReset("retry"), o},
	"approve by that": {"StartBatchOperation", batchReset("approve"), 0},
	"batch of options": {"StartBatchOperation", &workflowservice.StartBatchOperationRequest{Namespace: ours,
		Operation: &workflowservice.StartBatchOperationRequest_UpdateWorkflowOptionsOperation{}}, 0},
	"batch of nothing": {"StartBatchOperation", &workflowservice.StartBatchOperationRequest{Namespace: ours}, 0},

	"poll workflows":  {"PollWorkflowTaskQueue", &workflowservice.PollWorkflowTaskQueueRequest{Namespace: ours}, w},
	"poll activities": {"PollActivityTaskQueue", &workflowservice.PollActivityTaskQueueRequest{Namespace: ours}, w},
	"answer":          {"RespondWorkflowTaskCompleted", &workflowservice.RespondWorkflowTaskCompletedRequest{Namespace: ours}, w},
	"complete by ID":  {"RespondActivityTaskCompletedById", &workflowservice.RespondActivityTaskCompletedByIdRequest{Namespace: ours}, w},
	"fail by ID":      {"RespondActivityTaskFailedById", &workflowservice.RespondActivityTaskFailedByIdRequest{Namespace: ours}, w},
	"heartbeat":       {"RecordActivityTaskHeartbeat", &workflowservice.RecordActivityTaskHeartbeatRequest{Namespace: ours}, w},
}

func terminating() *workflowservice.StartWorkflowExecutionRequest {
	request := startOf("NodeMaintenance", "node-maintenance/w-1/ops")
	request.WorkflowIdConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING
	return request
}

func reusing() *workflowservice.StartWorkflowExecutionRequest {
	request := startOf("NodeMaintenance", "node-maintenance/w-1/ops")
	request.WorkflowIdReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_TERMINATE_IF_RUNNING
	return request
}

func changed(name, id string) *workflowservice.UpdateScheduleRequest {
	return &workflowservice.UpdateScheduleRequest{Namespace: ours, Schedule: newSchedule(name, id).GetSchedule()}
}

func terminatingSchedule() *workflowservice.CreateScheduleRequest {
	request := newSchedule("MaintenancePlanRun", "maintenance-plan-run/p")
	request.Schedule.Policies.OverlapPolicy = enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER
	return request
}

func terminatingBackfill() *workflowservice.CreateScheduleRequest {
	request := newSchedule("MaintenancePlanRun", "maintenance-plan-run/p")
	request.InitialPatch = &schedulepb.SchedulePatch{BackfillRequest: []*schedulepb.BackfillRequest{
		{OverlapPolicy: enumspb.SCHEDULE_OVERLAP_POLICY_TERMINATE_OTHER},
	}}
	return request
}

func judged(t *testing.T, claims *authorization.Claims, method string, request any) authorization.Result {
	t.Helper()
	if method[0] != '/' {
		method = api.WorkflowServicePrefix + method
	}
	target := &authorization.CallTarget{APIName: method, Request: request}
	if named, ok := request.(interface{ GetNamespace() string }); ok {
		target.Namespace = named.GetNamespace()
	}
	result, err := roles.New(authorization.NewDefaultAuthorizer()).Authorize(t.Context(), claims, target)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestEachRoleMayDoItsOwn(t *testing.T) {
	for name, call := range calls {
		for _, role := range []roles.Roles{r, s, a, o, w} {
			claims := &authorization.Claims{Subject: "amy", AuthType: "jwt", Extensions: roles.Granted{ours: role}}
			result := judged(t, claims, call.api, call.request)
			if allowed := result.Decision == authorization.DecisionAllow; allowed != (call.may&role != 0) {
				t.Errorf("%s as %s: allowed %v, %q", name, role, allowed, result.Reason)
			} else if allowed && (result.Principal.GetName() != "amy" || result.Principal.GetType() != "jwt") {
				t.Errorf("%s as %s: principal %v", name, role, result.Principal)
			} else if !allowed && result.Reason == "" {
				t.Errorf("%s as %s is refused without a reason", name, role)
			}
		}
	}
}

// Two roles of one person make what neither makes alone.
func TestRolesAddUp(t *testing.T) {
	for name, c := range map[string]struct {
		who  roles.Roles
		may  bool
		call string
	}{
		"start and approve at once":              {s | a, true, "approval with start"},
		"signal an approval with the start":      {s | a, true, "approve with start"},
		"approve after a reset":                  {o | a, true, "reset, then approve"},
		"approve by a batch, in nobody's name":   {o | a, false, "batch approval"},
		"approve by a reset of many":             {o | a, false, "approve by that"},
		"a worker starts in the place of a plan": {w | s, true, "terminate by start"},
	} {
		claims := &authorization.Claims{Extensions: roles.Granted{roles.Everywhere: c.who}}
		if result := judged(t, claims, calls[c.call].api, calls[c.call].request); (result.Decision == authorization.DecisionAllow) != c.may {
			t.Errorf("%s: %v %q", name, result.Decision, result.Reason)
		}
	}
}

func TestTemporalsOwnRolesHold(t *testing.T) {
	start := calls["start"]
	for name, c := range map[string]struct {
		claims *authorization.Claims
		may    bool
	}{
		"nobody":                {nil, false},
		"no claims":             {&authorization.Claims{}, false},
		"an administrator":      {&authorization.Claims{System: authorization.RoleAdmin}, true},
		"a writer":              {&authorization.Claims{Namespaces: map[string]authorization.Role{ours: authorization.RoleWriter}}, true},
		"a writer of another":   {&authorization.Claims{Namespaces: map[string]authorization.Role{"other": authorization.RoleWriter}}, false},
		"a reader and approver": {&authorization.Claims{Namespaces: map[string]authorization.Role{ours: authorization.RoleReader}, Extensions: roles.Granted{ours: a}}, false},
		"another's extensions":  {&authorization.Claims{Extensions: "starter"}, false},
		"a starter elsewhere":   {&authorization.Claims{Extensions: roles.Granted{"other": s}}, false},
	} {
		if result := judged(t, c.claims, start.api, start.request); (result.Decision == authorization.DecisionAllow) != c.may {
			t.Errorf("%s: %v %q", name, result.Decision, result.Reason)
		}
	}
	if result := judged(t, nil, "GetSystemInfo", nil); result.Decision != authorization.DecisionAllow {
		t.Error("whoever connects has to learn what the server can do")
	}
}

func TestRolesAreWrittenAsTheyAreRead(t *testing.T) {
	all, err := roles.Parse("starter,approver")
	if err != nil || all != s|a || all.String() != "approver,starter" {
		t.Errorf("%s, %v", all, err)
	}
	for _, text := range []string{"", "starter,", "admin", "Starter"} {
		if all, err := roles.Parse(text); err == nil {
			t.Errorf("%q is read as %s", text, all)
		}
	}
}

// verified stands for Temporal's own claim mapper.
type verified struct{ err error }

func (v verified) GetClaims(*authorization.AuthInfo) (*authorization.Claims, error) {
	return &authorization.Claims{Subject: "amy", AuthType: "jwt"}, v.err
}

func TestRolesComeFromAToken(t *testing.T) {
	bearer := func(payload string) *authorization.AuthInfo {
		return &authorization.AuthInfo{AuthToken: "Bearer h." + base64.RawURLEncoding.EncodeToString([]byte(payload)) + ".s"}
	}
	mapper := roles.FromJWT(verified{}, "")
	claims, err := mapper.GetClaims(bearer(`{"permissions":["drydock:starter","drydock:approver","drydock:read","temporal-system:reader",":operator","worker",1]}`))
	granted, _ := claims.Extensions.(roles.Granted)
	if err != nil || len(granted) != 2 || granted[ours] != s|a || granted[roles.Everywhere] != r || claims.Subject != "amy" {
		t.Errorf("%+v, %v", claims, err)
	}
	claims, err = roles.FromJWT(verified{}, "scopes").GetClaims(bearer(`{"scopes":["drydock:operator"],"permissions":["drydock:approver"]}`))
	if granted, _ := claims.Extensions.(roles.Granted); err != nil || granted[ours] != o {
		t.Errorf("%+v, %v", claims, err)
	}
	if _, err := roles.FromJWT(verified{errors.New("a wrong signature")}, "").GetClaims(bearer(`{"permissions":["drydock:operator"]}`)); err == nil {
		t.Error("a token that is not verified has claims")
	}
	for _, token := range []string{"Bearer x", "Bearer a.!.c", "Bearer a.e30x.c"} {
		if claims, err := mapper.GetClaims(&authorization.AuthInfo{AuthToken: token}); err == nil {
			t.Errorf("%s: %+v", token, claims)
		}
	}
	if claims, err := mapper.GetClaims(&authorization.AuthInfo{}); err != nil || claims.Extensions != nil {
		t.Errorf("without a token: %+v, %v", claims, err)
	}
}
