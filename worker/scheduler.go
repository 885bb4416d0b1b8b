package worker

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"drydock/api"
	"drydock/workflows/scheduler"
)

// schedulerEvery is how often a worker makes sure that the scheduler runs.
const schedulerEvery = 30 * time.Second

// keepScheduler starts the scheduler where it does not run, now and every 30 s, and tells where its limits are no
// longer those of the configuration.
func keepScheduler(ctx context.Context, o Options, temporal client.Client, queue string, registry prometheus.Registerer) {
	k := &schedulerKeeper{options: o, temporal: temporal, queue: queue, id: api.SchedulerID(o.Config.Cluster)}
	k.differs = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "drydock", Name: "limits_differ_from_config",
		Help: "1 where the scheduler's limits are not those of this worker's configuration file.",
	})
	registry.MustRegister(k.differs)
	ticker := time.NewTicker(schedulerEvery)
	defer ticker.Stop()
	for {
		if err := k.ensure(ctx); err != nil && ctx.Err() == nil {
			o.Logger.Warn("the scheduler could not be looked after", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

type schedulerKeeper struct {
	options  Options
	temporal client.Client
	queue    string
	id       string
	differs  prometheus.Gauge
	// compared is the difference that was logged last.
	compared string
}

func (k *schedulerKeeper) ensure(ctx context.Context) error {
	previous := ""
	found, err := k.temporal.DescribeWorkflowExecution(ctx, k.id, "")
	var notFound *serviceerror.NotFound
	switch {
	case errors.As(err, &notFound):
	case err != nil:
		return err
	case found.WorkflowExecutionInfo.Status == enums.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return k.compare(ctx)
	default:
		previous = found.WorkflowExecutionInfo.Execution.RunId
	}
	c := k.options.Config.Scheduler
	state := scheduler.State{
		Limits: api.LimitsInForce{
			Limits: k.options.Config.Limits(), SetBy: "configuration", Comment: "when the scheduler was first started", SetAt: time.Now(),
		},
		OnOrphan: c.OnOrphan, PreviousRun: previous,
	}
	run, err := k.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: k.id, TaskQueue: k.queue,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "grants slots to node maintenances",
	}, api.SchedulerType, state)
	if err != nil {
		return err
	}
	k.options.Logger.Info("scheduler started", "workflow", k.id, "run", run.GetRunID(), "previous", previous)
	return nil
}

// compare tells, once per change, that an operator's decision and the configuration file disagree. The operator wins.
func (k *schedulerKeeper) compare(ctx context.Context) error {
	value, err := k.temporal.QueryWorkflow(ctx, k.id, "", api.QueryState, api.StateRequest{Limit: 1})
	if err != nil {
		return err
	}
	var state api.State
	if err := value.Get(&state); err != nil {
		return err
	}
	inForce, err := json.Marshal(state.Limits.Limits)
	if err != nil {
		return err
	}
	configured, err := json.Marshal(k.options.Config.Limits())
	if err != nil {
		return err
	}
	if string(inForce) == string(configured) {
		k.differs.Set(0)
		k.compared = ""
		return nil
	}
	k.differs.Set(1)
	if difference := string(inForce) + string(configured); difference != k.compared {
		k.compared = difference
		k.options.Logger.Warn("the scheduler's limits are not those of the configuration file; the scheduler's count (see drydock limits diff)",
			"inForce", string(inForce), "setBy", state.Limits.SetBy, "configured", string(configured))
	}
	return nil
}
