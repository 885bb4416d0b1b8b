package notification_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/workflows/notification"
	"drydock.dev/drydock/workflows/workflowtest"
)

// run is the first run of the maintenances whose events are sent.
const run = "0198b2a4-7c1d-7e55-9d1b-6f1f3c6d2a10"

var (
	noon      = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	reference = api.Reference{WorkflowID: workflowtest.ID, RunID: run}
	plain     = notices.Channel{Name: "oncall", RetryFor: notices.DefaultRetryFor}
)

// happened is the status of a maintenance that came into these states, a minute after one another.
func happened(states ...notices.State) *api.Status {
	s := &api.Status{WorkflowID: workflowtest.ID, RunID: run, Spec: spec.Maintenance{Node: "n1", Requestor: "ops"}, Tells: []string{"oncall"}}
	for _, state := range states {
		add(s, state)
	}
	return s
}

func add(s *api.Status, state notices.State) {
	n := len(s.States) + 1
	entered := api.LifecycleState{Sequence: n, State: state, At: noon.Add(time.Duration(n) * time.Minute)}
	entered.ID = api.EventID(s.WorkflowID, s.RunID, entered.Moment())
	s.States = append(s.States, entered)
}

// prepare is the world around a Notification of a channel.
func prepare(t *testing.T, plan notices.Channel) *workflowtest.Site {
	s := workflowtest.NewAs(t, "notification/oncall/n1/ops/"+run, api.DefaultTaskQueue)
	s.Env.SetStartTime(noon)
	s.Prepared.Channels = []notices.Channel{plan}
	return s
}

func execute(t *testing.T, s *workflowtest.Site, in api.NotificationInput) api.NotificationStatus {
	t.Helper()
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	s.Env.ExecuteWorkflow(notification.Notification, workflowtest.Raw(string(text)))
	if !s.Env.IsWorkflowCompleted() {
		t.Fatal("it did not end")
	}
	return ask(t, s)
}

func ask(t *testing.T, s *workflowtest.Site) (status api.NotificationStatus) {
	t.Helper()
	value, err := s.Env.QueryWorkflow(api.QueryStatus)
	if err == nil {
		err = value.Get(&status)
	}
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// sentStates are the states that the channel was sent, message by message.
func sentStates(s *workflowtest.Site) string {
	var texts []string
	for i := range s.Count("Deliver") {
		for _, e := range workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", i).Events {
			texts = append(texts, string(e.State))
		}
	}
	return strings.Join(texts, " ")
}

func expectNoError(t *testing.T, s *workflowtest.Site) {
	t.Helper()
	if err := s.Env.GetWorkflowError(); err != nil {
		t.Errorf("error %v", err)
	}
}

var follows = api.NotificationInput{Channel: "oncall", Maintenance: &reference}

func TestAForgedSignalIsNotSent(t *testing.T) {
	s := prepare(t, plain)
	s.Account = happened(notices.MaintenanceStarted)
	forged := []string{
		`{"id":"e-9","sequence":2,"state":"MaintenanceComplete","at":"2026-07-01T12:05:00Z","node":"n1","message":"all is well"}`,
		`"complete"`, `{"sequence":0,"at":"2026-07-01T12:05:00Z"}`, `{"sequence":3}`, `{"sequence":"3","at":"2026-07-01T12:05:00Z"}`, `{`, `null`,
	}
	for i, text := range forged {
		s.At(time.Duration(i+1)*time.Hour, func() { s.Env.SignalWorkflow(api.SignalEvent, workflowtest.Raw(text)) })
	}
	// One that has the right form costs a look.
	s.SignalAt(10*time.Hour, api.SignalEvent, api.Moment{Sequence: 7, At: noon.Add(time.Hour)})
	s.At(11*time.Hour, func() {
		if status := ask(t, s); status.Refused != len(forged)+1 || !strings.Contains(status.LastRefused, "no event 7") || status.Delivered != 1 {
			t.Errorf("status %+v", status)
		}
		if n := s.Count("ReadEvents"); n != 2 {
			t.Errorf("it was read %d times", n)
		}
		s.Ended = true
	})
	status := execute(t, s, follows)
	expectNoError(t, s)
	if got := sentStates(s); got != "MaintenanceStarted" || status.Refused != len(forged)+1 {
		t.Errorf("sent %s: %+v", got, status)
	}
}

func TestInputsThatAreRefused(t *testing.T) {
	for input, want := range map[string]string{
		`{"channel":"oncall"}`: "maintenance: is missing",
		`{"collects":true}`:    "channel: is missing",
		`{"channel":"oncall","collects":true,"maintenance":{"workflowId":"w","runId":"r"}}`:                                            "maintenance: has no meaning",
		`{"channel":"oncall","maintenance":{"workflowId":"w","runId":"r"},"waiting":[{"id":"e-1"}]}`:                                   "waiting: unknown field",
		`{"channel":"oncall","maintenance":{"workflowId":"w","runId":"r"},"plan":{"channel":"oncall"}}`:                                "plan: unknown field",
		`{"channel":"oncall","maintenance":{"workflowId":"w","runId":"r"},"carried":{"channel":"x","upcoming":[{"state":"Started"}]}}`: "carried: is taken from an earlier run",
		`"oncall"`: "want a JSON object",
	} {
		s := prepare(t, plain)
		s.Env.ExecuteWorkflow(notification.Notification, workflowtest.Raw(input))
		var refused *temporal.ApplicationError
		err := s.Env.GetWorkflowError()
		if !errors.As(err, &refused) || refused.Type() != api.ErrorInvalidSpec || !strings.Contains(refused.Message(), want) {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
		s.ExpectLog()
	}
}

func TestCarriedStateIsTakenFromAnEarlierRun(t *testing.T) {
	s := prepare(t, plain)
	s.Env.SetContinuedExecutionRunID(run)
	s.Account, s.Ended = happened(notices.MaintenanceUnknown, notices.MaintenanceStarted, notices.MaintenanceComplete), true
	in := follows
	plan := plain
	in.Carried = &api.NotificationCarried{
		NotificationStatus: api.NotificationStatus{Channel: "oncall", Delivered: 2}, Plan: &plan,
		Read: s.Account.States[1].Moment(), News: s.Account.States[2].Moment(),
	}
	status := execute(t, s, in)
	expectNoError(t, s)
	if got := sentStates(s); got != "MaintenanceComplete" || status.Delivered != 3 {
		t.Errorf("sent %s: %+v", got, status)
	}
}

func TestNothingIsSentOfWhatIsNoMaintenance(t *testing.T) {
	s := prepare(t, plain)
	s.Answer("ReadEvents", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorNotAMaintenance, "workflow w is a Preflight")})
	execute(t, s, follows)
	var refused *temporal.ApplicationError
	if err := s.Env.GetWorkflowError(); !errors.As(err, &refused) || refused.Type() != api.ErrorNotAMaintenance || s.Count("Deliver") != 0 {
		t.Errorf("error %v, sent %s", err, sentStates(s))
	}
}

func TestLastEventsAreSentWhereTheMaintenanceHasClosed(t *testing.T) {
	hourly := plain
	hourly.Schedule = notices.Schedule{Periodic: &notices.Periodic{Interval: period.Duration(time.Hour)}}
	t.Run("while it was asked after", func(t *testing.T) {
		s := prepare(t, hourly)
		s.Account = happened(notices.ObjectsDrained)
		// It ends without a word: the signal of its end did not arrive.
		s.At(90*time.Minute, func() {
			add(s.Account, notices.MaintenanceEnded)
			add(s.Account, notices.MaintenanceComplete)
			for i := range s.Account.States[1:] {
				s.Account.States[i+1].At = noon.Add(90 * time.Minute)
			}
			s.Ended = true
		})
		execute(t, s, follows)
		expectNoError(t, s)
		if got := sentStates(s); got != "ObjectsDrained ObjectsDrained MaintenanceEnded MaintenanceComplete" {
			t.Errorf("sent %s", got)
		}
	})
	t.Run("after a day of silence", func(t *testing.T) {
		s := prepare(t, plain)
		s.Account = happened(notices.ObjectsDrained)
		s.At(2*time.Hour, func() {
			add(s.Account, notices.MaintenanceCancelled)
			s.Ended = true
		})
		execute(t, s, follows)
		expectNoError(t, s)
		if got := sentStates(s); got != "ObjectsDrained MaintenanceCancelled" {
			t.Errorf("sent %s", got)
		}
	})
	t.Run("an end that is sent late", func(t *testing.T) {
		late := plain
		late.Schedule = notices.Schedule{OneShot: &notices.OneShot{Delay: period.Duration(3 * time.Hour)}}
		s := prepare(t, late)
		s.Account, s.Ended = happened(notices.ObjectsDrained, notices.MaintenanceComplete), true
		execute(t, s, follows)
		expectNoError(t, s)
		if got := sentStates(s); got != "MaintenanceComplete" {
			t.Errorf("sent %s", got)
		}
	})
	t.Run("it was terminated", func(t *testing.T) {
		s := prepare(t, hourly)
		s.Account = happened(notices.ObjectsDrained)
		s.At(90*time.Minute, func() { s.Ended = true })
		execute(t, s, follows)
		expectNoError(t, s)
		if got := sentStates(s); got != "ObjectsDrained ObjectsDrained" {
			t.Errorf("sent %s", got)
		}
	})
}

func TestABurstCostsOneLook(t *testing.T) {
	s := prepare(t, plain)
	s.Account = happened(notices.MaintenanceUnknown)
	s.At(time.Hour, func() {
		for _, state := range []notices.State{notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.ObjectsDrained} {
			add(s.Account, state)
			last := s.Account.States[len(s.Account.States)-1]
			s.Env.SignalWorkflow(api.SignalEvent, last.Moment())
			s.Env.SignalWorkflow(api.SignalEvent, last.Moment())
		}
		add(s.Account, notices.MaintenanceComplete)
		s.Ended = true
	})
	status := execute(t, s, follows)
	expectNoError(t, s)
	if n := s.Count("ReadEvents"); n != 2 || status.Refused != 0 || status.Delivered != 5 {
		t.Errorf("it was read %d times: %+v", n, status)
	}
}

func TestWhatTheMaintenanceDoesNotKeepIsCounted(t *testing.T) {
	s := prepare(t, plain)
	s.Account, s.Ended = happened(notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.MaintenanceComplete), true
	s.Account.States = append(s.Account.States[:1], s.Account.States[3])
	execute(t, s, follows)
	var failure *temporal.ApplicationError
	if err := s.Env.GetWorkflowError(); !errors.As(err, &failure) || !strings.Contains(failure.Message(), "2 messages to oncall were not delivered: 2 events are not kept") {
		t.Errorf("error %v", err)
	}
	if got := sentStates(s); got != "MaintenanceUnknown MaintenanceComplete" {
		t.Errorf("sent %s", got)
	}
}

var collects = api.NotificationInput{Channel: "oncall", Collects: true}

// event is the first of the maintenance of a node.
func event(node string) api.EventReference {
	return api.EventReference{
		Reference: api.Reference{WorkflowID: api.MaintenanceID("", node, "ops"), RunID: run}, Moment: api.Moment{Sequence: 1, At: noon},
	}
}

func digest(every time.Duration) notices.Channel {
	plan := plain
	plan.Digest = period.Duration(every)
	return plan
}

func TestTheCollectorSendsManyNodesInOneMessage(t *testing.T) {
	s := prepare(t, digest(10*time.Minute))
	for i, at := range []time.Duration{time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 3 * time.Minute} {
		s.SignalAt(at, api.SignalCollect, event([]string{"n0", "n1", "n2", "n3", "n3"}[i]))
	}
	execute(t, s, collects)
	expectNoError(t, s)
	if s.Count("Deliver") != 1 || len(workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", 0).Events) != 4 {
		t.Errorf("sent %d times: %s", s.Count("Deliver"), sentStates(s))
	}
}

func TestTheCollectorRefusesWhatItCannotFind(t *testing.T) {
	s := prepare(t, digest(10*time.Minute))
	made := event("n9")
	s.Unknown = map[string]bool{made.ID(): true}
	s.SignalAt(time.Second, api.SignalCollect, event("n1"))
	s.SignalAt(2*time.Second, api.SignalCollect, made)
	malformed := []string{
		`{"id":"e-1","state":"MaintenanceStarted","node":"n1"}`,
		`{"workflowId":"node-maintenance/n1/ops","runId":"r","sequence":1,"at":"2026-07-01T12:00:00Z"}`,
		`{"workflowId":"drydock-scheduler","runId":"` + run + `","sequence":1,"at":"2026-07-01T12:00:00Z"}`,
		`{"workflowId":"blue/node-maintenance/n1/ops","runId":"` + run + `","sequence":1,"at":"2026-07-01T12:00:00Z"}`,
		`{"workflowId":"/node-maintenance/n1/ops","runId":"` + run + `","sequence":1,"at":"2026-07-01T12:00:00Z"}`,
		`{"workflowId":"node-maintenance/n1/ops","runId":"` + run + `","sequence":0,"at":"2026-07-01T12:00:00Z"}`,
		`{"workflowId":"node-maintenance/n1/ops","runId":"` + run + `","sequence":1}`,
	}
	for i, text := range malformed {
		s.At(time.Duration(3+i)*time.Second, func() { s.Env.SignalWorkflow(api.SignalCollect, workflowtest.Raw(text)) })
	}
	status := execute(t, s, collects)
	expectNoError(t, s)
	if events := workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", 0).Events; len(events) != 1 || events[0].Node != "n1" || s.Count("Deliver") != 1 {
		t.Errorf("sent %+v", events)
	}
	if status.Refused != len(malformed)+1 || status.Delivered != 1 {
		t.Errorf("status %+v", status)
	}
}

func TestACollectorWhoseMessagesAreNotDelivered(t *testing.T) {
	s := prepare(t, digest(time.Second))
	s.Answer("Deliver", workflowtest.Reply{Err: workflowtest.Failing(api.ErrorUndeliverable, "410 gone")})
	s.SignalAt(time.Second, api.SignalCollect, event("n0"))
	s.SignalAt(10*time.Second, api.SignalCollect, event("n1"))
	execute(t, s, collects)
	var failure *temporal.ApplicationError
	if err := s.Env.GetWorkflowError(); !errors.As(err, &failure) || failure.Type() != api.ErrorNotDelivered || !strings.Contains(failure.Message(), "410 gone") {
		t.Errorf("error %v", err)
	}
	if s.Count("Deliver") != 2 {
		t.Errorf("sent %s", sentStates(s))
	}
}

func TestTooManyEventsForADeadReceiver(t *testing.T) {
	s := prepare(t, digest(time.Second))
	s.Answer("Deliver", workflowtest.Reply{After: time.Hour})
	s.SignalAt(time.Second, api.SignalCollect, event("first"))
	for batch := range 3 {
		s.At(time.Duration(1+batch)*time.Minute, func() {
			for i := range 400 {
				s.Env.SignalWorkflow(api.SignalCollect, event(fmt.Sprintf("n-%d-%d", batch, i)))
			}
		})
	}
	execute(t, s, collects)
	var failure *temporal.ApplicationError
	if err := s.Env.GetWorkflowError(); !errors.As(err, &failure) || !strings.Contains(failure.Message(), "200 messages to oncall were not delivered: more than 1000 events wait") {
		t.Errorf("error %v", err)
	}
	for i := range s.Count("Deliver") {
		if n := len(workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", i).Events); n > 100 {
			t.Errorf("message %d has %d events", i, n)
		}
	}
}

// All events of a day behind a dead receiver are given up a day after they happened, and not each a day after the one before.
func TestRetryForIsCountedFromWhatHappened(t *testing.T) {
	for name, c := range map[string]struct {
		began    time.Time
		attempts int
		until    func(e notices.Event, began time.Time) time.Duration
	}{
		// The test environment gives up by itself after ten.
		"in time":                  {noon, 70, func(e notices.Event, _ time.Time) time.Duration { return e.At.Add(24 * time.Hour).Sub(noon) }},
		"behind others for longer": {noon.Add(30 * time.Hour), 21, func(notices.Event, time.Time) time.Duration { return 30*time.Hour + 5*time.Minute }},
	} {
		t.Run(name, func(t *testing.T) {
			s := prepare(t, plain)
			s.Env.SetStartTime(c.began)
			s.Account, s.Ended = happened(notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.ObjectsDrained,
				notices.Validating, notices.MaintenanceEnded, notices.MaintenanceComplete), true
			s.Usual["Deliver"] = workflowtest.Reply{Err: temporal.NewApplicationError("the receiver is dead", "NotDelivered")}
			status := execute(t, s, api.NotificationInput{Channel: "oncall", Maintenance: &reference})
			if status.GivenUp != 7 || status.Delivered != 0 || s.Count("Deliver") != c.attempts {
				t.Errorf("%d tries: %+v", s.Count("Deliver"), status)
			}
			for i := range s.Count("Deliver") {
				in := workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", i)
				if got, want := in.Until.Sub(noon), c.until(in.Events[0], c.began); got < want || got > want+time.Minute {
					t.Errorf("%s is tried for %s after noon, want %s", in.Key, got, want)
				}
			}
			if len(status.Outcomes) != 7 || status.Outcomes[6].Outcome != "not delivered: the receiver is dead" {
				t.Errorf("outcomes %+v", status.Outcomes)
			}
		})
	}
}
