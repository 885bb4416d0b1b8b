// Package nexus serves Drydock to workflows of other namespaces and in other languages: it starts, for each operation, the workflow that
// does what is asked.
package nexus

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporalnexus"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/maintain"
	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/inbox"
)

// Register has a worker of a cluster serve what its configuration says, and run what that needs.
func Register(w worker.Registry, c config.Nexus, cluster string) {
	// Whatever the configuration says now, one of an earlier one may run.
	w.RegisterWorkflowWithOptions(Operation, workflow.RegisterOptions{Name: api.NexusOperationType})
	if c.Endpoint != "" {
		w.RegisterNexusService(service(c, cluster))
	}
}

func service(c config.Nexus, cluster string) *nexus.Service {
	s := &server{c, cluster}
	service := nexus.NewService(api.NexusService)
	// The names differ, and no operation lacks what it needs.
	service.MustRegister(
		newOperation[api.Result](s, api.NexusMaintainNode, (*server).maintainNode),
		newOperation[api.PlanResult](s, api.NexusRunPlan, (*server).runPlan),
		newOperation[preflight.Report](s, api.NexusCheckNode, (*server).checkNode),
	)
	return service
}

type server struct {
	config.Nexus
	cluster string
}

// started is the workflow that an operation starts.
type started struct {
	id, kind string
	input    any
}

// operation is one of the service. It ends with the workflow that begin names.
type operation[R any] struct {
	nexus.Operation[converter.RawValue, R]
}

func newOperation[R any](s *server, name string, begin func(s *server, r api.NexusRequest, request string) (started, error)) nexus.RegisterableOperation {
	return operation[R]{temporalnexus.MustNewWorkflowRunOperationWithOptions(temporalnexus.WorkflowRunOperationOptions[converter.RawValue, R]{
		Name: name,
		Handler: func(ctx context.Context, raw converter.RawValue, options nexus.StartOperationOptions) (temporalnexus.WorkflowHandle[R], error) {
			r, err := inbox.Decode[api.NexusRequest](inbox.Payload(raw))
			caller := callerOf(options.Links)
			if err == nil {
				err = s.complete(&r, caller)
			}
			var w started
			if err == nil {
				w, err = begin(s, r, options.RequestID)
			}
			if err != nil {
				return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "%s: %v", name, err)
			}
			return start[R](ctx, w, name, digest(name, r)+" "+caller, options)
		},
	})}
}

// start starts a workflow, or has the operation end with the one that runs if the same caller has asked for the same, as one does that was
// reset. Nobody joins what is somebody else's: with the operation it would be cancelled.
func start[R any](ctx context.Context, w started, name, origin string, options nexus.StartOperationOptions) (temporalnexus.WorkflowHandle[R], error) {
	start := client.StartWorkflowOptions{
		ID: w.id, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, Memo: map[string]any{api.MemoNexus: origin},
	}
	handle, err := temporalnexus.ExecuteUntypedWorkflow[R](ctx, options, start, w.kind, w.input)
	if _, running := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); !running {
		return handle, err
	}
	described, err := temporalnexus.GetClient(ctx).DescribeWorkflowExecution(ctx, w.id, "")
	switch {
	case err != nil:
		return nil, err
	case api.OriginByNexus(described.GetWorkflowExecutionInfo().GetMemo()) != origin:
		return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "%s: workflow %s runs, and was not started by this request of this caller: "+
			"name another requestor, or another plan", name, w.id)
	case described.GetWorkflowExtendedInfo().GetCancelRequested():
		return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeUnavailable, "%s: workflow %s is being cancelled", name, w.id)
	}
	start.WorkflowIDConflictPolicy = enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	return temporalnexus.ExecuteUntypedWorkflow[R](ctx, options, start, w.kind, w.input)
}

// digest tells requests apart.
func digest(name string, r api.NexusRequest) string {
	text, _ := json.Marshal(r) // it was read from JSON
	sum := sha256.Sum256(append([]byte(name+"\n"), text...))
	return hex.EncodeToString(sum[:])
}

// Cancel cancels what was started by Nexus. The token is the caller's word, which could name any workflow.
func (o operation[R]) Cancel(ctx context.Context, token string, options nexus.CancelOperationOptions) error {
	var named struct {
		ID string `json:"wid"`
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(text, &named)
	}
	if err != nil {
		return nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "the token cannot be read: %v", err)
	}
	described, err := temporalnexus.GetClient(ctx).DescribeWorkflowExecution(ctx, named.ID, "")
	if err != nil {
		return err
	}
	if api.OriginByNexus(described.GetWorkflowExecutionInfo().GetMemo()) == "" {
		return nexus.NewHandlerErrorf(nexus.HandlerErrorTypeNotFound, "workflow %.300q was not started by an operation", named.ID)
	}
	return o.Operation.Cancel(ctx, token, options)
}

// callerOf is what a requestor or a plan is named after where the request names none; empty if it is not known who calls.
func callerOf(links []nexus.Link) string {
	for _, link := range links {
		if from, err := temporalnexus.ConvertNexusLinkToLinkWorkflowEvent(link); err == nil {
			return from.GetNamespace() + "/" + from.GetWorkflowId()
		}
	}
	return ""
}

// complete gives a request the names that it lacks, and checks it.
func (s *server) complete(r *api.NexusRequest, caller string) error {
	if r.Maintenance != nil && r.Maintenance["requestor"] == nil && caller != "" {
		r.Maintenance = maps.Clone(r.Maintenance)
		r.Maintenance["requestor"] = maintain.RequestorOf(caller)
	}
	if r.Plan != nil && r.Name == "" && caller != "" {
		r.Name = maintain.PlanOf(caller)
	}
	if err := r.Check(); err != nil {
		return err
	}
	if w := r.Work; w != nil && !s.MayWork(w.Endpoint) {
		return fmt.Errorf("work.endpoint: %q is not among the endpoints of nexus.work in the worker's configuration", w.Endpoint)
	}
	return nil
}

func (s *server) maintainNode(r api.NexusRequest, _ string) (started, error) {
	if err := s.checkMaintenance(r); err != nil {
		return started{}, err
	}
	node, requestor := r.Text("node"), r.Text("requestor")
	if r.Work != nil {
		return started{api.NexusOperationID(s.cluster, node, requestor), api.NexusOperationType, r}, nil
	}
	return started{api.MaintenanceID(s.cluster, node, requestor), api.NodeMaintenanceType, r.Maintenance}, nil
}

func (s *server) checkNode(r api.NexusRequest, request string) (started, error) {
	if r.Work != nil {
		return started{}, errors.New("work: is of maintain-node and run-plan")
	}
	return started{api.PreflightID(s.cluster, r.Text("node"), request), api.PreflightType, r.Maintenance}, s.checkMaintenance(r)
}

func (s *server) runPlan(r api.NexusRequest, _ string) (started, error) {
	if r.Plan == nil {
		return started{}, errors.New("plan: is missing")
	}
	input, err := json.Marshal(r.Plan)
	if err != nil {
		return started{}, err
	}
	decoded, err := plan.Decode(r.Name, input)
	if err == nil {
		err = errors.Join(decoded.Reserved(), api.CheckReportToOf(decoded.ReportTo))
	}
	if err != nil {
		return started{}, fmt.Errorf("plan: %w", err)
	}
	if r.Work != nil {
		return started{api.NexusOperationID(s.cluster, "", r.Name), api.NexusOperationType, r}, nil
	}
	return started{api.PlanID(s.cluster, r.Name), api.MaintenancePlanType, json.RawMessage(input)}, nil
}

// checkMaintenance reads the input of a maintenance as the maintenance does, without the worker's defaults.
func (s *server) checkMaintenance(r api.NexusRequest) error {
	if r.Maintenance == nil {
		return errors.New("maintenance: is missing")
	}
	input, err := json.Marshal(r.Maintenance)
	if err != nil {
		return err
	}
	decoded, err := spec.Decode(input, nil)
	if err == nil {
		err = errors.Join(decoded.Reserved(), api.CheckReportToOf(decoded.ReportTo))
	}
	if err != nil {
		return fmt.Errorf("maintenance: %w", err)
	}
	return nil
}
