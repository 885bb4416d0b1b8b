package nodework

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/client"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/input"
	"drydock.dev/drydock/starter/startertest"
)

// fakeMaintenances plays a maintenance, and keeps what was done with it.
type fakeMaintenances struct {
	mu    sync.Mutex
	calls []string
	// interrupts are raised at the so manyth call that begins so.
	interrupts []interruption

	adopted     bool
	beginErrors []error
	readyErr    error
	// neverReady waits for the context's end instead of becoming Ready.
	neverReady bool
	tellErrors []error
	// ids are those of the messages that were sent.
	ids []string
	// unanswered is why what is told is only recorded.
	unanswered error
	end        error
	endPhase   api.Phase
	// neverEnds waits for the context's end instead of ending.
	neverEnds bool
}

// interruption is the interrupt of a number, at the so manyth call that begins so.
type interruption struct {
	call   string
	times  int
	stop   *Interrupts
	number int
}

func (f *fakeMaintenances) did(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	call := fmt.Sprintf(format, args...)
	f.calls = append(f.calls, call)
	for i := range f.interrupts {
		if in := &f.interrupts[i]; strings.HasPrefix(call, in.call) {
			if in.times--; in.times == 0 {
				in.stop.raise(in.number, syscall.SIGINT)
			}
		}
	}
}

// next takes the next planned error.
func (f *fakeMaintenances) next(planned *[]error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(*planned) == 0 {
		return nil
	}
	err := (*planned)[0]
	*planned = (*planned)[1:]
	return err
}

func (f *fakeMaintenances) begin(context.Context, input.Order) (client.View, bool, error) {
	f.did("begin")
	return startertest.View(api.Pending), f.adopted, f.next(&f.beginErrors)
}

func (f *fakeMaintenances) awaitReady(ctx context.Context, _ client.Maintenance) (client.View, error) {
	f.did("await ready")
	if f.neverReady {
		<-ctx.Done()
		return startertest.View(api.Pending, startertest.WaitingFor("a free slot")), exit.StopCause(ctx)
	}
	return startertest.View(api.Ready, func(s *api.Status) { s.Spec.ReadyTimeout = spec.Duration(3 * time.Second) }), f.readyErr
}

func (f *fakeMaintenances) send(_ context.Context, _ client.Maintenance, name string, payload any) (client.Sent, error) {
	switch p := payload.(type) {
	case api.FailedMessage:
		f.did("tell %s: %s", name, p.Reason)
		f.ids = append(f.ids, p.ID)
	case api.Cancel:
		f.did("tell %s, release %v", name, p.Release)
		f.ids = append(f.ids, p.ID)
	case api.Done:
		f.did("tell %s", name)
		f.ids = append(f.ids, p.ID)
	}
	return client.Sent{Unanswered: f.unanswered}, f.next(&f.tellErrors)
}

func (f *fakeMaintenances) started(context.Context, client.Maintenance) error {
	f.did("started")
	return nil
}

func (f *fakeMaintenances) extend(context.Context, client.Maintenance) error {
	f.did("extend")
	return nil
}

func (f *fakeMaintenances) awaitLeft(ctx context.Context, _ client.Maintenance) (client.View, error) {
	<-ctx.Done()
	return client.View{}, exit.ErrInterrupted
}

func (f *fakeMaintenances) awaitEnd(ctx context.Context, _ client.Maintenance) (client.View, error) {
	f.did("await end")
	if f.neverEnds {
		<-ctx.Done()
		return startertest.View(api.Releasing), exit.StopCause(ctx)
	}
	v := startertest.View(api.Completed)
	v.Execution, v.Result = 2, &api.Result{Phase: api.Completed}
	if f.endPhase != "" {
		v.Result.Phase = f.endPhase
	}
	return v, f.end
}

func (f *fakeMaintenances) note(string, ...any) {}

// runSession runs a shell script as the command of a session.
func runSession(t *testing.T, maintenances *fakeMaintenances, stop *Interrupts, script string, change ...func(*Session)) api.NodeOutcome {
	t.Helper()
	s := &Session{
		Maintenances: maintenances, Program: "drydock", Now: time.Now,
		Order:   input.Order{Spec: spec.Maintenance{Node: "worker-01", Requestor: "ops"}},
		Command: Command{Argv: []string{"/bin/sh", "-c", script}, KillAfter: 10 * time.Second}, Env: os.Environ(),
	}
	for _, c := range change {
		c(s)
	}
	return s.Work(Stops{
		Abandon: stop.Reached(1), Abort: stop.Reached(1), GiveUp: stop.Reached(2), Leave: stop.Next, Interrupts: stop,
	})
}

func noInterrupts(t *testing.T) *Interrupts {
	t.Helper()
	i := NewInterrupts(context.Background(), nil)
	t.Cleanup(i.Stop)
	return i
}

// check compares an outcome and the calls, of which extensions come by the clock and are left out.
func (f *fakeMaintenances) check(t *testing.T, got api.NodeOutcome, want api.NodeOutcome, note string, calls ...string) {
	t.Helper()
	if got.Node != "worker-01" || got.Result != want.Result || got.Code != want.Code {
		t.Errorf("outcome = %+v, want %s with code %d", got, want.Result, want.Code)
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
	maintenances := &fakeMaintenances{}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0")
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeDone}, "", "begin", "await ready", "started", "tell done", "await end")
	if got.ExitStatus == nil || *got.ExitStatus != 0 {
		t.Errorf("exit status = %v", got.ExitStatus)
	}
}

func TestSessionSaysFailed(t *testing.T) {
	maintenances := &fakeMaintenances{}
	got := runSession(t, maintenances, noInterrupts(t), "exit 7")
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: 7}, "exit status 7", "begin", "await ready", "started", "tell failed: exit status 7")
}

func TestSessionSaysFailedForACommandThatDoesNotStart(t *testing.T) {
	maintenances := &fakeMaintenances{}
	got := runSession(t, maintenances, noInterrupts(t), "", func(s *Session) {
		s.Command = Command{Argv: []string{"/no/such/command"}}
	})
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: exit.NotFound}, "no such file",
		"begin", "await ready", "started", "tell failed: cannot run /no/such/command: no such file or directory")
}

func TestSessionThatNeverGetsReady(t *testing.T) {
	maintenances := &fakeMaintenances{readyErr: errors.New("the node is gone")}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0")
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: exit.OwnError}, "the node is gone", "begin", "await ready")
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
			maintenances := &fakeMaintenances{neverReady: true, adopted: c.adopted, endPhase: api.Cancelled}
			stop := noInterrupts(t)
			maintenances.interrupts = []interruption{{"await ready", 1, stop, 1}}
			got := runSession(t, maintenances, stop, "exit 0")
			maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeCancelled, Code: exit.Cancelled}, "interrupted before the node was ready",
				"begin", "await ready", "tell cancel, release "+c.release, "await end")
		})
	}
}

// TestSessionLeavesANodeThatIsNotReadyToItsPlan: whoever took it out of service goes on with it.
func TestSessionLeavesANodeThatIsNotReadyToItsPlan(t *testing.T) {
	maintenances := &fakeMaintenances{neverReady: true}
	stop := noInterrupts(t)
	maintenances.interrupts = []interruption{{"await ready", 1, stop, 1}}
	got := runSession(t, maintenances, stop, "exit 0", func(s *Session) { s.Leaves = true })
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeNotStarted, Code: exit.Cancelled}, "its maintenance goes on", "begin", "await ready")
}

// TestANodeThatItsPlanSkipsHasNotFailed: a plan that somebody has skip the node cancels its maintenance.
func TestANodeThatItsPlanSkipsHasNotFailed(t *testing.T) {
	for name, c := range map[string]struct {
		end    api.Phase
		shared bool
		want   api.NodeResult
	}{
		"skipped":          {api.Cancelled, true, api.OutcomeSkipped},
		"gone":             {api.NodeGone, true, api.OutcomeSkipped},
		"failed":           {api.Failed, true, api.OutcomeFailed},
		"of its own, here": {api.Cancelled, false, api.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			err := &client.EndError{View: startertest.View(c.end), BeforeReady: true}
			maintenances := &fakeMaintenances{readyErr: fmt.Errorf("waiting: %w", err)}
			got := runSession(t, maintenances, noInterrupts(t), "exit 0", func(s *Session) { s.Shared = c.shared })
			maintenances.check(t, got, api.NodeOutcome{Result: c.want, Code: exit.OwnError}, err.Error(), "begin", "await ready")
		})
	}
}

// TestANodeThatWasReadyBeforeHasFailed: its work had begun once, and somebody took it from whoever waits for it to be tried again.
func TestANodeThatWasReadyBeforeHasFailed(t *testing.T) {
	ended := startertest.View(api.Cancelled, func(s *api.Status) { s.Transitions = []api.Transition{{Phase: api.Ready}} })
	maintenances := &fakeMaintenances{readyErr: &client.EndError{View: ended, BeforeReady: true}}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0", func(s *Session) { s.Shared = true })
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: exit.OwnError}, "ended Cancelled", "begin", "await ready")
}

func TestSessionCancelsWhatIsNotReadyInTime(t *testing.T) {
	maintenances := &fakeMaintenances{neverReady: true, endPhase: api.Cancelled}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0", func(s *Session) { s.ReadyWithin = 30 * time.Millisecond })
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: exit.OwnError}, "not ready within 30ms (Pending: waiting for a free slot), cancelled", "begin", "await ready", "tell cancel, release true", "await end")
}

func TestSessionInterruptedWhileItWorksStopsTheCommand(t *testing.T) {
	maintenances := &fakeMaintenances{}
	stop := noInterrupts(t)
	got := runSession(t, maintenances, stop, "", func(s *Session) {
		s.Command = Command{
			Argv:   []string{"/bin/sh", "-c", `trap "exit 9" TERM; echo trapped; sleep 20 & wait`},
			Stdout: &onOutput{then: func() { stop.raise(1, syscall.SIGTERM) }}, KillAfter: 10 * time.Second,
		}
	})
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: 9}, "exit status 9", "begin", "await ready", "started", "tell failed: exit status 9")
}

func TestSessionLeavesTheEndOnAnInterrupt(t *testing.T) {
	maintenances := &fakeMaintenances{neverEnds: true}
	stop := noInterrupts(t)
	maintenances.interrupts = []interruption{{"await end", 1, stop, 1}}
	got := runSession(t, maintenances, stop, "exit 0")
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeDone, Code: exit.Interrupted}, "which goes on", "begin", "await ready", "started", "tell done", "await end")
}

func TestSessionWhoseMaintenanceEndsBadly(t *testing.T) {
	maintenances := &fakeMaintenances{end: errors.New("ended NodeGone")}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0")
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: exit.OwnError}, "the command succeeded, but ended NodeGone",
		"begin", "await ready", "started", "tell done", "await end")
}

func TestSessionPersistsWhileTemporalIsAway(t *testing.T) {
	away := fmt.Errorf("Temporal %w", client.ErrUnreachable)
	maintenances := &fakeMaintenances{beginErrors: []error{away}, tellErrors: []error{fmt.Errorf("no worker: %w", client.ErrUnanswered)}}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0", func(s *Session) { s.retryEvery = time.Millisecond })
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeDone}, "", "begin", "begin", "await ready", "started", "tell done", "tell done", "await end")
	if ids := maintenances.ids; ids[0] == "" || ids[0] != ids[1] {
		t.Errorf("the same message was sent with the IDs %q", ids)
	}
}

func TestSessionWaitsForTheMaintenanceBefore(t *testing.T) {
	maintenances := &fakeMaintenances{beginErrors: []error{fmt.Errorf("starting: %w", &client.ReleasingError{View: startertest.View(api.Releasing)})}}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0", func(s *Session) { s.retryEvery = time.Millisecond })
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeDone}, "", "begin", "begin", "await ready", "started", "tell done", "await end")
}

func TestSessionGivesUpAtTheSecondInterrupt(t *testing.T) {
	away := fmt.Errorf("Temporal %w", client.ErrUnreachable)
	maintenances := &fakeMaintenances{tellErrors: slices.Repeat([]error{away}, 10000)}
	stop := noInterrupts(t)
	maintenances.interrupts = []interruption{{"tell done", 2, stop, 1}, {"tell done", 4, stop, 2}}
	got := runSession(t, maintenances, stop, "exit 0", func(s *Session) { s.retryEvery = time.Millisecond })
	if got.Result != api.OutcomeFailed || got.Code != exit.OwnError || !strings.Contains(got.Note, "exit status was 0, but done was NOT said") {
		t.Errorf("outcome = %+v", got)
	}
}

func TestSessionWhoseCommandSaidDoneItself(t *testing.T) {
	for name, c := range map[string]struct {
		end  error
		want api.NodeOutcome
		note string
	}{
		"and it completed": {nil, api.NodeOutcome{Result: api.OutcomeDone}, ""},
		"and it did not":   {errors.New("ended Cancelled"), api.NodeOutcome{Result: api.OutcomeFailed, Code: exit.OwnError}, "ended Cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			maintenances := &fakeMaintenances{tellErrors: []error{fmt.Errorf("it %w", client.ErrEnded)}, end: c.end}
			got := runSession(t, maintenances, noInterrupts(t), "exit 0")
			maintenances.check(t, got, c.want, c.note, "begin", "await ready", "started", "tell done", "await end")
		})
	}
}

func TestFailureNobodyHeardOfIsSaid(t *testing.T) {
	maintenances := &fakeMaintenances{tellErrors: []error{fmt.Errorf("it %w", client.ErrEnded)}}
	got := runSession(t, maintenances, noInterrupts(t), "exit 3")
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: 3}, "failed was NOT said", "begin", "await ready", "started", "tell failed: exit status 3")
}

func TestInterruptedStartMayHaveStarted(t *testing.T) {
	maintenances := &fakeMaintenances{beginErrors: slices.Repeat([]error{fmt.Errorf("Temporal %w", client.ErrUnreachable)}, 10000)}
	stop := noInterrupts(t)
	maintenances.interrupts = []interruption{{"begin", 2, stop, 1}}
	got := runSession(t, maintenances, stop, "exit 0", func(s *Session) { s.retryEvery = time.Millisecond })
	if got.Result != api.OutcomeFailed || !strings.Contains(got.Note, "may have been started") {
		t.Errorf("outcome = %+v", got)
	}
}

func TestSessionDoesNotPersistInARefusal(t *testing.T) {
	maintenances := &fakeMaintenances{beginErrors: []error{errors.New("with other settings")}}
	got := runSession(t, maintenances, noInterrupts(t), "exit 0")
	maintenances.check(t, got, api.NodeOutcome{Result: api.OutcomeFailed, Code: exit.OwnError}, "with other settings", "begin")
}

func TestSessionHoldsTheNodeWhileTheCommandLives(t *testing.T) {
	maintenances := &fakeMaintenances{}
	runSession(t, maintenances, noInterrupts(t), "sleep 3")
	maintenances.mu.Lock()
	defer maintenances.mu.Unlock()
	if !slices.Contains(maintenances.calls, "extend") {
		t.Errorf("calls = %v, want an extension after a third of 3s", maintenances.calls)
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

func TestACancellationThatNobodyReadsIsNotWaitedFor(t *testing.T) {
	f := &fakeMaintenances{neverReady: true, neverEnds: true, unanswered: &client.NoWorkerError{Silent: true}}
	o := runSession(t, f, noInterrupts(t), "true", func(s *Session) { s.ReadyWithin = time.Millisecond })
	if o.Result != api.OutcomeFailed || o.Code != exit.OwnError || !strings.Contains(o.Note, "not ready within 1ms (Pending: waiting for a free slot), cancelled; it is undone when a worker runs: no worker answers") {
		t.Errorf("%+v", o)
	}
	if slices.Contains(f.calls, "await end") {
		t.Errorf("calls %q", f.calls)
	}
}
