package controller_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
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

// TestOnAServer runs toys on a server, by workers that keep no workflow in memory: each workflow task replays all that was before, as after
// a crash. A toy that is reset is taken back by so many thirds of its workflow tasks.
func TestOnAServer(t *testing.T) {
	if _, err := devstack.Binary("devtemporal"); err != nil {
		t.Skip(err)
	}
	server, err := devstack.StartTemporal(t.Context(), devstack.TemporalOptions{Dir: t.TempDir(), InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Kill()
	worker.SetStickyWorkflowCacheSize(0)
	t.Run("toys", func(t *testing.T) { // returns when all have ended
		for _, one := range []struct{ every, thirds int }{{1, 0}, {3, 0}, {0, 1}, {0, 2}, {0, 3}} {
			t.Run(fmt.Sprintf("every %d, back by %d thirds", one.every, one.thirds), func(t *testing.T) {
				t.Parallel()
				onAServer(t, server.Client, one.every, one.thirds)
			})
		}
	})
}

func onAServer(t *testing.T, c client.Client, every, thirds int) {
	l := &live{t: t, c: c, made: map[string]int{}, ended: map[string]bool{}}
	l.queue = fmt.Sprintf("drydock-toy-%d-%d-%d", every, thirds, time.Now().UnixNano())
	w := l.worker(every)
	_, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: l.queue, TaskQueue: l.queue}, "toy", struct{}{}, []byte(nil))
	if err != nil {
		t.Fatal(err)
	}
	const jobs = 8
	name := func(i int) string { return fmt.Sprint(l.queue, "-", i) }
	l.add(name(0), false) // a signal, an update and a signal for the first workflow task
	updated := make(chan struct{})
	go func() {
		defer close(updated)
		l.add(name(1), true)
	}()
	l.add(name(2), false)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	<-updated
	for i := 3; i < jobs; i++ {
		l.add(name(i), i%3 == 2)
		time.Sleep(300 * time.Millisecond)
	}
	again := map[string]bool{}
	if thirds > 0 {
		again = l.reset(thirds)
	}
	if err := c.CancelWorkflow(t.Context(), l.queue, ""); err != nil {
		t.Fatal(err)
	}
	var result toy
	if err := c.GetWorkflow(t.Context(), l.queue, "").Get(t.Context(), &result); err != nil {
		t.Fatal(err)
	}
	if len(result.Jobs) != jobs || result.Cancels != 1 || (result.Resets == 1) != (thirds > 0) {
		t.Errorf("%+v", result)
	}
	at := func(i int) int { return slices.IndexFunc(result.Jobs, func(j job) bool { return j.Name == name(i) }) }
	if at(0) < 0 || at(1) < 0 || at(2) < at(0) {
		t.Errorf("in the order %+v", result.Jobs)
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	for _, j := range result.Jobs {
		if n := l.made[j.Name]; j.Stage != over || n != 1 && !(again[j.Name] && n == 2) {
			t.Errorf("%+v, made %d times, under way at the reset: %t", j, n, again[j.Name])
		}
	}
}

func (l *live) worker(every int) worker.Worker {
	w := worker.New(l.c, l.queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}}})
	w.RegisterWorkflowWithOptions(runToy(every, nil), workflow.RegisterOptions{Name: "toy"})
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
			l.t.Error(err)
		}
	}
}

// reset takes the workflow back by so many thirds of its workflow tasks. It returns the jobs whose objects were being made at that point:
// the server has these activities carried out again.
func (l *live) reset(thirds int) (again map[string]bool) {
	l.t.Helper()
	history := l.c.GetWorkflowHistory(l.t.Context(), l.queue, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var events []*historypb.HistoryEvent
	var completed []int64
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			l.t.Fatal(err)
		}
		events = append(events, event)
		if event.GetEventType() == enums.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			completed = append(completed, event.GetEventId())
		}
	}
	point := completed[len(completed)-max(len(completed)*thirds/3, 1)]
	again = map[string]bool{}
	scheduled := map[int64]string{}
	for _, event := range events {
		if event.GetEventId() >= point {
			break
		}
		if a := event.GetActivityTaskScheduledEventAttributes(); a.GetActivityType().GetName() == "make" {
			var name string
			if err := converter.GetDefaultDataConverter().FromPayloads(a.GetInput(), &name); err != nil {
				l.t.Fatal(err)
			}
			scheduled[event.GetEventId()], again[name] = name, true
		}
		delete(again, scheduled[event.GetActivityTaskCompletedEventAttributes().GetScheduledEventId()])
	}
	if _, err := l.c.ResetWorkflowExecution(l.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: l.queue}, Reason: "test",
		WorkflowTaskFinishEventId: point, RequestId: l.queue,
	}); err != nil {
		l.t.Fatal(err)
	}
	return again
}
