package notification_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"drydock.dev/drydock/activities/delivery"
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/period"
	"drydock.dev/drydock/workflows/handover/handovertest"
	"drydock.dev/drydock/workflows/notification"
	olderapi "drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	older "drydock.dev/drydock/workflows/testdata/code/v0.1.0/workflows/notification"
	"drydock.dev/drydock/workflows/workflowtest"
)

// TestTheFieldsOf010AreThoseThatItWrites holds v0.1.0.txt to the types of the release, and today's to it.
func TestTheFieldsOf010AreThoseThatItWrites(t *testing.T) {
	const file = "v0.1.0.txt"
	var want strings.Builder
	known := map[string]bool{}
	for _, f := range handovertest.FieldsOf(reflect.TypeFor[olderapi.NotificationInput]()) {
		fmt.Fprintln(&want, f.Path)
		known[f.Path] = true
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(file, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != want.String() {
		t.Errorf("%s is not what 0.1.0 writes (UPDATE_GOLDEN=1 writes it): %v", file, err)
	}
	for _, f := range handovertest.FieldsOf(reflect.TypeFor[api.NotificationInput]()) {
		if !known[f.Path] && !f.Optional && (f.Above() == "" || known[f.Above()]) {
			t.Errorf("%s is written where it says nothing: give it omitempty or omitzero", f.Path)
		}
	}
}

// hopped runs a notification with the code of one release, and returns what it hands to its next run; nil if it has ended.
func hopped(t *testing.T, s *workflowtest.Site, run int, is010 bool, input converter.RawValue) *converter.RawValue {
	t.Helper()
	s.Intercept(&inbox.Interceptor{})
	if run > 0 {
		s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
	}
	if is010 {
		s.Env.ExecuteWorkflow(older.Notification, input)
	} else {
		s.Env.ExecuteWorkflow(notification.Notification, input)
	}
	var again *workflow.ContinueAsNewError
	if errors.As(s.Env.GetWorkflowError(), &again) {
		next := converter.NewRawValue(again.Input.GetPayloads()[0])
		return &next
	}
	if err := s.Env.GetWorkflowError(); err != nil {
		t.Fatalf("run %d ended: %v", run, err)
	}
	return nil
}

// thereAndBack has a test run with this release first, and with 0.1.0 first.
func thereAndBack(t *testing.T, test func(t *testing.T, is010 func(run int) bool)) {
	for first, name := range []string{"begun by this release", "begun by 0.1.0"} {
		t.Run(name, func(t *testing.T) { test(t, func(run int) bool { return (run+first)%2 == 1 }) })
	}
}

// TestANotificationGoesThereAndBack has its runs done by 0.1.0 and by this release in turns: each event is sent once.
func TestANotificationGoesThereAndBack(t *testing.T) {
	thereAndBack(t, func(t *testing.T, is010 func(int) bool) {
		next := new(workflowtest.Raw(asJSON(t, follows)))
		states := []notices.State{notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.ObjectsDrained, notices.MaintenanceComplete}
		account := happened()
		var all []string
		var status api.NotificationStatus
		for run := range states {
			if next == nil {
				t.Fatalf("it ended before run %d", run)
			}
			s := prepare(t, plain)
			s.Env.SetStartTime(noon.Add(time.Duration(run) * time.Hour))
			add(account, states[run])
			s.Account, s.Ended = account, run == len(states)-1
			latest := account.States[run]
			s.SignalAt(time.Minute, api.SignalEvent, latest.Moment())
			s.ContinueAt(10 * time.Minute)
			next = hopped(t, s, run, is010(run), *next)
			all, status = append(all, strings.Fields(sentStates(s))...), ask(t, s)
		}
		if next != nil || status.Delivered != len(states) || status.GivenUp != 0 {
			t.Errorf("it goes on: %v, status %+v", next != nil, status)
		}
		if got, want := fmt.Sprint(all), fmt.Sprint(states); got != want {
			t.Errorf("sent %s, want %s", got, want)
		}
	})
}

// TestACollectorGoesThereAndBack hands over what waits for the next digest, what has come already, and the thread: each event is sent
// once, with those of its digest, in one thread, and for as long as it was queued.
func TestACollectorGoesThereAndBack(t *testing.T) {
	plan := digest(10 * time.Minute)
	plan.Thread, plan.ThreadPeriod = notices.ThreadPeriod, period.Duration(24*time.Hour)
	const runs = 4
	thereAndBack(t, func(t *testing.T, is010 func(int) bool) {
		next := new(workflowtest.Raw(asJSON(t, collects)))
		begun := func(run int) time.Time { return noon.Add(time.Duration(run) * 15 * time.Minute) }
		queued := begun(0).Add(time.Second)
		var status api.NotificationStatus
		for run := range runs {
			if next == nil {
				t.Fatalf("it ended before run %d", run)
			}
			s := prepare(t, plan)
			s.Env.SetStartTime(begun(run))
			// It takes five minutes, in which the first event of the next digest comes, and the last one once more.
			s.Answer("Deliver", workflowtest.Reply{After: 5 * time.Minute, Value: notify.Receipt{Thread: "thread-1"}})
			own := fmt.Sprintf("n%d", run)
			if run == 0 {
				s.SignalAt(time.Second, api.SignalCollect, event(own))
			}
			s.SignalAt(time.Minute, api.SignalCollect, event(own+"-too"))
			if run < runs-1 {
				s.SignalAt(12*time.Minute, api.SignalCollect, event(fmt.Sprintf("n%d", run+1)))
				s.SignalAt(12*time.Minute, api.SignalCollect, event(own))
				s.ContinueAt(13 * time.Minute)
			}
			next, status = hopped(t, s, run, is010(run), *next), ask(t, s)

			if n := s.Count("Deliver"); n != 1 {
				t.Fatalf("run %d sent %d messages", run, n)
			}
			sent := workflowtest.InputOf[delivery.DeliverInput](s, "Deliver", 0)
			var nodes []string
			for _, e := range sent.Events {
				nodes = append(nodes, e.Node)
			}
			if got, want := strings.Join(nodes, " "), own+" "+own+"-too"; got != want {
				t.Errorf("run %d sent %s, want %s", run, got, want)
			}
			if want := queued.Add(plan.Digest.Std() + plan.RetryFor.Std()); !sent.Until.Equal(want) {
				t.Errorf("run %d tries until %s, want %s", run, sent.Until, want)
			}
			if (sent.Thread == "thread-1") != (run > 0) {
				t.Errorf("run %d answers to thread %q", run, sent.Thread)
			}
			queued = begun(run).Add(12 * time.Minute)
		}
		if next != nil || status.Delivered != runs || status.GivenUp != 0 || status.Waiting != 0 {
			t.Errorf("it goes on: %v, status %+v", next != nil, status)
		}
	})
}

// TestANotificationsStateIsKeptOrStandsStill: what a newer release handed over is handed on, and no state ends it.
func TestANotificationsStateIsKeptOrStandsStill(t *testing.T) {
	for name, text := range map[string]string{
		"of a newer form": `{"needs":2,"channel":"oncall"}`,
		"cut off":         `{"channel":"onc`,
		"of other types":  `{"channel":"oncall","carried":7}`,
	} {
		s := prepare(t, plain)
		s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
		s.Env.ExecuteWorkflow(notification.Notification, workflowtest.Raw(text))
		var panicked *temporal.PanicError
		if err := s.Env.GetWorkflowError(); !errors.As(err, &panicked) {
			t.Errorf("%s: it ended with %v, want a panic", name, err)
		}
	}
	in := follows
	in.Carried = &api.NotificationCarried{Plan: &plain}
	text := strings.Replace(asJSON(t, in), `"carried":{`, `"later":1,"carried":{"later":{"a":[1]},`, 1)
	s := prepare(t, plain)
	s.Account = happened()
	s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
	s.ContinueAt(time.Minute)
	s.Env.ExecuteWorkflow(notification.Notification, workflowtest.Raw(text))
	var again *workflow.ContinueAsNewError
	if !errors.As(s.Env.GetWorkflowError(), &again) {
		t.Fatalf("it ended: %v", s.Env.GetWorkflowError())
	}
	var got map[string]any
	if err := json.Unmarshal(again.Input.GetPayloads()[0].GetData(), &got); err != nil {
		t.Fatal(err)
	}
	carried, _ := got["carried"].(map[string]any)
	if got["later"] != 1.0 || !reflect.DeepEqual(carried["later"], map[string]any{"a": []any{1.0}}) {
		t.Errorf("handed on is %v", got)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
