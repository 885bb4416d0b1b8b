// Package takeover begins the watches of dead workers anew: those of all others when a worker starts, and those of a worker that does not
// poll any more. The server does not know that a worker has died before the heartbeat timeout of what it carried out is over, and nobody
// sees meanwhile what happens to the cluster.
package takeover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

const (
	// passes are how often the watches of others are looked for, and nextPass is the pause between: a list of workflows may lag.
	passes   = 2
	nextPass = 10 * time.Second
	// giveUp ends the attempts of a worker that reaches Temporal or the API server in none of them: heartbeat timeouts are over by then.
	giveUp = 10 * time.Minute
	// passWithin bounds one pass.
	passWithin = 2 * time.Minute
	// syncWithin is how long a pass waits for the nodes.
	syncWithin = 30 * time.Second
	// atOnce and perSecond bound the workflows that are described, maxWorkflows those of one pass.
	atOnce       = 16
	perSecond    = 100
	maxWorkflows = 10_000
	pageSize     = 1000
	// retryAfter is the pause before the next attempt of a watch. A server that does not support it uses the retry policy.
	retryAfter = 100 * time.Millisecond
	// errorType is the type of the failure that an attempt ends with. No workflow sees it.
	errorType = "TakenOver"
)

// Identity is the name of a worker process by which Temporal shows who carries out an activity: the SDK's, and a part that no other
// process has. A container that is started again in its pod has the process ID and the host name of the one before.
func Identity(given, queue string) string {
	if given == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		given = fmt.Sprintf("%d@%s@%s", os.Getpid(), host, queue)
	}
	return given + "@" + uuid.NewString()[:8]
}

// Temporal is what is needed of a client.
type Temporal interface {
	ListWorkflow(context.Context, *workflowservice.ListWorkflowExecutionsRequest) (*workflowservice.ListWorkflowExecutionsResponse, error)
	DescribeWorkflowExecution(ctx context.Context, workflowID, runID string) (*workflowservice.DescribeWorkflowExecutionResponse, error)
	CompleteActivityByIDWithOptions(ctx context.Context, o client.CompleteActivityByIDOptions) error
	DescribeTaskQueue(ctx context.Context, queue string, kind enums.TaskQueueType) (*workflowservice.DescribeTaskQueueResponse, error)
}

// Nodes are what most watches look at.
type Nodes interface {
	// Sync returns once this worker has a complete copy of them.
	Sync(ctx context.Context) error
}

// Worker is this worker.
type Worker struct {
	Temporal             Temporal
	Nodes                Nodes
	Logger               *slog.Logger
	Namespace, TaskQueue string
	// Identity is that of its activities, Started when it began to poll.
	Identity string
	Started  time.Time
}

// Run begins the watches of other workers anew, and then those of workers that die, until ctx ends.
func (w Worker) Run(ctx context.Context) {
	w.start(ctx)
	w.watch(ctx)
}

// start begins the watches of other workers anew, and returns when that is done or ctx ends. What fails is logged, and tried again.
func (w Worker) start(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, giveUp)
	defer cancel()
	p := newPass(w, newcomer{w.Identity, w.Started})
	for done := 0; done < passes; {
		began, err := p.run(ctx)
		if began > 0 {
			w.Logger.Info("began the watches of other workers anew", "watches", began)
		}
		switch {
		case err == nil:
			done++
		case ctx.Err() == nil:
			w.Logger.Warn("the watches of other workers could not all be begun anew: those of a dead worker stand still until their heartbeat timeouts are over",
				"error", err, "again", nextPass)
		}
		if done == passes {
			return
		}
		select {
		case <-time.After(nextPass):
		case <-ctx.Done():
			return
		}
	}
}

// pass looks for watches of other workers.
type pass struct {
	Worker
	watches   watches
	suspicion suspicion
	limiter   *rate.Limiter
	// nodes are looked for once in a run of the pass.
	nodes *nodes

	mu sync.Mutex
	// begun are the activities that were begun anew: none is twice, however long the passes take.
	begun map[activityKey]bool
}

type activityKey struct{ run, activity string }

func newPass(w Worker, s suspicion) *pass {
	return &pass{Worker: w, watches: allWatches(), suspicion: s, limiter: rate.NewLimiter(perSecond, atOnce), begun: map[activityKey]bool{}}
}

// run is one pass; it returns how many watches it began anew, whatever else failed.
func (p *pass) run(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, passWithin)
	defer cancel()
	p.nodes = &nodes{}
	before := len(p.begun)
	running, err := p.running(ctx)
	if err == nil {
		err = p.each(ctx, running, p.take)
	}
	return len(p.begun) - before, err
}

// running are the IDs of the workflows that may have a watch, those with the most urgent ones first.
func (p *pass) running(ctx context.Context) ([]string, error) {
	request := &workflowservice.ListWorkflowExecutionsRequest{Namespace: p.Namespace, PageSize: pageSize, Query: fmt.Sprintf(
		`WorkflowType IN ("%s") AND TaskQueue="%s" AND ExecutionStatus="Running"`, strings.Join(p.watches.kinds, `", "`), p.TaskQueue)}
	ids := make([][]string, len(p.watches.kinds))
	for listed := 0; listed < maxWorkflows; {
		page, err := p.Temporal.ListWorkflow(ctx, request)
		if err != nil {
			return nil, fmt.Errorf("listing the workflows that watch: %w", err)
		}
		for _, info := range page.GetExecutions() {
			if i := slices.Index(p.watches.kinds, info.GetType().GetName()); i >= 0 {
				ids[i] = append(ids[i], info.GetExecution().GetWorkflowId())
			}
		}
		listed += len(page.GetExecutions())
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			break
		}
	}
	for i := range ids { // a workflow that has just continued as new may be there twice
		slices.Sort(ids[i])
		ids[i] = slices.Compact(ids[i])
	}
	return slices.Concat(ids...), nil
}

// nodes is whether this worker sees the nodes.
type nodes struct {
	once sync.Once
	err  error
}

// sync returns once this worker sees the nodes, or why it does not.
func (p *pass) sync(ctx context.Context) error {
	p.nodes.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, syncWithin)
		defer cancel()
		p.nodes.err = p.Nodes.Sync(ctx)
	})
	return p.nodes.err
}

// take begins the watches of a workflow anew, on a worker that sees the nodes only: one without access to the API server must not take
// them from one that has it. Since that may take a while, the attempts are read once more.
func (p *pass) take(ctx context.Context, id string) error {
	_, attempts, err := p.attempts(ctx, id)
	if err != nil || len(attempts) == 0 {
		return err
	}
	if err := p.sync(ctx); err != nil {
		return fmt.Errorf("this worker does not see the nodes yet: %w", err)
	}
	info, attempts, err := p.attempts(ctx, id)
	for _, a := range attempts {
		err = errors.Join(err, p.fail(ctx, info, a))
	}
	return err
}

// attempts are those of a workflow's latest run that are to be begun anew. The list of workflows is only a hint of type and queue.
func (p *pass) attempts(ctx context.Context, id string) (*workflowpb.WorkflowExecutionInfo, []*workflowpb.PendingActivityInfo, error) {
	if err := p.limiter.Wait(ctx); err != nil {
		return nil, nil, err
	}
	described, err := p.Temporal.DescribeWorkflowExecution(ctx, id, "")
	if isGone(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("describing workflow %s: %w", id, err)
	}
	info := described.GetWorkflowExecutionInfo()
	if described.GetExecutionConfig().GetTaskQueue().GetName() != p.TaskQueue {
		return info, nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var attempts []*workflowpb.PendingActivityInfo
	for _, a := range described.GetPendingActivities() {
		key := activityKey{info.GetExecution().GetRunId(), a.GetActivityId()}
		if !p.begun[key] && p.watches.mayBegin(info.GetType().GetName(), a) && p.suspicion.covers(a) {
			attempts = append(attempts, a)
		}
	}
	return info, attempts, nil
}

// fail ends an attempt with an error after which the server begins the next one at once; the workflow's history does not say so.
// The worker that carries out the attempt, if it lives, ends it at its next heartbeat, and what it reports meanwhile is refused.
// A watch that has reported since is gone, and the next one has another ID. One whose attempt has ended since by itself may be begun
// once more than needed.
func (p *pass) fail(ctx context.Context, info *workflowpb.WorkflowExecutionInfo, a *workflowpb.PendingActivityInfo) error {
	execution := info.GetExecution()
	err := p.Temporal.CompleteActivityByIDWithOptions(ctx, client.CompleteActivityByIDOptions{
		Namespace: p.Namespace, WorkflowID: execution.GetWorkflowId(), RunID: execution.GetRunId(), ActivityID: a.GetActivityId(),
		WorkflowType: info.GetType().GetName(), ActivityType: a.GetActivityType().GetName(), TaskQueue: p.TaskQueue,
		Err: temporal.NewApplicationErrorWithOptions("begun anew: "+p.suspicion.why(a), errorType, temporal.ApplicationErrorOptions{NextRetryDelay: retryAfter}),
	})
	if isGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("ending an attempt of %s of workflow %s: %w", a.GetActivityType().GetName(), execution.GetWorkflowId(), err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun[activityKey{execution.GetRunId(), a.GetActivityId()}] = true
	return nil
}

// each does something with each workflow, some at once, and goes on where it fails with one. The error is the first.
func (p *pass) each(ctx context.Context, ids []string, do func(ctx context.Context, id string) error) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	failed := make([]error, len(ids))
	for i, id := range ids {
		group.Go(func() error {
			failed[i] = do(ctx, id)
			return nil
		})
	}
	_ = group.Wait()
	return cmp.Or(failed...)
}

func isGone(err error) bool {
	var gone *serviceerror.NotFound
	return errors.As(err, &gone)
}
