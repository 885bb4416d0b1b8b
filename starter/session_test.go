package starter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock/api"
	"drydock/client"
	"drydock/rules/spec"
)

// fakeDesk plays a maintenance, and keeps what was done with it.
type fakeDesk struct {
	mu    sync.Mutex
	calls []string

	adopted     bool
	beginErrors []error
	readyErr    error
	// neverReady waits for the context's end instead of becoming Ready.
	neverReady bool
	tellErrors []error
	end        error
	endPhase   api.Phase
	// neverEnds waits for the context's end instead of ending.
	neverEnds bool
}

func (f *fakeDesk) did(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, fmt.Sprintf(format, args...))
}

// next takes the next planned error.
func (f *fakeDesk) next(planned *[]error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(*planned) == 0 {
		return nil
	}
	err := (*planned)[0]
	*planned = (*planned)[1:]
	return err
}

func (f *fakeDesk) begin(context.Context, order) (client.View, bool, error) {
	f.did("begin")
	return viewOf(api.Pending), f.adopted, f.next(&f.beginErrors)
}

func (f *fakeDesk) awaitReady(ctx context.Context, _ client.Maintenance) (client.View, error) {
	f.did("await ready")
	if f.neverReady {
		<-ctx.Done()
		return viewOf(api.Pending), stopCause(ctx)
	}
	return viewOf(api.Ready, func(s *api.Status) { s.Spec.ReadyTimeout = spec.Duration(3 * time.Second) }), f.readyErr
}

func (f *fakeDesk) tell(_ context.Context, _ client.Maintenance, m message) error {
	switch p := m.Payload(api.Message{}, "", nil).(type) {
	case api.FailedMessage:
		f.did("tell %s: %s", m.Name(), p.Reason)
	case api.Cancel:
		f.did("tell %s, release %v", m.Name(), p.Release)
	default:
		f.did("tell %s", m.Name())
	}
	return f.next(&f.tellErrors)
}

func (f *fakeDesk) started(context.Context, client.Maintenance) error { f.did("started"); return nil }

func (f *fakeDesk) extend(context.Context, client.Maintenance) error { f.did("extend"); return nil }

func (f *fakeDesk) awaitLeft(ctx context.Context, _ client.Maintenance) (client.View, error) {
	<-ctx.Done()
	return client.View{}, errInterrupted
}

func (f *fakeDesk) awaitEnd(ctx context.Context, _ client.Maintenance) (client.View, error) {
	f.did("await end")
	if f.neverEnds {
		<-ctx.Done()
		return viewOf(api.Releasing), stopCause(ctx)
	}
	v := viewOf(api.Completed)
	v.Execution, v.Result = 2, &api.Result{Phase: api.Completed}
	if f.endPhase != "" {
		v.Result.Phase = f.endPhase
	}
	return v, f.end
}

func (f *fakeDesk) note(string, ...any) {}

// runSession runs a shell script as the command of a session.
func runSession(t *testing.T, desk *fakeDesk, stop *interrupts, script string, change ...func(*session)) outcome {
	t.Helper()
	s := &session{
		desk: desk, program: "drydock", now: time.Now,
		order: order{spec: spec.Maintenance{Node: "worker-01", Requestor: "ops"}},
		command: func(client.Maintenance) command {
			return command{argv: []string{"/bin/sh", "-c", script}, killAfter: 10 * time.Second}
		},
	}
	for _, c := range change {
		c(s)
	}
	return s.work(stops{
		abandon: stop.reached(1), abort: stop.reached(1), giveUp: stop.reached(2), leave: stop.next, signal: stop.last,
	})
}

func noInterrupts(t *testing.T) *interrupts {
	t.Helper()
	i := newApp(Process{}).interrupts(context.Background())
	t.Cleanup(i.stop)
	return i
}

// check compares an outcome and the calls, of which extensions come by the clock and are left out.
func (f *fakeDesk) check(t *testing.T, got outcome, want outcome, note string, calls ...string) {
	t.Helper()
	if got.Node != "worker-01" || got.Result != want.Result || got.code != want.code {
		t.Errorf("outcome = %+v, want %s with code %d", got, want.Result, want.code)
	}
	if !strings.Contains(got.Note, note) || note == "" && got.Note != "" {
		t.Errorf("note = %q, want %q in it", got.Note, note)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = slices.DeleteFunc(f.calls, func(c string) bool { return c == "extend" })
	if diff := cmp.Diff(calls, f.calls); diff != "" {
		t.Errorf("calls: want - got +\n%s", diff)
	}
}

func TestSessionSaysDone(t *testing.T) {
	desk := &fakeDesk{}
	got := runSession(t, desk, noInterrupts(t), "exit 0")
	desk.check(t, got, outcome{Result: resultDone}, "", "begin", "await ready", "started", "tell done", "await end")
	if got.ExitStatus == nil || *got.ExitStatus != 0 {
		t.Errorf("exit status = %v", got.ExitStatus)
	}
}

func TestSessionSaysFailed(t *testing.T) {
	desk := &fakeDesk{}
	got := runSession(t, desk, noInterrupts(t), "exit 7")
	desk.check(t, got, outcome{Result: resultFailed, code: 7}, "exit status 7", "begin", "await ready", "started", "tell failed: exit status 7")
}

func TestSessionSaysFailedForACommandThatDoesNotStart(t *testing.T) {
	desk := &fakeDesk{}
	got := runSession(t, desk, noInterrupts(t), "", func(s *session) {
		s.command = func(client.Maintenance) command { return command{argv: []string{"/no/such/command"}} }
	})
	desk.check(t, got, outcome{Result: resultFailed, code: exitNotFound}, "no such file",
		"begin", "await ready", "started", "tell failed: cannot run /no/such/command: no such file or directory")
}

func TestSessionThatNeverGetsReady(t *testing.T) {
	desk := &fakeDesk{readyErr: errors.New("the node is gone")}
	got := runSession(t, desk, noInterrupts(t), "exit 0")
	desk.check(t, got, outcome{Result: resultFailed, code: exitOwnError}, "the node is gone", "begin", "await ready")
	if got.ExitStatus != nil {
		t.Error("an exit status without a command")
	}
}

func TestSessionInterruptedBeforeReadyCancels(t *testing.T) {
	for name, c := range map[string]struct {
		adopted bool
		release string
	}{"its own": {false, "true"}, "an adopted one": {true, "false"}} {
		t.Run(name, func(t *testing.T) {
			desk := &fakeDesk{neverReady: true, adopted: c.adopted, endPhase: api.Cancelled}
			stop := noInterrupts(t)
			time.AfterFunc(50*time.Millisecond, func() { stop.raise(1, syscall.SIGINT) })
			got := runSession(t, desk, stop, "exit 0")
			desk.check(t, got, outcome{Result: resultCancelled, code: exitCancelled}, "interrupted before the node was ready",
				"begin", "await ready", "tell cancel, release "+c.release, "await end")
		})
	}
}

func TestSessionCancelsWhatIsNotReadyInTime(t *testing.T) {
	desk := &fakeDesk{neverReady: true, endPhase: api.Cancelled}
	got := runSession(t, desk, noInterrupts(t), "exit 0", func(s *session) { s.readyWithin = 30 * time.Millisecond })
	desk.check(t, got, outcome{Result: resultFailed, code: exitOwnError}, "not ready within 30ms", "begin", "await ready", "tell cancel, release true", "await end")
}

func TestSessionInterruptedWhileItWorksStopsTheCommand(t *testing.T) {
	desk := &fakeDesk{}
	stop := noInterrupts(t)
	time.AfterFunc(300*time.Millisecond, func() { stop.raise(1, syscall.SIGTERM) })
	got := runSession(t, desk, stop, `trap "exit 9" TERM; sleep 20 & wait`)
	desk.check(t, got, outcome{Result: resultFailed, code: 9}, "exit status 9", "begin", "await ready", "started", "tell failed: exit status 9")
}

func TestSessionLeavesTheEndOnAnInterrupt(t *testing.T) {
	desk := &fakeDesk{neverEnds: true}
	stop := noInterrupts(t)
	time.AfterFunc(300*time.Millisecond, func() { stop.raise(1, syscall.SIGINT) })
	got := runSession(t, desk, stop, "exit 0")
	desk.check(t, got, outcome{Result: resultDone, code: exitInterrupted}, "which goes on", "begin", "await ready", "started", "tell done", "await end")
}

func TestSessionWhoseMaintenanceEndsBadly(t *testing.T) {
	desk := &fakeDesk{end: errors.New("ended NodeGone")}
	got := runSession(t, desk, noInterrupts(t), "exit 0")
	desk.check(t, got, outcome{Result: resultFailed, code: exitOwnError}, "the command succeeded, but ended NodeGone",
		"begin", "await ready", "started", "tell done", "await end")
}

func TestSessionPersistsWhileTemporalIsAway(t *testing.T) {
	away := fmt.Errorf("Temporal %w", client.ErrUnreachable)
	desk := &fakeDesk{beginErrors: []error{away}, tellErrors: []error{fmt.Errorf("no worker: %w", client.ErrUnanswered)}}
	got := runSession(t, desk, noInterrupts(t), "exit 0", func(s *session) { s.retryEvery = time.Millisecond })
	desk.check(t, got, outcome{Result: resultDone}, "", "begin", "begin", "await ready", "started", "tell done", "tell done", "await end")
}

func TestSessionGivesUpAtTheSecondInterrupt(t *testing.T) {
	away := fmt.Errorf("Temporal %w", client.ErrUnreachable)
	desk := &fakeDesk{tellErrors: slices.Repeat([]error{away}, 10000)}
	stop := noInterrupts(t)
	time.AfterFunc(300*time.Millisecond, func() { stop.raise(1, syscall.SIGINT) })
	time.AfterFunc(400*time.Millisecond, func() { stop.raise(2, syscall.SIGINT) })
	got := runSession(t, desk, stop, "exit 0", func(s *session) { s.retryEvery = time.Millisecond })
	if got.Result != resultFailed || got.code != exitOwnError || !strings.Contains(got.Note, "exit status was 0, but done was NOT said") {
		t.Errorf("outcome = %+v", got)
	}
}

func TestSessionWhoseCommandSaidDoneItself(t *testing.T) {
	for name, c := range map[string]struct {
		end  error
		want outcome
		note string
	}{
		"and it completed": {nil, outcome{Result: resultDone}, ""},
		"and it did not":   {errors.New("ended Cancelled"), outcome{Result: resultFailed, code: exitOwnError}, "ended Cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			desk := &fakeDesk{tellErrors: []error{fmt.Errorf("it %w", client.ErrEnded)}, end: c.end}
			got := runSession(t, desk, noInterrupts(t), "exit 0")
			desk.check(t, got, c.want, c.note, "begin", "await ready", "started", "tell done", "await end")
		})
	}
}

func TestFailureNobodyHeardOfIsSaid(t *testing.T) {
	desk := &fakeDesk{tellErrors: []error{fmt.Errorf("it %w", client.ErrEnded)}}
	got := runSession(t, desk, noInterrupts(t), "exit 3")
	desk.check(t, got, outcome{Result: resultFailed, code: 3}, "failed was NOT said", "begin", "await ready", "started", "tell failed: exit status 3")
}

func TestInterruptedStartMayHaveStarted(t *testing.T) {
	desk := &fakeDesk{beginErrors: slices.Repeat([]error{fmt.Errorf("Temporal %w", client.ErrUnreachable)}, 10000)}
	stop := noInterrupts(t)
	time.AfterFunc(50*time.Millisecond, func() { stop.raise(1, syscall.SIGINT) })
	got := runSession(t, desk, stop, "exit 0", func(s *session) { s.retryEvery = time.Millisecond })
	if got.Result != resultFailed || !strings.Contains(got.Note, "may have been started") {
		t.Errorf("outcome = %+v", got)
	}
}

func TestSessionDoesNotPersistInARefusal(t *testing.T) {
	desk := &fakeDesk{beginErrors: []error{errors.New("with other settings")}}
	got := runSession(t, desk, noInterrupts(t), "exit 0")
	desk.check(t, got, outcome{Result: resultFailed, code: exitOwnError}, "with other settings", "begin")
}

func TestSessionHoldsTheNodeWhileTheCommandLives(t *testing.T) {
	desk := &fakeDesk{}
	runSession(t, desk, noInterrupts(t), "sleep 1.5")
	desk.mu.Lock()
	defer desk.mu.Unlock()
	if !slices.Contains(desk.calls, "extend") {
		t.Errorf("calls = %v, want an extension after a third of 3s", desk.calls)
	}
}

func TestExtendEvery(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		time.Hour: 5 * time.Minute, 6 * time.Minute: 2 * time.Minute, 6 * time.Second: 2 * time.Second, time.Second: time.Second,
	} {
		if got := extendEvery(timeout); got != want {
			t.Errorf("extendEvery(%s) = %s, want %s", timeout, got, want)
		}
	}
}
