package worker

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/window"
	"drydock.dev/drydock/workflows/scheduler"
)

// schedulerEvery is how often a worker makes sure that the scheduler runs.
const schedulerEvery = 30 * time.Second

// keepScheduler starts the scheduler where it does not run, now and every 30 s, and starts the workflows of revivers anew where somebody
// has ended them. It logs where the scheduler's limits are no longer those of the configuration. It fails where the namespace is gone, or
// is another one.
func keepScheduler(ctx context.Context, o Options, temporal client.Client, namespace, queue string, registry prometheus.Registerer) error {
	k := &schedulerKeeper{options: o, temporal: temporal, queue: queue, id: api.SchedulerID(o.Config.Cluster)}
	home := homeGuard{temporal: temporal, name: namespace, id: o.home.ID}
	k.windows = windowsKeeper{digest: window.Digest(o.Config.Windows), since: time.Now()}
	k.differs = differsGauge(registry)
	others := revivers(o, temporal, queue)
	ctx, cancel := context.WithCancel(ctx)
	due := make(chan time.Time, 1) // what takes long must not keep the scheduler waiting
	var records sync.WaitGroup
	records.Go(func() { newTerminated(o, temporal, namespace, queue).recordAt(ctx, due) })
	defer records.Wait()
	defer cancel()
	ticker := time.NewTicker(schedulerEvery)
	defer ticker.Stop()
	for {
		// This comes first: this worker knows the marks of its own namespace, and would pass them on to a scheduler of another one.
		err := home.look(ctx)
		if errors.Is(err, errHomeLost) {
			return err
		}
		if err == nil {
			err = k.ensure(ctx)
			for _, one := range others {
				err = errors.Join(err, one.ensure(ctx))
			}
			select {
			case due <- time.Now():
			default: // the records of the time before are still being kept
			}
		}
		if err != nil && ctx.Err() == nil {
			o.Logger.Warn("could not make sure that the scheduler and the cluster's other workflows run", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func differsGauge(registry prometheus.Registerer) prometheus.Gauge {
	gauge := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "drydock", Name: "limits_differ_from_config",
		Help: "1 where the scheduler's limits are not those of this worker's configuration file.",
	})
	registry.MustRegister(gauge)
	return gauge
}

type schedulerKeeper struct {
	options  Options
	temporal client.Client
	queue    string
	id       string
	differs  prometheus.Gauge
	// compared is the difference that was logged last.
	compared string
	failures failures
	// windows are those of the configuration.
	windows windowsKeeper
}

const (
	// failsAtOnce is how long a scheduler lives at most that failed at once.
	failsAtOnce = time.Minute
	// startLatest is the longest pause before one that fails at once again and again is started anew.
	startLatest = time.Hour
)

// failures counts how often in a row the scheduler failed at once.
type failures struct {
	run     string
	inARow  int
	retryAt time.Time
}

// wait notes that a run of the scheduler is closed, and reports whether it is too soon to start the next: a scheduler that fails at once
// would fill the namespace with runs.
func (f *failures) wait(closed *workflowpb.WorkflowExecutionInfo, now time.Time) bool {
	if run := closed.GetExecution().GetRunId(); run != f.run {
		f.run = run
		lived := closed.GetCloseTime().AsTime().Sub(closed.GetStartTime().AsTime())
		if closed.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_FAILED && lived < failsAtOnce {
			f.inARow++
		} else {
			f.inARow = 0
		}
		f.retryAt = now
		if f.inARow > 1 {
			f.retryAt = now.Add(min(schedulerEvery<<min(f.inARow-2, 10), startLatest))
		}
	}
	return now.Before(f.retryAt)
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
	case k.failures.wait(found.WorkflowExecutionInfo, time.Now()):
		k.options.Logger.Error("the scheduler failed at once again and again: see its failure in Temporal; it is started again later",
			"workflow", k.id, "inARow", k.failures.inARow, "next", k.failures.retryAt)
		return nil
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

// compare logs, once per change, that the limits an operator has set and those of the configuration file disagree. The operator's count.
func (k *schedulerKeeper) compare(ctx context.Context) error {
	value, err := k.temporal.QueryWorkflow(ctx, k.id, "", api.QueryState, api.StateRequest{Limit: 1})
	if err != nil {
		return err
	}
	var state api.State
	if err := value.Get(&state); err != nil {
		return err
	}
	if k.windows.overruled(state.Windows) {
		k.options.Logger.Warn("the scheduler uses other windows than those of this worker's configuration file: those of a worker that was started later",
			"startedLater", state.Windows.Since)
	}
	if k.windows.differ(state.Windows, time.Now()) {
		k.options.Logger.Info("the scheduler uses other windows than those of the configuration file: it is sent these")
		changed := api.WindowsChanged{Digest: k.windows.digest, Since: k.windows.since}
		if err := k.temporal.SignalWorkflow(ctx, k.id, "", api.SignalWindowsChanged, changed); err != nil {
			return err
		}
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

// longestPause is the longest pause before the windows of this worker are sent to a scheduler again.
const longestPause = 10 * time.Minute

// windowsKeeper decides when to send the scheduler the worker's windows, because it uses others. While workers of two configurations run,
// it uses those of the worker that was started last, and the others send nothing.
type windowsKeeper struct {
	digest string
	since  time.Time
	sent   int
	next   time.Time
	// later is when the worker was started whose windows the scheduler uses, once that was logged.
	later time.Time
}

func (w *windowsKeeper) differ(known *api.WindowsKnown, now time.Time) bool {
	if known == nil || known.Digest == w.digest || known.Since.After(w.since) {
		w.sent = 0
		return false
	}
	if w.sent > 0 && now.Before(w.next) {
		return false
	}
	w.next = now.Add(min(schedulerEvery<<min(w.sent, 10), longestPause))
	w.sent++
	return true
}

// overruled reports, once for each such worker, that the windows of one that was started later count.
func (w *windowsKeeper) overruled(known *api.WindowsKnown) bool {
	if known == nil || known.Digest == w.digest || !known.Since.After(w.since) || known.Since.Equal(w.later) {
		return false
	}
	w.later = known.Since
	return true
}
