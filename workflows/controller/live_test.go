package controller_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/execution"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/deploy/devstack"
	"drydock.dev/drydock/workflows/inbox"
)

// live is the world of toys on a server.
type live struct {
	t     *testing.T
	c     client.Client
	queue string
	lock  sync.Mutex
	made  map[string]int
	ended map[string]bool
}

// TestOnAServer runs toys on a server, by a worker that keeps no workflow in memory: each workflow task replays all that was before, as
// after a crash.
func TestOnAServer(t *testing.T) {
	if _, err := devstack.Binary("devtemporal"); err != nil {
		t.Skip(err)
	}
	server, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{Dir: t.TempDir(), InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	c := server.Client
	worker.SetStickyWorkflowCacheSize(0)
	for _, every := range []int{0, 1, 3} {
		l := &live{t: t, c: c, queue: fmt.Sprintf("drydock-toy-%d-%d", every, time.Now().UnixNano()), made: map[string]int{}, ended: map[string]bool{}}
		w := l.worker(every)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: l.queue, TaskQueue: l.queue}, "toy", struct{}{}, []byte(nil))
		if err != nil {
			t.Fatal(err)
		}
		const jobs = 8
		for i := range jobs {
			l.add(fmt.Sprint(l.queue, "-", i), i%3 == 2)
			time.Sleep(300 * time.Millisecond)
		}
		if every == 0 {
			l.reset()
		}
		if err := c.CancelWorkflow(t.Context(), l.queue, ""); err != nil {
			t.Fatal(err)
		}
		var result toy
		if err := c.GetWorkflow(t.Context(), l.queue, "").Get(t.Context(), &result); err != nil {
			t.Fatalf("every %d: %v", every, err)
		}
		w.Stop()
		if len(result.Jobs) != jobs || result.Cancels != 1 || (result.Resets == 1) != (every == 0) {
			t.Errorf("every %d: %+v", every, result)
		}
		for _, j := range result.Jobs {
			if j.Stage != over || l.made[j.Name] != 1 && every != 0 {
				t.Errorf("every %d: %+v, made %d times", every, j, l.made[j.Name])
			}
		}
	}
}

func (l *live) worker(every int) worker.Worker {
	w := worker.New(l.c, l.queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}}})
	w.RegisterWorkflowWithOptions(runToy(every), workflow.RegisterOptions{Name: "toy"})
	w.RegisterWorkflowWithOptions(l.child, workflow.RegisterOptions{Name: "child"})
	for name, does := range map[string]any{"make": l.make, "find": l.find, "ends": l.ends, "end": l.end} {
		w.RegisterActivityWithOptions(does, activity.RegisterOptions{Name: name})
	}
	w.RegisterActivity(&execution.Activities{})
	return w
}

// child sends a message in its first workflow task, which is often the one in which the toy learns of its start.
func (l *live) child(ctx workflow.Context, name string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	toy := workflow.GetInfo(ctx).ParentWorkflowExecution.ID
	if err := workflow.SignalExternalWorkflow(ctx, toy, "", "ack", ack{Job: name}).Get(ctx, nil); err != nil {
		return err
	}
	err := workflow.ExecuteActivity(ctx, "end", name).Get(ctx, nil)
	for workflow.GetSignalChannel(ctx, "tell").ReceiveAsync(nil) {
		continue
	}
	return err
}

func (l *live) make(_ context.Context, name string) error {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.made[name]++
	return nil
}

func (l *live) end(_ context.Context, name string) error {
	time.Sleep(2 * time.Second)
	l.lock.Lock()
	defer l.lock.Unlock()
	l.ended[name] = true
	return nil
}

func (l *live) find(context.Context) (all []job, err error) {
	l.lock.Lock()
	defer l.lock.Unlock()
	for name := range l.made {
		all = append(all, job{Name: name, Stage: made})
	}
	return all, nil
}

func (l *live) ends(ctx context.Context, names []string) (ended []string, err error) {
	for ctx.Err() == nil {
		activity.RecordHeartbeat(ctx)
		l.lock.Lock()
		for _, name := range names {
			if l.ended[name] {
				ended = append(ended, name)
			}
		}
		l.lock.Unlock()
		if len(ended) > 0 {
			return ended, nil
		}
		time.Sleep(200 * time.Millisecond)
	}
	return nil, ctx.Err()
}

// add adds a job by signals, and by an update before them.
func (l *live) add(name string, update bool) {
	l.t.Helper()
	m := add{Message: api.Message{ID: name}, Job: name}
	if update {
		handle, err := l.c.UpdateWorkflow(l.t.Context(), client.UpdateWorkflowOptions{
			WorkflowID: l.queue, UpdateName: "add", Args: []any{m}, WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		var effect string
		if err == nil {
			err = handle.Get(l.t.Context(), &effect)
		}
		if err != nil || effect != "added "+name {
			l.t.Errorf("%q, %v", effect, err)
		}
	}
	for range 2 {
		if err := l.c.SignalWorkflow(l.t.Context(), l.queue, "", "add", m); err != nil {
			l.t.Fatal(err)
		}
	}
}

// reset resets the workflow to half of its history.
func (l *live) reset() {
	l.t.Helper()
	history := l.c.GetWorkflowHistory(l.t.Context(), l.queue, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var completed []int64
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			l.t.Fatal(err)
		}
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			completed = append(completed, event.GetEventId())
		}
	}
	if _, err := l.c.ResetWorkflowExecution(l.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: l.queue}, Reason: "test",
		WorkflowTaskFinishEventId: completed[len(completed)/2], RequestId: l.queue,
	}); err != nil {
		l.t.Fatal(err)
	}
}
