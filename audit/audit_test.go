package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drydock/rules/record"
	"drydock/rules/spec"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

func recordOf(node, run string) record.Record {
	return record.Record{
		Schema: record.Schema, WorkflowID: "node-maintenance/" + node + "/ops", RunID: run, Node: node, Requestor: "ops",
		Phase: "Completed", CreatedAt: noon.Add(-time.Hour), EndedAt: noon,
	}
}

func runs(records []record.Record) string {
	var all []string
	for _, r := range records {
		all = append(all, r.RunID)
	}
	return strings.Join(all, " ")
}

// flaky is a sink that fails for a while.
type flaky struct {
	called   string
	failures int
	taken    []string
}

func (f *flaky) name() string { return f.called }

func (f *flaky) write(_ context.Context, r record.Record, line []byte) error {
	if f.failures > 0 {
		f.failures--
		return errors.New("disk full")
	}
	if _, err := record.Decode(line); err != nil {
		return err
	}
	f.taken = append(f.taken, r.RunID)
	return nil
}

func TestARetryWritesOnlyWhatIsMissing(t *testing.T) {
	first, second, third := &flaky{called: "first"}, &flaky{called: "second", failures: 2}, &flaky{called: "third", failures: 1}
	s := &Sinks{sinks: []sink{first, second, third}}
	var done []string
	for attempt, want := range [][]string{{"first"}, {"first", "third"}, {"first", "third", "second"}} {
		written, err := s.Write(t.Context(), recordOf("worker-01", "run-1"), done)
		if diff := cmp.Diff(want, written); diff != "" {
			t.Errorf("attempt %d: want - got +\n%s", attempt, diff)
		}
		if (err == nil) != (len(written) == 3) || err != nil && !strings.Contains(err.Error(), "audit sink second: disk full") {
			t.Errorf("attempt %d: %v", attempt, err)
		}
		if attempt == 0 && !strings.Contains(err.Error(), "audit sink third: disk full") {
			t.Errorf("one error hides the other: %v", err)
		}
		done = written
	}
	for _, f := range []*flaky{first, second, third} {
		if diff := cmp.Diff([]string{"run-1"}, f.taken); diff != "" {
			t.Errorf("%s: want - got +\n%s", f.called, diff)
		}
	}
}

func TestARecordWithoutIdentityIsNotWritten(t *testing.T) {
	f := &flaky{called: "first"}
	written, err := (&Sinks{sinks: []sink{f}}).Write(t.Context(), recordOf("worker-01", ""), []string{"x"})
	if err == nil || !strings.Contains(err.Error(), "runId: is missing") || len(f.taken) > 0 {
		t.Errorf("%v, taken %v", err, f.taken)
	}
	if diff := cmp.Diff([]string{"x"}, written); diff != "" {
		t.Errorf("what was done is forgotten: %s", diff)
	}
}

func TestRecordsGoToTheLogWhateverItsLevel(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelError}))
	s := New(Config{Log: true}, logger)
	if _, err := s.Write(t.Context(), recordOf("worker-01", "run-1"), nil); err != nil {
		t.Fatal(err)
	}
	var line struct {
		Message string        `json:"msg"`
		Record  record.Record `json:"record"`
	}
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	if diff := cmp.Diff(recordOf("worker-01", "run-1"), line.Record); diff != "" || line.Message != "audit record" {
		t.Errorf("%s: want - got +\n%s", line.Message, diff)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestALogThatTakesNothingIsAnError(t *testing.T) {
	s := New(Config{Log: true}, slog.New(slog.NewTextHandler(brokenWriter{}, nil)))
	written, err := s.Write(t.Context(), recordOf("worker-01", "run-1"), nil)
	if err == nil || !strings.Contains(err.Error(), "audit sink log: broken pipe") || len(written) > 0 {
		t.Errorf("%v, %v", written, err)
	}
}

func TestSinksAreThoseConfigured(t *testing.T) {
	var c Config
	if err := spec.DecodeStrict([]byte(`{"log": true, "file": {"path": "/var/log/drydock/audit.jsonl", "maxSizeMB": 10, "compress": true},
		"webhook": {"url": "https://collector/audit", "headers": {"Authorization": {"env": "TOKEN"}}, "secret": {"file": "/run/secrets/key"}}}`), &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"log", "file", "webhook"}, New(c, slog.Default()).Names()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if names := New(Config{}, slog.Default()).Names(); len(names) != 0 {
		t.Errorf("nothing is configured, and there are %v", names)
	}
}

func TestWrongConfigurationsNameTheField(t *testing.T) {
	for input, want := range map[string]string{
		`{"file": {"path": ""}}`:                                                       "file.path: is missing",
		`{"file": {"path": "/var/log/"}}`:                                              `file.path: "/var/log/" is a folder`,
		`{"file": {"path": "/var/log/a.gz"}}`:                                          "file.path: \"/var/log/a.gz\": rotated files",
		`{"file": {"path": "a", "maxSizeMB": -1}}`:                                     "file.maxSizeMB: -1 is negative; 0 is 100",
		`{"file": {"path": "a", "maxBackups": -1}}`:                                    "file.maxBackups: -1 is negative",
		`{"file": {"path": "a", "maxAgeDays": -1}}`:                                    "file.maxAgeDays: -1 is negative",
		`{"webhook": {"url": ""}}`:                                                     "webhook.url: is missing",
		`{"webhook": {"url": "collector:8080"}}`:                                       "webhook.url: is not an address",
		`{"webhook": {"url": "https://me:canary@host/"}}`:                              "webhook.url: has a user or password",
		`{"webhook": {"url": "https://me:canary@ho st/"}}`:                             "webhook.url: is not an address",
		`{"webhook": {"url": "https://h", "headers": {"a b": {"env": "X"}}}}`:          `webhook.headers: "a b" is not a name`,
		`{"webhook": {"url": "https://h", "headers": {"host": {"env": "X"}}}}`:         "webhook.headers.host: is set by Drydock",
		`{"webhook": {"url": "https://h", "headers": {"X-A": {}}}}`:                    "webhook.headers.X-A: want {file: <path>}",
		`{"webhook": {"url": "https://h", "secret": {"env": "X", "file": "/x"}}}`:      "webhook.secret: want {file: <path>}",
		`{"webhook": {"url": "h", "headers": {"A": {"env": "X"}, "a": {"env": "X"}}}}`: "webhook.headers.a: is the same header as A",
	} {
		var c Config
		if err := spec.DecodeStrict([]byte(input), &c); err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		err := c.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
	if err := spec.DecodeStrict([]byte(`{"file": {"path": "a", "maxsize": 3}}`), new(Config)); err == nil || !strings.Contains(err.Error(), "maxsize") {
		t.Errorf("an unknown field: %v", err)
	}
}
