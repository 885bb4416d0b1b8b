package trust

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/record"
)

// TestWhoStartedAndWhoApprovedIsShownEverywhere begins before any worker runs, so that the time until the first step counts.
func TestWhoStartedAndWhoApprovedIsShownEverywhere(t *testing.T) {
	s := site.Prepare(t, "")
	path := filepath.Join(s.Options.Dir, "audit.jsonl")
	s.Options.Config += fmt.Sprintf("audit: {file: {path: %q}}\n", path)
	earliest := time.Now().Add(-time.Second)
	run := s.BeginWith("worker-01", `"approval":true,"reason":"kernel 6.12"`)
	latest := time.Now().Add(time.Second)
	s.StartWorker()
	s.Until(run, api.AwaitingApproval)

	// Somebody approves in the Temporal UI without saying who it is; the UI's identity is all that is known.
	s.Post(run.GetID(), "/update/approve", site.UpdateOf("word", `{"comment":"window agreed"}`))
	s.UntilHeld(run)
	status := s.MustStatus(run)
	if status.Starter == nil || status.Starter.Identity == "" || status.Approval == nil || status.Approval.Identity != "ann" {
		t.Fatalf("starter %+v, approval %+v", status.Starter, status.Approval)
	}
	approved := "by unknown (identity ann)"
	shown := s.MustDrydock("status", "worker-01")
	s.Says("status", shown, "Started by:", status.Starter.Identity, "Requestor:", "Approved:", approved+": window agreed")
	s.Says("the Temporal UI", s.ShownDetails(run), "**Maintenance of worker-01 by ops**", "**Reason:** kernel 6.12",
		"**Started by:** "+status.Starter.Identity[:3], "**Approved:** ", "by unknown (identity ann): window agreed", "**Held until:** ")
	s.Done(run)

	kept := s.RecordOf(path, run.GetRunID())
	if kept.Starter == nil || kept.Starter.Identity != status.Starter.Identity || kept.Approval.Identity != "ann" || kept.Approval.Comment != "window agreed" {
		t.Errorf("the audit file has %+v, %+v", kept.Starter, kept.Approval)
	}
	for _, args := range [][]string{{"--details"}, {"-o", "markdown"}, {"--details", "--from", path}} {
		text := s.UntilSays(append([]string{"history", "worker-01"}, args...), "Started by:")
		s.Says("history "+strings.Join(args, " "), strings.ReplaceAll(text, `\`, ""), "Started by:", status.Starter.Identity, "approved "+approved, "window agreed")
	}
	// One length, in Temporal and in the file: from the start, before any worker ran.
	var histories []record.Record
	if err := json.Unmarshal([]byte(s.UntilSays([]string{"history", "worker-01", "-o", "json"}, run.GetRunID())), &histories); err != nil || len(histories) != 1 {
		t.Fatalf("%v: %+v", err, histories)
	}
	if h := histories[0]; !h.CreatedAt.Equal(kept.CreatedAt) || !h.EndedAt.Equal(kept.EndedAt) || kept.CreatedAt.Before(earliest) ||
		kept.CreatedAt.After(latest) || !kept.CreatedAt.Before(kept.Phases[0].At) {
		t.Errorf("%s to %s in Temporal, %s to %s in the file; started from %s to %s", h.CreatedAt, h.EndedAt, kept.CreatedAt, kept.EndedAt, earliest, latest)
	}

	// Started and approved at the command line, both have a name.
	s.MustDrydock("start", "worker-02", "--approval")
	named := s.RunOf("worker-02")
	s.Until(named, api.AwaitingApproval)
	s.MustDrydock("approve", "worker-02", "--comment", "go")
	s.Until(named, api.Ready)
	if status := s.MustStatus(named); status.Starter == nil || status.Starter.Identity != status.Approval.By || status.Approval.By == "" ||
		strings.Contains(s.MustDrydock("status", "worker-02"), "unknown") {
		t.Errorf("starter %+v, approval %+v", status.Starter, status.Approval)
	}
	listedByKind(s)
	s.Done(named)
}

// listedByKind checks the filter by which the Temporal UI lists maintenances and nothing else, however they were started.
func listedByKind(s *site.Site) {
	s.Helper()
	list := func(filter string) (kinds map[string]int, err error) {
		page, err := s.Temporal.ListWorkflow(s.Ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Query: filter + fmt.Sprintf(` AND TaskQueue = %q`, api.TaskQueue(s.Cluster, "drydock")),
		})
		kinds = map[string]int{}
		for _, info := range page.GetExecutions() {
			kinds[info.GetType().GetName()]++
		}
		return kinds, err
	}
	s.Eventually("the maintenances are listed by their kind", func() error {
		all, err := list(`DrydockKind = "maintenance"`)
		if err == nil && (all[api.NodeMaintenanceType] != 2 || len(all) != 1) {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
	s.Eventually("the records are listed by their kind", func() error {
		all, err := list(`DrydockKind = "record"`)
		if err == nil && (all[api.AuditRecordType] != 1 || len(all) != 1) {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
}
