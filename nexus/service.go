// Package nexus serves Drydock to workflows of other namespaces and in other languages: it starts, for each operation, the workflow that
// does what is asked.
package nexus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/api/enums/v1"
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
		operation[api.Result](s, api.NexusMaintainNode, (*server).maintainNode),
		operation[api.PlanResult](s, api.NexusRunPlan, (*server).runPlan),
		operation[preflight.Report](s, api.NexusCheckNode, (*server).checkNode),
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

// operation ends with the workflow that begin names. A caller that asks twice, as after a reset, has the one that runs.
func operation[R any](s *server, name string, begin func(s *server, r api.NexusRequest, request string) (started, error)) nexus.RegisterableOperation {
	return temporalnexus.MustNewWorkflowRunOperationWithOptions(temporalnexus.WorkflowRunOperationOptions[converter.RawValue, R]{
		Name: name,
		Handler: func(ctx context.Context, raw converter.RawValue, options nexus.StartOperationOptions) (temporalnexus.WorkflowHandle[R], error) {
			r, err := inbox.Decode[api.NexusRequest](inbox.Payload(raw))
			if err == nil {
				err = s.complete(&r, callerOf(options.Links))
			}
			var w started
			if err == nil {
				w, err = begin(s, r, options.RequestID)
			}
			if err != nil {
				return nil, nexus.NewHandlerErrorf(nexus.HandlerErrorTypeBadRequest, "%s: %v", name, err)
			}
			return temporalnexus.ExecuteUntypedWorkflow[R](ctx, options, client.StartWorkflowOptions{
				ID: w.id, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
				WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
			}, w.kind, w.input)
		},
	})
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
