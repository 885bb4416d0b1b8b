package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/call"
	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/controller/controllertest"
	"drydock.dev/drydock/workflows/inbox"
	"drydock.dev/drydock/workflows/workflowtest"
)

// stub decides as a test says.
type stub struct {
	controller.Base
	Received []string `json:"received,omitempty"`
	Verdict  string   `json:"verdict,omitempty"`
	decide   func(s *stub, t controller.Turn) controller.Decision
	outcome  func(s *stub, o controller.Outcome, now time.Time)
	decided  int
	atOnce   int
	lastly   time.Time
	started  time.Time
	attended map[string]string
	memo     map[string]any
	every    int
	object   *spec.Object
}

func (s *stub) Begin(now time.Time) { s.started, s.ContinueAfter = now, s.every }
func (s *stub) Reset(time.Time)     { s.Verdict += "reset " }
func (s *stub) Cancel(time.Time)    { s.Received = append(s.Received, "cancelled") }

func (s *stub) Page(time.Time) controller.Page {
	return controller.Page{Details: s.Details(document.Document{}), Attributes: s.attended, Memo: s.memo, Object: s.object, Shows: len(s.Received)}
}

func (s *stub) Outcome(o controller.Outcome, now time.Time) {
	if s.outcome != nil {
		s.outcome(s, o, now)
	}
}

func (s *stub) Decide(t controller.Turn) controller.Decision {
	s.decided++
	if s.lastly.Equal(t.Now) {
		s.atOnce++
	}
	s.lastly = t.Now
	d := s.decide(s, t)
	if slices.Contains(s.Received, "end") {
		d = controller.Decision{End: &controller.End{}}
	}
	return d
}

// word is a message of people, fact one of a workflow, question one that is settled by a verdict.
type word struct {
	api.Message
	Text string `json:"text,omitempty"`
}

func (w word) Check(s *stub, _ time.Time) error {
	if w.Text == "wrong" {
		return errors.New("it is wrong")
	}
	return nil
}

func (w word) Apply(s *stub, _ time.Time) string {
	s.Received = append(s.Received, w.Text)
	return "received " + w.Text
}

type fact struct{ word }

type question struct{ word }

func (question) Settled(s *stub) (bool, error) {
	if s.Verdict == "" {
		return false, nil
	}
	return true, errors.New(s.Verdict)
}

// site runs a stub.
type site struct {
	t     *testing.T
	env   *testsuite.TestWorkflowEnvironment
	stub  *stub
	start time.Time
	// mu guards log, and what else activities of a test write: they run at once.
	mu  sync.Mutex
	log []string
}

func newSite(t *testing.T, decide func(s *stub, t controller.Turn) controller.Decision) *site {
	start := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := &site{t: t, env: workflowtest.Environment(start), stub: &stub{decide: decide}, start: start}
	s.env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: "stub", TaskQueue: api.DefaultTaskQueue})
	s.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, input converter.RawValue, packed []byte) (any, error) {
		err := controller.Run(ctx, s.stub, controller.Program[*stub]{Type: "stub", Input: input, Messages: []controller.Message[*stub]{
			{Name: "word", Payload: word{}}, {Name: "question", Payload: question{}}, {Name: "fact", Payload: fact{}, FromWorkflows: true},
			{Name: "short", Payload: word{}, Max: 30},
		}}, packed)
		return s.stub, err
	}, workflow.RegisterOptions{Name: "stub"})
	s.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, d time.Duration) error { return workflow.Sleep(ctx, d) }, workflow.RegisterOptions{Name: "child"})
	register(s.env, "act", func(_ context.Context, in string) (string, error) { return in, nil })
	return s
}

func (s *site) note(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log = append(s.log, fmt.Sprintf("%s %s", s.env.Now().Sub(s.start).Truncate(time.Second), what))
}

func (s *site) at(at time.Duration, do func()) { s.env.RegisterDelayedCallback(do, at) }

func (s *site) signal(at time.Duration, name string, payload any) {
	s.at(at, func() { s.env.SignalWorkflow(name, payload) })
}

// run ends the workflow at a time.
func (s *site) run(end time.Duration) error {
	s.signal(end, "word", word{Text: "end"})
	s.env.ExecuteWorkflow("stub", struct{}{}, []byte(nil))
	return s.env.GetWorkflowError()
}

func (s *site) want(want ...string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.log, want) {
		s.t.Errorf("log %q, want %q", s.log, want)
	}
}

func act(of, input string) controller.Activity {
	return controller.Activity{Meta: meta("act", of), Call: controller.Call{Func: "act", Attempts: 1}, Input: input}
}

func TestAWakeUpInThePastIsADecisionAndNoTimer(t *testing.T) {
	s := newSite(t, func(s *stub, t controller.Turn) (d controller.Decision) {
		if s.decided%2 == 1 { // each event has a second decision
			d.Wake = t.Now.Add(-time.Hour)
		}
		return d
	})
	timers := 0
	s.env.SetOnTimerScheduledListener(func(string, time.Duration) { timers++ })
	for i := range 20 {
		s.signal(time.Duration(i)*time.Second, "fact", fact{})
	}
	if err := s.run(time.Hour); err != nil {
		t.Fatal(err)
	}
	if timers > 0 || s.stub.decided > 45 || len(s.stub.Notes) > 0 {
		t.Errorf("%d timers, %d decisions, notes %+v", timers, s.stub.decided, s.stub.Notes)
	}
}

func TestADecisionThatAsksToBeWokenAtOnceAgainAndAgainIsReported(t *testing.T) {
	for name, decide := range map[string]func(s *stub, t controller.Turn) controller.Decision{
		"in the past": func(_ *stub, t controller.Turn) controller.Decision {
			return controller.Decision{Wake: t.Now.Add(-time.Hour), Why: "because"}
		},
		"now": func(_ *stub, t controller.Turn) controller.Decision {
			return controller.Decision{Wake: t.Now, Why: "because"}
		},
		"and more": func(*stub, controller.Turn) controller.Decision {
			return controller.Decision{More: true, Why: "because"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, decide)
			timers := 0
			s.env.SetOnTimerScheduledListener(func(string, time.Duration) { timers++ })
			if err := s.run(time.Hour); err != nil {
				t.Fatal(err)
			}
			most := 150
			if name == "and more" {
				most = 70 * 101
			}
			if timers < 50 || timers > 70 || s.stub.decided > most {
				t.Errorf("%d timers, %d decisions in an hour", timers, s.stub.decided)
			}
			if len(s.stub.Notes) != 1 || !strings.Contains(s.stub.Notes[0].Why, "because") {
				t.Errorf("notes %+v", s.stub.Notes)
			}
		})
	}
}

func TestADecisionThatIsSplitGoesOnAtOnce(t *testing.T) {
	s := newSite(t, func(s *stub, _ controller.Turn) controller.Decision { return controller.Decision{More: s.decided < 50} })
	if err := s.run(time.Second); err != nil || s.stub.decided != 51 || s.stub.atOnce != 49 || len(s.stub.Notes) > 0 {
		t.Errorf("%v: %d decisions, %d at once, %+v", err, s.stub.decided, s.stub.atOnce, s.stub.Notes)
	}
}

func TestThereIsOneTimer(t *testing.T) {
	s := newSite(t, func(s *stub, t controller.Turn) (d controller.Decision) {
		if len(s.Received) < 30 {
			d.Wake = s.started.Add(time.Duration(100-len(s.Received)) * time.Second) // ever earlier
		}
		return d
	})
	running, most := 0, 0
	s.env.SetOnTimerScheduledListener(func(_ string, d time.Duration) {
		running++
		if most = max(most, running); d < time.Second {
			t.Errorf("a timer of %s", d)
		}
	})
	s.env.SetOnTimerCanceledListener(func(string) { running-- })
	s.env.SetOnTimerFiredListener(func(string) { running-- })
	for i := range 30 {
		s.signal(time.Duration(i+1)*time.Second, "fact", fact{})
	}
	if err := s.run(50 * time.Second); err != nil || most > 2 || running != 0 { // one is cancelled after the other is set
		t.Errorf("%v: %d timers at once, %d left", err, most, running)
	}
}

func TestWhatIsUnderWayIsBounded(t *testing.T) {
	const nodes = 600
	var most, perTurn, last int
	mismatch := false
	s := newSite(t, func(s *stub, t controller.Turn) (d controller.Decision) {
		under := 0
		for i := range nodes {
			k := key("start", fmt.Sprint(i))
			if t.UnderWay(k) {
				under++
			}
			start := controller.Start{Meta: controller.Meta{Key: k}, Type: "child", ID: fmt.Sprint("child/", i), Input: time.Minute / 2}
			if !slices.Contains(s.Received, fmt.Sprint(i)) {
				d.Effects = append(d.Effects, start, start)
			}
		}
		mismatch = mismatch || t.Room() < 0 || t.Room()+under != 400
		most, perTurn, last = max(most, under), max(perTurn, under-last), under
		return d
	})
	s.stub.outcome = func(s *stub, o controller.Outcome, _ time.Time) {
		if o.What == controller.Done && o.Err == nil {
			s.Received = append(s.Received, o.Key.Of)
		}
	}
	started := 0
	s.env.SetOnChildWorkflowStartedListener(func(*workflow.Info, workflow.Context, converter.EncodedValues) { started++ })
	s.at(time.Minute, func() { s.stub.decide = func(*stub, controller.Turn) (d controller.Decision) { return d } })
	s.env.SetDetachedChildWait(false)
	if err := s.run(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	if started != nodes || len(s.stub.Received) != nodes+1 || most > 400 || perTurn > 100 || mismatch {
		t.Errorf("%d started, %d received, %d under way, %d a turn, room differs %t", started, len(s.stub.Received), most, perTurn, mismatch)
	}
}

func TestAWorkflowTaskHasAMegabyteOfPayloads(t *testing.T) {
	most := 0
	s := newSite(t, func(s *stub, t controller.Turn) (d controller.Decision) {
		under := 0
		for i := range 50 {
			if t.UnderWay(key("act", fmt.Sprint(i))) {
				under++
			}
			d.Effects = append(d.Effects, act(fmt.Sprint(i), strings.Repeat("x", 100<<10)))
		}
		most = max(most, under)
		return d
	})
	s.stub.outcome = func(s *stub, o controller.Outcome, _ time.Time) { s.Received = append(s.Received, o.Key.Of) }
	s.env.OnActivity("act", mock.Anything, mock.Anything).After(time.Minute).Return("", nil)
	s.signal(20*time.Second, "fact", fact{})
	s.at(30*time.Second, func() {
		if most < 10 || most > 11 {
			t.Errorf("%d of 100 KiB at once", most)
		}
	})
	if err := s.run(90 * time.Second); err != nil {
		t.Fatal(err)
	}
}

func TestWhatFailsIsTriedAgainEverMoreRarely(t *testing.T) {
	s := newSite(t, func(*stub, controller.Turn) controller.Decision {
		return controller.Decision{Effects: []controller.Effect{act("a", "x"), act("b", "y")}}
	})
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(_ context.Context, in string) (string, error) {
		if in == "x" {
			s.note("a")
			return "", errors.New("no such luck")
		}
		return "", nil
	})
	if err := s.run(6 * time.Minute); err != nil {
		t.Fatal(err)
	}
	s.want("0s a", "10s a", "30s a", "1m10s a", "2m30s a", "5m10s a")
	troubles := s.stub.Troubles()
	if len(troubles) != 1 || troubles[0].Why != "no such luck" || len(s.stub.Notes) != 1 {
		t.Errorf("%+v, %+v", troubles, s.stub.Notes)
	}
}

func TestWhatHasSucceededIsRepeatedEverMoreRarelyAndAnotherContentAtOnce(t *testing.T) {
	s := newSite(t, func(s *stub, _ controller.Turn) controller.Decision {
		a := act("a", fmt.Sprint(len(s.Received)))
		a.Repeat = 10 * time.Second
		return controller.Decision{Effects: []controller.Effect{a}}
	})
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(_ context.Context, in string) (string, error) {
		s.note(in)
		return "", nil
	})
	s.signal(35*time.Second, "fact", fact{})
	if err := s.run(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	s.want("0s 0", "10s 0", "30s 0", "35s 1", "45s 1", "1m5s 1", "1m45s 1")
}

func TestAControllerHasAnEffectRestOrFail(t *testing.T) {
	s := newSite(t, func(*stub, controller.Turn) controller.Decision {
		return controller.Decision{Effects: []controller.Effect{act("rests", "x"), act("fails", "y")}}
	})
	s.stub.outcome = func(s *stub, o controller.Outcome, now time.Time) {
		if o.Key.Of == "rests" {
			s.Rest(o.Key, 20*time.Second, now)
		} else {
			s.Fails(o.Key, "it", "is not so", now)
		}
	}
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(_ context.Context, in string) (string, error) {
		s.note(in)
		return "", nil
	})
	if err := s.run(50 * time.Second); err != nil {
		t.Fatal(err)
	}
	slices.Sort(s.log)
	s.want("0s x", "0s y", "10s y", "20s x", "30s y", "40s x")
}

func watch(want, known string) controller.Watch {
	return controller.Watch{Key: key("watch", ""), Summary: "watch", Call: controller.Call{Func: "act", Heartbeat: 10 * time.Second}, Input: want + known, Want: want}
}

func TestAWatchIsBegunAnewWithWhatItIsAbout(t *testing.T) {
	s := newSite(t, func(s *stub, t controller.Turn) controller.Decision {
		if len(s.Received) == 0 {
			return controller.Decision{}
		}
		return controller.Decision{Watches: []controller.Watch{watch(s.Received[len(s.Received)-1], s.Verdict)}}
	})
	s.stub.outcome = func(s *stub, o controller.Outcome, _ time.Time) {
		var report string
		if o.What != controller.Reported || o.Get(&report) != nil || o.Begun.(controller.Watch).Want != report[:1] {
			t.Errorf("%+v", o)
		}
		s.Verdict = report[1:] + "+"
	}
	// It does not notice that it is cancelled, and reports all the same.
	s.env.OnActivity("act", mock.Anything, mock.Anything).After(30 * time.Second).Return(func(_ context.Context, in string) (string, error) {
		s.note(in)
		return in, nil
	})
	s.signal(time.Second, "word", word{Text: "a"})
	s.signal(50*time.Second, "word", word{Text: "b"}) // in the midst of the second
	s.signal(50*time.Second+100*time.Millisecond, "word", word{Text: "a"})
	if err := s.run(2 * time.Minute); err != nil {
		t.Fatal(err)
	}
	for _, entry := range s.log {
		if strings.HasSuffix(entry, " b") {
			t.Errorf("what was stopped counts: %q", s.log)
		}
	}
	if len(s.log) < 3 || s.stub.Verdict == "" {
		t.Errorf("log %q, %q", s.log, s.stub.Verdict)
	}
}

func TestAWatchThatReportsTheSameAgainSlowsDown(t *testing.T) {
	s := newSite(t, func(*stub, controller.Turn) controller.Decision {
		return controller.Decision{Watches: []controller.Watch{watch("a", "")}}
	})
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(_ context.Context, in string) (string, error) {
		s.note(in)
		return in, nil
	})
	if err := s.run(100 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.want("0s a", "1s a", "3s a", "7s a", "15s a", "31s a", "1m3s a", "1m35s a")
}

func TestAWatchThatFailsIsNotedAndRests(t *testing.T) {
	s := newSite(t, func(*stub, controller.Turn) controller.Decision {
		w := watch("a", "")
		w.Call.Attempts = 1
		return controller.Decision{Watches: []controller.Watch{w}}
	})
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(context.Context, string) (string, error) {
		s.note("a")
		return "", errors.New("no such luck")
	})
	s.at(20*time.Second, func() {
		if len(s.stub.Notes) != 1 || len(s.stub.Troubles()) != 1 {
			t.Errorf("%+v, %+v", s.stub.Notes, s.stub.Troubles())
		}
	})
	if err := s.run(40 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.want("0s a", "10s a", "30s a")
}

func TestTheMemoIsSetOnChange(t *testing.T) {
	s := newSite(t, func(s *stub, _ controller.Turn) (d controller.Decision) {
		s.memo = map[string]any{"said": len(s.Received) / 2}
		return d
	})
	for i := range 3 {
		s.env.OnUpsertMemo(map[string]any{"said": i}).Return(nil).Once()
	}
	for i := range 4 {
		s.signal(time.Duration(i+1)*time.Second, "fact", fact{})
	}
	if err := s.run(time.Minute); err != nil {
		t.Error(err)
	}
	s.env.AssertExpectations(t)
}

func TestSearchAttributesAreSetOnChange(t *testing.T) {
	s := newSite(t, func(s *stub, _ controller.Turn) (d controller.Decision) {
		s.attended = map[string]string{"A": fmt.Sprint(len(s.Received) / 2), "B": "b"}
		return d
	})
	s.env.OnUpsertTypedSearchAttributes(mock.Anything).Return(nil).Times(3)
	for i := range 4 {
		s.signal(time.Duration(i+1)*time.Second, "fact", fact{})
	}
	if err := s.run(time.Minute); err != nil || s.stub.Shown["A"] != "2" {
		t.Errorf("%v: %v", err, s.stub.Shown)
	}
	s.env.AssertExpectations(t)
}

func TestWhatIsWantedNowAndThenIsDoneEachTimeAtOnce(t *testing.T) {
	s := newSite(t, func(s *stub, _ controller.Turn) (d controller.Decision) {
		if s.Verdict == "wanted" {
			d.Effects = append(d.Effects, act("a", "x"))
		}
		return d
	})
	s.stub.outcome = func(s *stub, _ controller.Outcome, _ time.Time) { s.Verdict = "" }
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(_ context.Context, in string) (string, error) {
		s.note(in)
		return "", nil
	})
	for i := range 8 {
		s.at(time.Duration(i*10)*time.Second, func() { s.stub.Verdict = "wanted" })
		s.signal(time.Duration(i*10)*time.Second, "fact", fact{})
	}
	if err := s.run(90 * time.Second); err != nil {
		t.Fatal(err)
	}
	s.want("0s x", "10s x", "20s x", "30s x", "40s x", "50s x", "1m0s x", "1m10s x")
}

// A run that came by reset goes on with what was under way: it is stale, and the ends of children go to the run that was reset.
func TestAResetMakesStaleWhatIsUnderWay(t *testing.T) {
	s := newSite(t, func(s *stub, _ controller.Turn) (d controller.Decision) {
		if len(s.Received) == 0 {
			d.Effects = append(d.Effects, act("long", "long"),
				controller.Start{Meta: meta("start", ""), Type: "child", ID: "child", Input: 8 * time.Second})
		}
		d.Watches = append(d.Watches, watch("w", ""))
		return d
	})
	var run string
	s.stub.outcome = func(stub *stub, o controller.Outcome, _ time.Time) {
		s.note(fmt.Sprintf("%s %d stale %v", o.Key.Kind, o.What, o.Stale))
		if o.Run != "" {
			run = o.Run
		}
		stub.Received = append(stub.Received, o.Key.Of)
	}
	s.env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{&inbox.Interceptor{}, &controllertest.AsReset{}}})
	s.env.RegisterActivity(call.Executions)
	s.env.OnActivity(call.Executions.ThisRun, mock.Anything).Return("default-test-run-id", nil)
	s.env.OnActivity("act", mock.Anything, "long").After(10*time.Second).Return("", nil)
	s.env.OnActivity("act", mock.Anything, "w").After(time.Hour).Return("", nil)
	watches := 0
	s.env.SetOnActivityStartedListener(func(_ *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in string
		if args.HasValues() && args.Get(&in) == nil && in == "w" {
			watches++
		}
	})
	s.env.OnGetVersion(mock.Anything, workflow.DefaultVersion, workflow.Version(1)).Return(func(id string, _, _ workflow.Version) workflow.Version {
		if id == "reset-at-50" {
			return 1
		}
		return workflow.DefaultVersion
	})
	s.at(5*time.Second, func() { s.env.SetCurrentHistoryLength(50) })
	s.signal(5*time.Second, "fact", fact{})
	if err := s.run(time.Minute); err != nil {
		t.Fatal(err)
	}
	s.want("0s start 0 stale false", "10s act 0 stale true")
	if s.stub.Verdict != "reset " || run == "" || watches != 2 { // the watch is begun anew
		t.Errorf("%q, %d watches", s.stub.Verdict, watches)
	}
}

// What was not delivered, and until when that rests, is known to the next run.
func TestWhatIsNotSentYetIsSentByTheNextRun(t *testing.T) {
	deliver := func(s *stub, _ controller.Turn) (d controller.Decision) {
		if s.Verdict == "" {
			for _, text := range s.Received {
				d.Effects = append(d.Effects, act(text, text))
			}
		}
		return d
	}
	var packed []byte
	s := newSite(t, deliver)
	s.stub.every = 3
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return("", errors.New("nobody answers"))
	s.signal(0, "fact", fact{said("", "first")})
	s.signal(9*time.Second, "fact", fact{said("", "second")}) // the third event: the run begins nothing more
	s.env.ExecuteWorkflow("stub", struct{}{}, []byte(nil))
	var next *workflow.ContinueAsNewError
	if err := s.env.GetWorkflowError(); !errors.As(err, &next) {
		t.Fatal(err)
	}
	packed = handedOver(t, next)
	s = newSite(t, deliver)
	s.start = s.start.Add(9 * time.Second)
	s.env.SetStartTime(s.start)
	s.env.SetContinuedExecutionRunID("the run before")
	s.stub.outcome = func(stub *stub, _ controller.Outcome, _ time.Time) {
		stub.Received = slices.DeleteFunc(stub.Received, func(text string) bool {
			return slices.Contains(s.log, "0s "+text) || slices.Contains(s.log, "1s "+text)
		})
	}
	s.env.OnActivity("act", mock.Anything, mock.Anything).Return(func(_ context.Context, in string) (string, error) {
		s.note(in)
		return "", nil
	})
	s.env.RegisterDelayedCallback(func() { s.env.SignalWorkflow("fact", fact{said("", "end")}) }, 5*time.Second)
	s.env.ExecuteWorkflow("stub", struct{}{}, packed)
	var leaves *workflow.ContinueAsNewError
	if err := s.env.GetWorkflowError(); err != nil && !errors.As(err, &leaves) {
		t.Fatal(err)
	}
	s.want("0s second", "1s first")
}

// A reset of a child terminates its run, and the child goes on under its workflow ID: the controller has to ask.
func TestTheTerminationOfAChildIsNotItsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"completed":  {nil, []string{"5s started", "5s followed true", "5s ended <nil>", "5s followed false"}},
		"terminated": {&temporal.TerminatedError{}, []string{"5s started", "5s followed true", "5s terminated", "5s followed false"}},
	} {
		t.Run(name, func(t *testing.T) {
			var s *site
			var run string
			followed := false
			s = newSite(t, func(_ *stub, turn controller.Turn) (d controller.Decision) {
				if run == "" {
					d.Effects = append(d.Effects, controller.Start{Meta: meta("start", ""), Type: "child", ID: "child", Input: time.Second})
				} else if turn.Follows(run) != followed {
					followed = !followed
					s.note(fmt.Sprint("followed ", followed))
				}
				return d
			})
			s.stub.outcome = func(_ *stub, o controller.Outcome, _ time.Time) {
				switch o.What {
				case controller.Done:
					run = o.Run
					s.note("started")
				case controller.Terminated:
					s.note("terminated")
				default:
					s.note(fmt.Sprint("ended ", o.Err))
				}
			}
			s.env.OnWorkflow("child", mock.Anything, mock.Anything).After(5 * time.Second).Return(c.err)
			if err := s.run(time.Minute); err != nil {
				t.Fatal(err)
			}
			s.want(c.want...)
		})
	}
}

func TestAStartOfWhatRunsAlreadyIsNoTrouble(t *testing.T) {
	s := newSite(t, func(*stub, controller.Turn) (d controller.Decision) {
		for _, of := range []string{"a", "b"} {
			d.Effects = append(d.Effects, controller.Start{Meta: meta("start", of), Type: "child", ID: "child", Input: time.Hour})
		}
		d.Effects = append(d.Effects,
			controller.Signal{Meta: meta("tell", ""), To: "nobody", Name: "word", Payload: 1},
			controller.Cancel{Meta: meta("cancel", ""), To: "nobody"})
		return d
	})
	s.stub.outcome = func(_ *stub, o controller.Outcome, _ time.Time) {
		s.note(fmt.Sprint(o.Key.Kind, " ", o.Key.Of, " ", o.Err != nil))
	}
	nobody := &temporal.UnknownExternalWorkflowExecutionError{}
	s.env.SetDetachedChildWait(false)
	s.env.OnSignalExternalWorkflow(mock.Anything, mock.Anything, mock.Anything, mock.Anything, mock.Anything).Return(nobody)
	s.env.OnRequestCancelExternalWorkflow(mock.Anything, mock.Anything, mock.Anything).Return(nobody)
	if err := s.run(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	slices.Sort(s.log)
	s.want("0s cancel  true", "0s start a false", "0s start b true", "0s tell  true", "1s start a true")
	if troubles := s.stub.Troubles(); len(troubles) > 0 || len(s.stub.Notes) > 0 {
		t.Errorf("%+v, %+v", troubles, s.stub.Notes)
	}
}
