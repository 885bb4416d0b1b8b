package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/record"
)

// shownDetails are the details that the Temporal UI shows of a workflow.
func (s *site) shownDetails(run client.WorkflowRun) string {
	s.Helper()
	text, err := s.queried(run.GetID(), "__temporal_workflow_metadata")
	if err != nil {
		s.Fatal(err)
	}
	var metadata struct {
		CurrentDetails string `json:"currentDetails"`
	}
	if err := json.Unmarshal([]byte(text), &metadata); err != nil {
		s.Fatalf("%v: %s", err, text)
	}
	return metadata.CurrentDetails
}

// says checks that a text has some parts.
func (s *site) says(what, text string, parts ...string) {
	s.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			s.Errorf("%s does not say %q:\n%s", what, part, text)
		}
	}
}

// untilSays waits until the command line says some parts, and returns all that it says: Temporal lists what has ended a moment
// later.
func (s *site) untilSays(args []string, parts ...string) string {
	s.Helper()
	var r ran
	s.eventually(fmt.Sprintf("drydock %q says %q", args, parts), func() error {
		r = s.drydock(args...)
		if r.status != 0 || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(r.stdout, part) }) {
			return fmt.Errorf("exit status %d\n%s", r.status, r.out())
		}
		return nil
	})
	return r.stdout
}

// TestWhoStartedAndWhoApprovedIsShownEverywhere begins before any worker runs, so that the time until the first step counts.
func TestWhoStartedAndWhoApprovedIsShownEverywhere(t *testing.T) {
	s := prepareSite(t, "")
	path := filepath.Join(s.options.Dir, "audit.jsonl")
	s.options.Config += fmt.Sprintf("audit: {file: {path: %q}}\n", path)
	earliest := time.Now().Add(-time.Second)
	run := s.beginWith("worker-01", `"approval":true,"reason":"kernel 6.12"`)
	latest := time.Now().Add(time.Second)
	s.startWorker()
	s.until(run, api.AwaitingApproval)

	// Somebody approves in the Temporal UI without saying who it is; the UI's identity is all that is known.
	s.post(run.GetID(), "/update/approve", updateOf("word", `{"comment":"window agreed"}`))
	s.untilHeld(run)
	status := s.mustStatus(run)
	if status.Starter == nil || status.Starter.Identity == "" || status.Approval == nil || status.Approval.Identity != "ann" {
		t.Fatalf("starter %+v, approval %+v", status.Starter, status.Approval)
	}
	approved := "by unknown (identity ann)"
	shown := s.mustDrydock("status", "worker-01")
	s.says("status", shown, "Started by:", status.Starter.Identity, "Requestor:", "Approved:", approved+": window agreed")
	s.says("the Temporal UI", s.shownDetails(run), "Maintenance of **worker-01** by ops: kernel 6.12", "started by "+status.Starter.Identity[:3],
		"approved by unknown (identity ann)", "window agreed", "held until")
	s.done(run)

	kept := s.recordOf(path, run.GetRunID())
	if kept.Starter == nil || kept.Starter.Identity != status.Starter.Identity || kept.Approval.Identity != "ann" || kept.Approval.Comment != "window agreed" {
		t.Errorf("the audit file has %+v, %+v", kept.Starter, kept.Approval)
	}
	for _, args := range [][]string{{"--details"}, {"-o", "markdown"}, {"--details", "--from", path}} {
		text := s.untilSays(append([]string{"history", "worker-01"}, args...), "Started by:")
		s.says("history "+strings.Join(args, " "), strings.ReplaceAll(text, `\`, ""), "Started by:", status.Starter.Identity, "approved "+approved, "window agreed")
	}
	// One length, in Temporal and in the file: from the start, before any worker ran.
	var histories []record.Record
	if err := json.Unmarshal([]byte(s.untilSays([]string{"history", "worker-01", "-o", "json"}, run.GetRunID())), &histories); err != nil || len(histories) != 1 {
		t.Fatalf("%v: %+v", err, histories)
	}
	if h := histories[0]; !h.CreatedAt.Equal(kept.CreatedAt) || !h.EndedAt.Equal(kept.EndedAt) || kept.CreatedAt.Before(earliest) ||
		kept.CreatedAt.After(latest) || !kept.CreatedAt.Before(kept.Phases[0].At) {
		t.Errorf("%s to %s in Temporal, %s to %s in the file; started from %s to %s", h.CreatedAt, h.EndedAt, kept.CreatedAt, kept.EndedAt, earliest, latest)
	}

	// Started and approved at the command line, both have a name.
	s.mustDrydock("start", "worker-02", "--approval")
	named := s.runOf("worker-02")
	s.until(named, api.AwaitingApproval)
	s.mustDrydock("approve", "worker-02", "--comment", "go")
	s.until(named, api.Ready)
	if status := s.mustStatus(named); status.Starter == nil || status.Starter.Identity != status.Approval.By || status.Approval.By == "" ||
		strings.Contains(s.mustDrydock("status", "worker-02"), "unknown") {
		t.Errorf("starter %+v, approval %+v", status.Starter, status.Approval)
	}
	s.listedByKind()
	s.done(named)
}

// listedByKind checks the filter by which the Temporal UI lists maintenances and nothing else, however they were started.
func (s *site) listedByKind() {
	s.Helper()
	list := func(filter string) (kinds map[string]int, err error) {
		page, err := s.temporal.ListWorkflow(s.ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: filter + fmt.Sprintf(` AND TaskQueue = %q`, api.TaskQueue(s.cluster, "drydock")),
		})
		kinds = map[string]int{}
		for _, info := range page.GetExecutions() {
			kinds[info.GetType().GetName()]++
		}
		return kinds, err
	}
	s.eventually("the maintenances are listed by their kind", func() error {
		all, err := list(`DrydockKind = "maintenance"`)
		if err == nil && (all[api.NodeMaintenanceType] != 2 || len(all) != 1) {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
	s.eventually("the records are listed by their kind", func() error {
		all, err := list(`DrydockKind = "record"`)
		if err == nil && (all[api.AuditRecordType] != 1 || len(all) != 1) {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
}
