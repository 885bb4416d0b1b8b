package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	rules "drydock.dev/drydock/rules/health"
)

const (
	// healthChecksEvery is how often a worker makes sure that the health checks of its configuration run.
	healthChecksEvery = 30 * time.Second
	// configureWithin bounds one attempt to send a check its specification.
	configureWithin = 20 * time.Second
	// fromConfiguration is who says what the file does.
	fromConfiguration = "configuration"
)

// keepHealthChecks starts the configured health checks that do not run, now and every 30 s, and sends each that runs the file's
// specification: once, when the worker starts, and again where that is refused. After that, a specification that somebody else sends
// counts.
func keepHealthChecks(ctx context.Context, o Options, temporal client.Client, namespace, queue string) {
	k := newHealthKeeper(o, temporal, queue)
	if err := k.logLeft(ctx, namespace); err != nil && ctx.Err() == nil {
		o.Logger.Warn("could not list the health checks that run", "error", err)
	}
	if len(k.specs) == 0 {
		return
	}
	ticker := time.NewTicker(healthChecksEvery)
	defer ticker.Stop()
	for {
		for _, name := range slices.Sorted(maps.Keys(k.specs)) {
			if err := k.ensure(ctx, name); err != nil && ctx.Err() == nil {
				o.Logger.Warn("a health check could not be started or configured; trying again", "check", name, "error", err)
			}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// healthKeeper looks after the configured health checks.
type healthKeeper struct {
	options  Options
	temporal client.Client
	queue    string
	specs    map[string]json.RawMessage
	// sent are the checks that have what the configuration says, refused why the others did not take what was sent last.
	sent    map[string]bool
	refused map[string]string
	failed  map[string]*failures
}

func newHealthKeeper(o Options, temporal client.Client, queue string) *healthKeeper {
	k := &healthKeeper{
		options: o, temporal: temporal, queue: queue, specs: map[string]json.RawMessage{},
		sent: map[string]bool{}, refused: map[string]string{}, failed: map[string]*failures{},
	}
	for name := range o.Config.HealthChecks {
		spec, err := o.Config.HealthSpec(name)
		if err != nil { // the configuration was validated
			o.Logger.Error("a health check of the configuration is not valid", "check", name, "error", err)
			continue
		}
		k.specs[name], k.failed[name] = spec, &failures{}
	}
	return k
}

// logLeft logs which checks a worker has started that are not in the configuration any more: they go on.
func (k *healthKeeper) logLeft(ctx context.Context, namespace string) error {
	prefix := api.HealthCheckID(k.options.Config.Cluster, "")
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: namespace, PageSize: 500, Query: fmt.Sprintf(
		`WorkflowType="%s" AND WorkflowId STARTS_WITH "%s" AND ExecutionStatus="Running"`, api.HealthCheckType, prefix)}
	for {
		page, err := k.temporal.ListWorkflow(ctx, request)
		if err != nil {
			return err
		}
		if left := k.left(page.GetExecutions()); len(left) > 0 {
			k.options.Logger.Warn("health checks go on that are not in the configuration any more; \"drydock health remove NAME\" ends one",
				"checks", strings.Join(left, ", "))
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

func (k *healthKeeper) left(running []*workflowpb.WorkflowExecutionInfo) []string {
	var left []string
	for _, info := range running {
		_, name, err := api.ParseHealthCheckID(info.GetExecution().GetWorkflowId())
		_, configured := info.GetMemo().GetFields()[api.MemoConfigured]
		if _, there := k.specs[name]; err == nil && configured && !there {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

// ensure has a check run, with the file's specification.
func (k *healthKeeper) ensure(ctx context.Context, name string) error {
	id := api.HealthCheckID(k.options.Config.Cluster, name)
	found, err := k.temporal.DescribeWorkflowExecution(ctx, id, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
	case err != nil:
		return err
	case found.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		if k.sent[name] {
			return nil
		}
		return k.configure(ctx, id, name)
	case k.failed[name].wait(found.GetWorkflowExecutionInfo(), time.Now()):
		k.options.Logger.Error("a health check failed at once again and again: see its failure in Temporal; it is started again later",
			"workflow", id, "inARow", k.failed[name].inARow, "next", k.failed[name].retryAt)
		return nil
	}
	run, err := k.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: k.queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "health check " + name,
		StaticDetails:            "Started by a worker, as its configuration has it.",
		Memo:                     map[string]any{api.MemoConfigured: true},
	}, api.HealthCheckType, k.specs[name])
	if err != nil {
		return err
	}
	k.options.Logger.Info("health check started", "workflow", id, "run", run.GetRunID())
	return nil
}

// configure gives a check the file's specification, unless it has it: a query costs less than an update, and a refused one is repeated at
// each look.
func (k *healthKeeper) configure(ctx context.Context, id, name string) error {
	ctx, cancel := context.WithTimeout(ctx, configureWithin)
	defer cancel()
	value, err := k.temporal.QueryWorkflow(ctx, id, "", api.QueryStatus, api.HealthStatusRequest{Limit: 1})
	if err != nil {
		return err
	}
	var status api.HealthStatus
	if err := value.Get(&status); err != nil {
		return err
	}
	same, err := sameSpec(status.Spec, k.specs[name])
	if err != nil {
		return err
	}
	if same {
		k.sent[name], k.refused[name] = true, ""
		return nil
	}
	payload := api.ConfigureHealth{
		Message: api.Message{ID: uuid.NewString(), By: fromConfiguration, Comment: "a worker was started with it"}, Spec: k.specs[name],
	}
	handle, err := k.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: id, UpdateName: api.MsgConfigure, Args: []any{payload}, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, nil)
	}
	var refusal *temporal.ApplicationError
	if errors.As(err, &refusal) {
		if why := cmp.Or(refusal.Message(), "no reason"); why != k.refused[name] {
			k.refused[name] = why
			k.options.Logger.Warn("a health check does not take what the configuration says; it is sent again every 30 s until it does",
				"check", name, "reason", why)
		}
		return nil
	}
	if err != nil {
		return err
	}
	k.sent[name], k.refused[name] = true, ""
	k.options.Logger.Info("a health check was given the configuration's specification", "check", name)
	return nil
}

// sameSpec reports whether a check's specification is that of the file, whatever it was written like.
func sameSpec(has rules.Spec, given json.RawMessage) (bool, error) {
	wanted, err := rules.Decode(given)
	if err != nil {
		return false, err
	}
	a, err := canonical(has)
	if err != nil {
		return false, err
	}
	b, err := canonical(wanted)
	return a == b, err
}

// canonical is a specification as text in which the order of fields does not count.
func canonical(s rules.Spec) (string, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return "", err
	}
	text, err = json.Marshal(value)
	return string(text), err
}
