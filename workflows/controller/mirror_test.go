package controller_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/controller"
)

// mirroredSite runs a stub that shows how many messages it has received, and a bridge that takes two seconds to answer.
func mirroredSite(t *testing.T, answer error) *site {
	s := newSite(t, func(*stub, controller.Turn) (d controller.Decision) { return d })
	s.stub.object = &spec.Object{Resource: "stubs.drydock.dev", Name: "kernel", UID: "uid-1"}
	s.env.RegisterActivityWithOptions(func(context.Context, spec.Object) error { return nil }, activity.RegisterOptions{Name: api.ReconcileObject})
	s.env.OnActivity(api.ReconcileObject, mock.Anything, *s.stub.object).Return(func(ctx context.Context, _ spec.Object) error {
		info := activity.GetInfo(ctx)
		if queue := api.LaneBridge.Queue(api.DefaultTaskQueue); info.TaskQueue != queue {
			t.Errorf("it is called on task queue %s, want %s", info.TaskQueue, queue)
		}
		if within := info.Deadline.Sub(info.ScheduledTime); within > 10*time.Second {
			t.Errorf("it has %s to answer", within)
		}
		return answer
	}).After(2 * time.Second).Maybe()
	s.env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) { s.note("called") })
	for _, at := range []time.Duration{10 * time.Second, 10500 * time.Millisecond, 11 * time.Second} {
		s.signal(at, "word", word{Text: "a"})
	}
	return s
}

func TestTheBridgeIsCalledOnceForChangesThatComeTogether(t *testing.T) {
	s := mirroredSite(t, nil)
	if err := s.run(time.Hour); err != nil {
		t.Fatal(err)
	}
	s.want("0s called", "10s called", "12s called", "1h0m0s called")
}

// A call that fails is no trouble of the workflow, and is not repeated.
func TestABridgeThatIsAwayIsNoTrouble(t *testing.T) {
	s := mirroredSite(t, errors.New("nobody is there"))
	if err := s.run(time.Hour); err != nil {
		t.Fatal(err)
	}
	if len(s.log) > 4 || len(s.stub.Notes)+len(s.stub.Retries) > 0 {
		t.Errorf("log %q, notes %+v, retries %+v", s.log, s.stub.Notes, s.stub.Retries)
	}
}

func TestAWorkflowWithoutAnObjectCallsNoBridge(t *testing.T) {
	s := mirroredSite(t, nil)
	s.stub.object = nil
	if err := s.run(time.Hour); err != nil {
		t.Fatal(err)
	}
	s.want()
}
