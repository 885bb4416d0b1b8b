package delivery_test

import (
	"log/slog"
	"path/filepath"
	"testing"

	"go.temporal.io/api/enums/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/audit/audittest"
	"drydock.dev/drydock/audit/file"
	"drydock.dev/drydock/rules/notices"
)

// The record says what became of what a channel was to be sent, as its own workflow knows it.
func TestARecordSaysWhatWasDelivered(t *testing.T) {
	ref, done := reference("n1"), enums.WORKFLOW_EXECUTION_STATUS_COMPLETED
	own := api.NotificationID("", "oncall", "n1", "ops", run)
	input := api.NotificationInput{Channel: "oncall", Maintenance: &ref}
	e := maintained("n1", false, notices.MaintenanceStarted, notices.MaintenanceEnded, notices.MaintenanceComplete)
	s := e.says.(api.Status)
	says := api.NotificationStatus{Outcomes: []api.DeliveryOutcome{
		{Event: s.States[0].ID, Outcome: "delivered"}, {Event: s.States[1].ID, Outcome: "not delivered: nobody answers"},
	}}
	for name, c := range map[string]struct {
		workflows map[string]execution
		want      [3]string
	}{
		"as it knows": {map[string]execution{own: {api.NotificationType, taskQueue, done, input, says}},
			[3]string{"delivered", "not delivered: nobody answers", "not delivered yet"}},
		"under another ID, since something else has its own": {map[string]execution{
			own: {"Squat", taskQueue, done, input, says}, own + "/2": {api.NotificationType, taskQueue, done, input, says}},
			[3]string{"delivered", "not delivered: nobody answers", "not delivered yet"}},
		"what tells of another one is not believed": {map[string]execution{own: {api.NotificationType, taskQueue, done, reference("n2"), says}},
			[3]string{"handed over", "handed over", "handed over"}},
		"nobody is left to ask": {map[string]execution{}, [3]string{"handed over", "handed over", "handed over"}},
	} {
		s.Channels = nil
		for _, state := range s.States {
			s.Channels = append(s.Channels, api.ChannelEvent{At: state.At, Channel: "oncall", Event: state.ID, State: state.State, Outcome: api.HandedOver})
		}
		s.Channels = append(s.Channels, api.ChannelEvent{Channel: "oncall", Event: "x", Outcome: "not handed over: no"})
		e.says = s
		c.workflows[ref.WorkflowID] = e
		path := filepath.Join(t.TempDir(), "audit.jsonl")
		if err := keep(t, activities(t, c.workflows, audittest.Sinks("file", &file.Config{Path: path}, slog.Default())), ref); err != nil {
			t.Fatal(err)
		}
		records, err := file.Read(path)
		if err != nil || len(records) != 1 || len(records[0].Notifications) != 4 {
			t.Fatalf("%s: %+v, %v", name, records, err)
		}
		for i, want := range append(c.want[:], "not handed over: no") {
			if got := records[0].Notifications[i].Outcome; got != want {
				t.Errorf("%s: event %d is recorded as %q, want %q", name, i, got, want)
			}
		}
	}
}
