package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/audit/file"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
)

// startKind starts a workflow of Drydock's, or of somebody else's, by hand.
func startKind(s *site.Site, kind, id, queue string, input any) client.WorkflowRun {
	s.Helper()
	run, err := s.Temporal.ExecuteWorkflow(s.Ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue, WorkflowExecutionErrorWhenAlreadyStarted: true}, kind, input)
	if err != nil {
		s.Fatal(err)
	}
	return run
}

// refusedAs waits for a workflow to fail with an error of a type.
func refusedAs(s *site.Site, run client.WorkflowRun, kind string) {
	s.Helper()
	_, err := s.End(run)
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != kind {
		s.Errorf("%s ended with %v, want %s", run.GetID(), err, kind)
	}
}

// TestSlowRecordsAndMessagesAreNotForged is what somebody tries who may start and signal every workflow of the namespace.
func TestSlowRecordsAndMessagesAreNotForged(t *testing.T) {
	s := site.Prepare(t, "")
	signingKey := "whsec_c2lnbmVk"
	r := s.Receivers(signingKey, "unused")
	path, key := filepath.Join(s.Options.Dir, "audit.jsonl"), s.File("audit-key", "a key of some length")
	s.Options.Config += fmt.Sprintf(`
scheduler: {maxParallel: 3}
audit: {file: {path: %[2]s}, key: {file: %[3]q}}
channels:
  events: {default: true, webhook: {url: "%[1]s/events", secret: %[4]s}}
`, r.HTTP.URL, path, key, r.Secret("signing", signingKey))
	s.StartWorker()
	queue := api.TaskQueue(s.Cluster, "drydock")

	first := s.Begin("worker-01")
	s.Until(first, api.Ready)
	ref := api.Reference{WorkflowID: first.GetID(), RunID: first.GetRunID()}
	notificationID := api.NotificationID(s.Cluster, "events", "worker-01", "ops", first.GetRunID())
	recordID := api.AuditRecordID(s.Cluster, "worker-01", "ops", first.GetRunID())

	// What is made up is told to nobody, and recorded nowhere.
	made := notices.Event{ID: "made-up", Sequence: 9, State: notices.MaintenanceComplete, Node: "worker-01", WorkflowID: first.GetID(), RunID: first.GetRunID()}
	if err := s.Temporal.SignalWorkflow(s.Ctx, notificationID, "", api.SignalEvent, made); err != nil {
		t.Fatal(err)
	}
	if err := s.Temporal.SignalWorkflow(s.Ctx, notificationID, "", api.SignalEvent, "nonsense"); err != nil {
		t.Fatal(err)
	}
	forged := record.Record{Schema: record.Schema, WorkflowID: first.GetID(), RunID: first.GetRunID(), Node: "worker-01", Requestor: "ops", Phase: "Completed"}
	refusedAs(s, startKind(s, api.AuditRecordType, "forged-record", queue, forged), api.ErrorInvalidSpec)
	refusedAs(s, startKind(s, api.AuditRecordType, "no-record", queue, api.Reference{WorkflowID: s.SchedulerID(), RunID: first.GetRunID()}), api.ErrorNotAMaintenance)
	refusedAs(s, startKind(s, api.NotificationType, "forged-message", queue,
		json.RawMessage(`{"plan":{"channel":"events"},"waiting":[{"id":"made-up","state":"MaintenanceComplete","node":"worker-01"}]}`)), api.ErrorInvalidSpec)
	refusedAs(s, startKind(s, api.NotificationType, "no-channel", queue, api.NotificationInput{Channel: "made-up", Maintenance: &ref}), api.ErrorUndeliverable)

	// An ID that is taken suppresses nothing.
	squatter := startKind(s, "Squat", recordID, "nobodys", nil)
	t.Cleanup(func() {
		if err := s.Temporal.TerminateWorkflow(t.Context(), squatter.GetID(), squatter.GetRunID(), "the test is over"); err != nil {
			t.Log(err)
		}
	})
	s.Done(first)
	r.UntilTold("/events", first, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.ObjectsDrained,
		notices.MaintenanceEnded, notices.MaintenanceComplete)
	if kept := s.RecordOf(path, first.GetRunID()); kept.Phase != "Completed" || kept.Node != "worker-01" || kept.NodeUID == "" {
		t.Errorf("kept %+v", kept)
	}
	if occupied := strings.Join(s.MustStatus(first).Occupied, "\n"); !strings.Contains(occupied, recordID+": it is taken by another workflow") {
		t.Errorf("occupied %q", occupied)
	}

	// What somebody terminates has a record all the same.
	second := s.Begin("worker-02")
	s.Until(second, api.Ready)
	if err := s.Temporal.TerminateWorkflow(s.Ctx, second.GetID(), second.GetRunID(), "no time"); err != nil {
		t.Fatal(err)
	}
	if kept := s.RecordOf(path, second.GetRunID()); kept.Phase != "Failed" || !strings.Contains(kept.Failure, "no time (it was Ready)") || kept.EndedAt.IsZero() ||
		kept.TerminatedBy == nil || kept.TerminatedBy.Identity == "" {
		t.Errorf("kept %+v", kept)
	}
	s.Exits(s.Drydock("audit", "verify", path, "--key-file", key, "--expect-last", "2"), 0, "intact")
	s.Exits(s.Drydock("audit", "verify", path, "--key-file", key, "--expect-last", "3"), 1, "number 3 is expected")
	if records, err := file.Read(path); err != nil || len(records) != 2 {
		t.Errorf("%d records, %v", len(records), err)
	}
}
