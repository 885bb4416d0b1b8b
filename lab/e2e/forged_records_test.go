package e2e

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
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
)

// startKind starts a workflow of Drydock's, or of somebody else's, by hand.
func (s *site) startKind(kind, id, queue string, input any) client.WorkflowRun {
	s.Helper()
	run, err := s.temporal.ExecuteWorkflow(s.ctx, client.StartWorkflowOptions{ID: id, TaskQueue: queue, WorkflowExecutionErrorWhenAlreadyStarted: true}, kind, input)
	if err != nil {
		s.Fatal(err)
	}
	return run
}

// refusedAs waits for a workflow to fail with an error of a type.
func (s *site) refusedAs(run client.WorkflowRun, kind string) {
	s.Helper()
	_, err := s.end(run)
	var failed *temporal.ApplicationError
	if !errors.As(err, &failed) || failed.Type() != kind {
		s.Errorf("%s ended with %v, want %s", run.GetID(), err, kind)
	}
}

// recordOf waits for the audit record of a run.
func (s *site) recordOf(path, run string) (kept record.Record) {
	s.Helper()
	s.eventually("the record of run "+run+" is kept", func() error {
		records, err := file.Read(path)
		if err != nil {
			return err
		}
		for _, kept = range records {
			if kept.RunID == run {
				return nil
			}
		}
		return fmt.Errorf("%d others are", len(records))
	})
	return kept
}

// TestRecordsAndMessagesAreNotForged is what somebody tries who may start and signal every workflow of the namespace.
func TestRecordsAndMessagesAreNotForged(t *testing.T) {
	slow(t)
	s := prepareSite(t, "")
	signingKey := "whsec_c2lnbmVk"
	r := s.receivers(signingKey, "unused")
	path, key := filepath.Join(s.options.Dir, "audit.jsonl"), s.file("audit-key", "a key of some length")
	s.options.Config += fmt.Sprintf(`
scheduler: {maxParallel: 3}
audit: {file: {path: %[2]s}, key: {file: %[3]q}}
channels:
  events: {default: true, webhook: {url: "%[1]s/events", secret: %[4]s}}
`, r.http.URL, path, key, r.secret("signing", signingKey))
	s.startWorker()
	queue := api.TaskQueue(s.cluster, "drydock")

	first := s.begin("worker-01")
	s.until(first, api.Ready)
	ref := api.Reference{WorkflowID: first.GetID(), RunID: first.GetRunID()}
	notificationID := api.NotificationID(s.cluster, "events", "worker-01", "ops", first.GetRunID())
	recordID := api.AuditRecordID(s.cluster, "worker-01", "ops", first.GetRunID())

	// What is made up is told to nobody, and recorded nowhere.
	made := notices.Event{ID: "made-up", Sequence: 9, State: notices.MaintenanceComplete, Node: "worker-01", WorkflowID: first.GetID(), RunID: first.GetRunID()}
	if err := s.temporal.SignalWorkflow(s.ctx, notificationID, "", api.SignalEvent, made); err != nil {
		t.Fatal(err)
	}
	if err := s.temporal.SignalWorkflow(s.ctx, notificationID, "", api.SignalEvent, "nonsense"); err != nil {
		t.Fatal(err)
	}
	forged := record.Record{Schema: record.Schema, WorkflowID: first.GetID(), RunID: first.GetRunID(), Node: "worker-01", Requestor: "ops", Phase: "Completed"}
	s.refusedAs(s.startKind(api.AuditRecordType, "forged-record", queue, forged), api.ErrorInvalidSpec)
	s.refusedAs(s.startKind(api.AuditRecordType, "no-record", queue, api.Reference{WorkflowID: s.schedulerID(), RunID: first.GetRunID()}), api.ErrorNotAMaintenance)
	s.refusedAs(s.startKind(api.NotificationType, "forged-message", queue,
		json.RawMessage(`{"plan":{"channel":"events"},"waiting":[{"id":"made-up","state":"MaintenanceComplete","node":"worker-01"}]}`)), api.ErrorInvalidSpec)
	s.refusedAs(s.startKind(api.NotificationType, "no-channel", queue, api.NotificationInput{Channel: "made-up", Maintenance: &ref}), api.ErrorUndeliverable)

	// An ID that is taken suppresses nothing.
	squatter := s.startKind("Squat", recordID, "nobodys", nil)
	t.Cleanup(func() {
		if err := s.temporal.TerminateWorkflow(t.Context(), squatter.GetID(), squatter.GetRunID(), "the test is over"); err != nil {
			t.Log(err)
		}
	})
	s.done(first)
	r.untilTold("/events", first, notices.MaintenanceUnknown, notices.MaintenanceScheduled, notices.MaintenanceStarted, notices.ObjectsDrained,
		notices.MaintenanceEnded, notices.MaintenanceComplete)
	if kept := s.recordOf(path, first.GetRunID()); kept.Phase != "Completed" || kept.Node != "worker-01" || kept.NodeUID == "" {
		t.Errorf("kept %+v", kept)
	}
	if occupied := strings.Join(s.mustStatus(first).Occupied, "\n"); !strings.Contains(occupied, recordID+": it is taken by another workflow") {
		t.Errorf("occupied %q", occupied)
	}

	// What somebody terminates has a record all the same.
	second := s.begin("worker-02")
	s.until(second, api.Ready)
	if err := s.temporal.TerminateWorkflow(s.ctx, second.GetID(), second.GetRunID(), "no time"); err != nil {
		t.Fatal(err)
	}
	if kept := s.recordOf(path, second.GetRunID()); kept.Phase != "Failed" || !strings.Contains(kept.Failure, "no time (it was Ready)") || kept.EndedAt.IsZero() ||
		kept.TerminatedBy == nil || kept.TerminatedBy.Identity == "" {
		t.Errorf("kept %+v", kept)
	}
	s.exits(s.drydock("audit", "verify", path, "--key-file", key, "--expect-last", "2"), 0, "intact")
	s.exits(s.drydock("audit", "verify", path, "--key-file", key, "--expect-last", "3"), 1, "number 3 is expected")
	if records, err := file.Read(path); err != nil || len(records) != 2 {
		t.Errorf("%d records, %v", len(records), err)
	}
}

func (s *site) schedulerID() string { return api.SchedulerID(s.cluster) }
