package maintenance

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/docs/schemas/schematest"
	"drydock.dev/drydock/lab/e2e/site"
	"drydock.dev/drydock/rules/record"
)

// TestOutputsAreAsTheirSchemasSay runs the commands that print for programs, while much is going on.
func TestOutputsAreAsTheirSchemasSay(t *testing.T) {
	dir := t.TempDir()
	records := filepath.Join(dir, "audit.jsonl")
	s := site.New(t, "windows: {always: {from: \"00:00\", to: \"24:00\"}}\nhooks: {move: {signal: {}, deadline: 5m}}\nchannels: {nodes: {kubernetes: {}, default: true}}\n"+
		"audit: {file: {path: "+records+"}}\nscheduler: {maxParallel: 2, groups: [{name: some, nodeSelector: a=b, maxUnavailable: 50%, windows: [always]}]}\n")
	// The worker's and the user's zones are not UTC, and must not show.
	s.Environment = append(s.Environment, "TZ=Asia/Tokyo")
	prints := func(schema string, status int, args ...string) string {
		t.Helper()
		r := s.Drydock(args...)
		if s.Exits(r, status); r.Status == status {
			schematest.Holds(t, schema, []byte(r.Stdout))
		}
		return r.Stdout
	}
	holds := func(schema string, status int, args ...string) string {
		t.Helper()
		prints(schema, status, append(args, "-o", "yaml")...)
		return prints(schema, status, append(args, "-o", "json")...)
	}
	ns := s.Namespace()
	s.Deployment(ns, "web", 2, site.On("worker-01"))
	s.Budget(ns, "web", 2)

	holds("freezes", 0, "freeze", "--by", "ann", "--comment", "first things first")
	holds("summaries", 0, "start", "worker-01", "--reason", "kernel 6.12", "--ticket", "OPS-7", "--escalation", "1s=notify", "--approval")
	holds("status", 0, "status", "worker-01")
	holds("summary", 0, "approve", "worker-01", "--comment", "go")
	s.UntilStatus(s.RunOf("worker-01"), "frozen", func(status api.Status) bool { return strings.Contains(status.WaitingFor, "frozen by ann") })
	holds("limits", 0, "limits")
	watch := s.Spawn("watch", "worker-01", "-o", "json")
	holds("freezes", 0, "thaw", "--by", "ann")
	holds("limits-set", 0, "limits", "set", "--max-parallel", "3", "--comment", "two crews")
	holds("limits-diff", 1, "limits", "diff", "--config", s.File("worker.yaml", "maxParallel: 1\n"))
	holds("windows", 0, "windows")
	holds("preflight", 5, "preflight", "worker-01")
	s.Eventually("a pod blocks the drain", func() error {
		var m api.Maintenance
		if err := json.Unmarshal([]byte(holds("status", 0, "status", "worker-01")), &m); err != nil {
			return err
		}
		if m.Drain == nil || len(m.Drain.Blockers) == 0 || len(m.Escalation) == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	for _, pod := range s.Pods(ns) {
		s.MustDrydock("drain", "skip", "worker-01", ns+"/"+pod.Name, "--comment", "stays")
	}
	s.Until(s.RunOf("worker-01"), api.Ready)
	if out := holds("status", 0, "status", "worker-01"); !strings.Contains(out, `"node": "worker-01"`) || strings.Contains(out, "+09:00") {
		t.Errorf("status is %s", out)
	}
	holds("summaries", 0, "list")
	holds("summary", 0, "join", "worker-01", "--requestor", "net")
	holds("doctor", 0, "doctor", "--pause", "1s")
	s.MustDrydock("done", "worker-01", "--requestor", "net")
	prints("summary", 0, "done", "worker-01", "--wait", "-o", "json")
	for line := range strings.Lines(watch.End().Stdout) {
		schematest.Holds(t, "summary", []byte(line))
	}

	holds("summaries", 0, "list", "--all")
	holds("status", 0, "status", "worker-01")
	holds("history", 0, "history", "worker-01")
	var kept []record.Record
	s.RecordOf(records, s.MustStatus(s.RunOf("worker-01")).RunID)
	if out := holds("history", 0, "history", "worker-01", "--from", records); json.Unmarshal([]byte(out), &kept) != nil || len(kept) != 1 {
		t.Errorf("the history from the file is %s", out)
	}
	if out := holds("report", 0, "report", "--from", records); !strings.Contains(out, `"maintenances": 1,`) {
		t.Errorf("the report from the file is %s", out)
	}
	holds("audit-verify", 0, "audit", "verify", records)
	prints("rollout", 0, "rollout", "-o", "json", "worker-02", "--yes", "--", "true")
	holds("version", 0, "version", "--server")
}

// TestPeopleAreShownTheirOwnTime has one rule for times, wherever they come from.
func TestPeopleAreShownTheirOwnTime(t *testing.T) {
	s := site.New(t, "")
	s.Environment = append(s.Environment, "TZ=Asia/Tokyo")
	s.MustDrydock("start", "worker-01", "--not-before", "1h")
	s.UntilStatus(s.RunOf("worker-01"), "waiting for its time", func(status api.Status) bool { return strings.Contains(status.WaitingFor, "not before 20") })
	for _, args := range [][]string{{"status", "worker-01"}, {"list"}, {"history", "worker-01", "--details"}} {
		var out string
		s.Eventually("the list has it", func() error {
			if out = s.MustDrydock(args...); !strings.Contains(out, "worker-01") {
				return errors.New("not yet")
			}
			return nil
		})
		if !strings.Contains(out, " JST") || strings.Contains(out, ":00Z") || strings.Contains(out, " UTC") {
			t.Errorf("%v shows\n%s", args, out)
		}
	}
	if out := s.MustDrydock("history", "worker-01", "-o", "markdown"); !strings.Contains(out, " +09:00") || strings.Contains(out, "Z |") {
		t.Errorf("the history in Markdown is\n%s", out)
	}
	s.Exits(s.Drydock("cancel", "worker-01", "--wait"), 0, "cancelled; the node was not touched")
	s.Exits(s.Drydock("report", "--since", "400d"), 0, " JST", "what ended before is not here")

	s.MustDrydock("freeze", "--by", "ann")
	s.Exits(s.Drydock("thaw", "--by", "ann"), 0, "Thawed; no freezes remain")
	if r := s.Drydock("start", "worker-02", "--wait"); !strings.Contains(r.Out(), " JST  worker-02  ") || strings.Contains(r.Out(), "\x1b") {
		t.Errorf("a pipe is shown\n%s", r.Out())
	}
	s.Exits(s.Drydock("status", "worker-02"), 0, "left, then RequestorFailed")
	if r := s.Drydock("done", "worker-02", "--wait", "-v"); !strings.Contains(r.Out(), "Waiting for the end") || !strings.Contains(r.Out(), "Completed") {
		t.Errorf("-v shows no progress:\n%s", r.Out())
	}
}
