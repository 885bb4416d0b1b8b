package reset

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
)

const thisRun = "this-run"

// history is a workflow whose tasks are told apart by the length of their history.
type history struct {
	env *testsuite.TestWorkflowEnvironment
	log []string
	// copied is how long the history is that was copied; runs are what the server names to each call of noticed.
	copied int
	runs   []string
}

func newHistory() *history {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	h := &history{env: suite.NewTestWorkflowEnvironment()}
	h.env.RegisterActivityWithOptions(func(context.Context) (string, error) { return h.runs[0], nil }, activity.RegisterOptions{Name: "run"})
	h.env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(
		func(id string, _, _ workflow.Version) workflow.Version {
			var place int
			if _, err := fmt.Sscanf(id, "reset-at-%d", &place); err != nil {
				return 1
			}
			h.log = append(h.log, "looked")
			if place <= h.copied {
				return workflow.DefaultVersion
			}
			return 1
		})
	return h
}

// task lets the procedure go on in a task of its own.
func (h *history) task(when time.Duration, length int) {
	h.env.RegisterDelayedCallback(func() {
		h.env.SetCurrentHistoryLength(length)
		h.env.SignalWorkflow("go", length)
	}, when)
}

// run is a procedure that takes so many signals.
func (h *history) run(came bool, signals int) error {
	h.env.ExecuteWorkflow(func(ctx workflow.Context) error {
		w := &watch{came: came, runID: thisRun, length: workflow.GetInfo(ctx).GetCurrentHistoryLength}
		w.noticed = func(ctx workflow.Context) (run string, err error) {
			h.log = append(h.log, "noticed")
			ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
			err = workflow.ExecuteActivity(ctx, "run").Get(ctx, &run)
			h.runs = h.runs[1:]
			return run, err
		}
		return w.run(ctx, func(ctx workflow.Context) error {
			for range signals {
				var length int
				if more := workflow.GetSignalChannel(ctx, "go").Receive(ctx, &length); !more || ctx.Err() != nil {
					return ctx.Err()
				}
				h.log = append(h.log, fmt.Sprint("acts at ", length))
			}
			return nil
		})
	})
	return h.env.GetWorkflowError()
}

func TestAResetIsNoticedOnceAndBeforeAnythingElse(t *testing.T) {
	h := newHistory()
	h.copied, h.runs = 10, []string{thisRun}
	h.env.SetCurrentHistoryLength(3)
	h.task(time.Second, 7)
	h.task(2*time.Second, 10)
	h.task(3*time.Second, 14)
	h.task(4*time.Second, 20)
	if err := h.run(true, 4); err != nil {
		t.Fatal(err)
	}
	want := []string{"looked", "looked", "acts at 7", "looked", "acts at 10", "looked", "noticed", "acts at 14", "acts at 20"}
	if !slices.Equal(h.log, want) {
		t.Errorf("it went %q, want %q", h.log, want)
	}
}

func TestAResetThatWasCopiedIsNotTheLast(t *testing.T) {
	h := newHistory()
	h.copied, h.runs = 3, []string{"the run before", thisRun}
	h.env.SetCurrentHistoryLength(3)
	h.task(time.Second, 7)
	h.task(time.Minute, 14)
	h.task(2*time.Minute, 20)
	if err := h.run(true, 3); err != nil {
		t.Fatal(err)
	}
	want := []string{"looked", "looked", "noticed", "acts at 7", "looked", "noticed", "acts at 14", "acts at 20"}
	if !slices.Equal(h.log, want) {
		t.Errorf("it went %q, want %q", h.log, want)
	}
}

func TestARunThatWasNotResetIsLeftAlone(t *testing.T) {
	h := newHistory()
	h.task(time.Second, 7)
	if err := h.run(false, 1); err != nil || !slices.Equal(h.log, []string{"acts at 7"}) {
		t.Errorf("it went %q, %v", h.log, err)
	}
}

func TestTheProcedureDecidesWhatACancellationMeans(t *testing.T) {
	h := newHistory()
	h.env.RegisterDelayedCallback(h.env.CancelWorkflow, time.Minute)
	h.env.ExecuteWorkflow(func(ctx workflow.Context) error {
		return Run(ctx, nil, func(ctx workflow.Context) error {
			if err := workflow.Sleep(ctx, time.Hour); !temporal.IsCanceledError(err) {
				return fmt.Errorf("not cancelled: %w", err)
			}
			ctx, cancel := workflow.NewDisconnectedContext(ctx)
			defer cancel()
			h.log = append(h.log, "tidied up")
			return workflow.Sleep(ctx, time.Minute)
		})
	})
	if err := h.env.GetWorkflowError(); err != nil || !slices.Equal(h.log, []string{"tidied up"}) {
		t.Errorf("it went %q, %v", h.log, err)
	}
}
