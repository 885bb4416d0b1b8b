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

	"drydock/api"
	"drydock/rules/notices"
	"drydock/workflows/handover/handovertest"
	"drydock/workflows/notification"
	olderapi "drydock/workflows/testdata/code/v0.1.0/api"
	"drydock/workflows/testdata/code/v0.1.0/workflows/inbox"
	older "drydock/workflows/testdata/code/v0.1.0/workflows/notification"
	"drydock/workflows/workflowtest"
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

// TestANotificationGoesThereAndBack has its runs done by 0.1.0 and by this release in turns: each event is told once.
func TestANotificationGoesThereAndBack(t *testing.T) {
	for first, name := range []string{"begun by this release", "begun by 0.1.0"} {
		t.Run(name, func(t *testing.T) {
			args := []any{workflowtest.Raw(asJSON(t, follows))}
			states := []notices.State{notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.ObjectsDrained, notices.MaintenanceComplete}
			account := happened()
			var all []string
			for run := range states {
				s := prepare(t, plain)
				s.Intercept(&inbox.Interceptor{})
				s.Env.SetStartTime(noon.Add(time.Duration(run) * time.Hour))
				if run > 0 {
					s.Env.SetContinuedExecutionRunID(workflowtest.RunID)
				}
				add(account, states[run])
				s.Account, s.Ended = account, run == len(states)-1
				latest := account.States[run]
				s.SignalAt(time.Minute, api.SignalEvent, latest.Moment())
				s.ContinueAt(10 * time.Minute)
				if (run+first)%2 == 1 {
					s.Env.ExecuteWorkflow(older.Notification, args...)
				} else {
					s.Env.ExecuteWorkflow(notification.Notification, args...)
				}
				all = append(all, strings.Fields(told(s))...)
				var again *workflow.ContinueAsNewError
				if !errors.As(s.Env.GetWorkflowError(), &again) {
					if err := s.Env.GetWorkflowError(); err != nil || run != len(states)-1 {
						t.Fatalf("run %d ended: %v", run, err)
					}
					status := ask(t, s)
					if status.Delivered != len(states) || status.GivenUp != 0 {
						t.Errorf("status %+v", status)
					}
					continue
				}
				args = []any{converter.NewRawValue(again.Input.GetPayloads()[0])}
			}
			if got, want := fmt.Sprint(all), fmt.Sprint(states); got != want {
				t.Errorf("told %s, want %s", got, want)
			}
		})
	}
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
