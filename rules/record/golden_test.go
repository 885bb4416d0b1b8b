package record

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/visible"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func before(d time.Duration) time.Time { return noon.Add(-d) }

// golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it instead.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// full is a record with everything that a record can have.
func full() Record {
	return Record{
		Schema: Schema, WorkflowID: "blue/node-maintenance/worker-01/ops", RunID: "run-1", Cluster: "blue",
		Node: "worker-01", NodeUID: "0b5c", Requestor: "ops", AdditionalRequestors: []string{"net"}, Owner: "team infra",
		Reason: "kernel 6.12 <now>", Ticket: "OPS-7", Type: "planned", Phase: "Completed", Attempts: 2,
		CreatedAt: before(26 * time.Hour), EndedAt: before(time.Hour),
		Approval: &Approval{By: "jane@host", Principal: "jwt:jane", Comment: "go | ahead", At: before(25 * time.Hour)},
		Slot:     &Slot{RequestID: "run-1/2", RequestedAt: before(24 * time.Hour), GrantedAt: before(23 * time.Hour)},
		Phases: []Phase{
			{Phase: "Pending", At: before(26 * time.Hour)},
			{Phase: "Cordoning", At: before(23 * time.Hour)},
			{Phase: "Draining", At: before(23*time.Hour - 2*time.Second)},
			{Phase: "Draining", At: before(22 * time.Hour), Message: "uncordoned by hand; cordoned again (1 of 3)"},
			{Phase: "Ready", At: before(2 * time.Hour), Message: "ready\nat last"},
			{Phase: "Releasing", At: before(time.Hour + time.Minute)},
			{Phase: "Completed", At: before(time.Hour)},
		},
		MorePhases: 3,
		States:     []State{{ID: "run-1/1", Sequence: 1, State: "MaintenanceStarted", At: before(23 * time.Hour)}},
		Drain: &Drain{
			Evicted: 7, Total: 8, SkippedPods: []string{"batch/crawler-0"}, MorePods: 6,
			Pods: []Pod{{Pod: "default/web-1", UID: "u1", At: before(22 * time.Hour), How: "evicted"}},
		},
		Blockers: []Blocker{
			{Pod: "default/db-0", Owner: "StatefulSet db", Reason: "DisruptionBudget", Message: "budget db allows 0 disruptions", Since: before(23 * time.Hour), Until: before(20 * time.Hour)},
			{Pod: "default/bare", Reason: "NoController", Since: before(22 * time.Hour)},
		},
		MoreBlockers:  1,
		Escalations:   []Escalation{{At: before(21 * time.Hour), Do: "bypassBudget", By: "jane@host", Why: "team db agrees"}},
		Messages:      []Message{{At: before(61 * time.Minute), Name: "done", By: "ops@host", Comment: "all well", Effect: "ops is done"}},
		Hooks:         []Hook{{Name: "silence", When: "BeforeCordon", Outcome: "done", At: before(23 * time.Hour)}},
		Validation:    []Check{{Name: "Ready", OK: true, At: before(62 * time.Minute)}, {Name: "gpu", Message: "0 of 8", At: before(63 * time.Minute)}},
		Notifications: []Notification{{Channel: "oncall", Event: "MaintenanceStarted", At: before(23 * time.Hour), Outcome: "sent"}},
		Specification: json.RawMessage(`{"node":"worker-01"}`),
	}
}

// short is a maintenance that ended after an hour, half of it spent in Draining.
func short(node, run, phase string, endedBefore time.Duration) Record {
	end := before(endedBefore)
	return Record{
		Schema: Schema, WorkflowID: "node-maintenance/" + node + "/ops", RunID: run, Node: node, Requestor: "ops", Phase: phase, Attempts: 1,
		CreatedAt: end.Add(-time.Hour), EndedAt: end,
		Phases: []Phase{
			{Phase: "Pending", At: end.Add(-time.Hour)},
			{Phase: "Draining", At: end.Add(-30 * time.Minute)},
			{Phase: phase, At: end},
		},
	}
}

func running() Record {
	r := short("worker-02", "run-9", "", 0)
	r.Phases = []Phase{{Phase: "Pending", At: before(90 * time.Minute)}}
	r.Phase, r.CreatedAt, r.EndedAt, r.AsOf = "Pending", before(90*time.Minute), time.Time{}, noon
	return r
}

func TestRecordsAreShown(t *testing.T) {
	failed := short("worker-01", "run-2", "Failed", 3*time.Hour)
	failed.Failure = "no room\tfor pod a/b"
	golden(t, "table", drawn(List([]Record{running(), full(), failed}, noon)))
	golden(t, "text", drawn(View(full(), noon)))
	golden(t, "text_running", drawn(View(running(), noon)))
	golden(t, "markdown", Markdown(full(), noon))
	if got := drawn(List(nil, noon)); got != "" {
		t.Errorf("no records are shown as %q", got)
	}
}

func TestTimesAreShownInTheReadersZone(t *testing.T) {
	zone := time.FixedZone("east", 2*60*60)
	if got := drawn(View(running(), noon.In(zone))); !strings.Contains(got, "not ended at 14:00:00 east") {
		t.Errorf("got %s", got)
	}
	if got := Markdown(running(), noon.In(zone)); !strings.Contains(got, "not ended at 2026-07-01 14:00:00 +02:00") {
		t.Errorf("got %s", got)
	}
}

func TestReportsAreShown(t *testing.T) {
	report := Summarize(reported(), before(30*24*time.Hour), noon)
	golden(t, "report", drawn(report.View(noon)))
	golden(t, "report_markdown", report.Markdown(noon))
	asJSON, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report_json", string(asJSON)+"\n")
	golden(t, "report_none", drawn(Summarize(nil, before(time.Hour), noon).View(noon)))
}

func TestRecordsAsJSON(t *testing.T) {
	data, err := json.Marshal([]Record{full()})
	if err != nil {
		t.Fatal(err)
	}
	var again []Record
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff([]Record{full()}, again); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}

// drawn is a document about as a terminal shows it.
func drawn(d document.Document) string {
	var b strings.Builder
	for _, part := range d.Parts {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		var rows [][]string
		switch p := part.(type) {
		case document.Facts:
			for _, fact := range p {
				rows = append(rows, []string{fact.Name + ":", fact.Value})
			}
			b.WriteString(aligned("", rows))
		case document.Table:
			margin := ""
			if p.Title != "" {
				b.WriteString(p.Title + ":\n")
				margin = "  "
			}
			if len(p.Rows) > 0 {
				rows = append(rows, strings.Split(strings.ToUpper(strings.Join(p.Header, "\t")), "\t"))
			}
			for _, row := range p.Rows {
				rows = append(rows, row.Cells)
			}
			b.WriteString(aligned(margin, rows))
			if last := cmp.Or(p.More, p.None); last != "" && (p.More != "" || len(p.Rows) == 0) {
				b.WriteString(margin + last + "\n")
			}
		}
	}
	return b.String()
}

// aligned are rows in columns.
func aligned(margin string, rows [][]string) string {
	var columns, b strings.Builder
	w := tabwriter.NewWriter(&columns, 0, 8, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, margin+strings.Join(strings.Split(visible.Line(strings.Join(row, "\x00")), `\u{0}`), "\t"))
	}
	_ = w.Flush() // it writes to memory
	for l := range strings.Lines(columns.String()) {
		b.WriteString(strings.TrimRight(l, " \n") + "\n")
	}
	return b.String()
}
