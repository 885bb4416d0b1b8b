package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock/audit"
	"drydock/audit/audittest"
	"drydock/audit/kinds"
	"drydock/config/named"
	"drydock/rules/record"
)

func sinks(all ...*flaky) *audit.Sinks {
	var c audit.Config
	for _, f := range all {
		c.Sinks = append(c.Sinks, named.Chosen[audit.SinkConfig]{Kind: f.called, Config: f})
	}
	return audit.New(c, slog.Default())
}

// flaky is a sink that fails for a while.
type flaky struct {
	called   string
	failures int
	taken    []string
}

func (f *flaky) Validate(string, *named.Problems) {}

func (f *flaky) Sink(*slog.Logger) audit.Sink { return f }

func (f *flaky) Write(_ context.Context, r record.Record, line []byte) error {
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
	s := sinks(first, second, third)
	var done []string
	for attempt, want := range [][]string{{"first"}, {"first", "third"}, {"first", "third", "second"}} {
		written, err := s.Write(t.Context(), audittest.Record("worker-01", "run-1"), done)
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
	written, err := sinks(f).Write(t.Context(), audittest.Record("worker-01", ""), []string{"x"})
	if err == nil || !strings.Contains(err.Error(), "runId: is missing") || len(f.taken) > 0 {
		t.Errorf("%v, taken %v", err, f.taken)
	}
	if diff := cmp.Diff([]string{"x"}, written); diff != "" {
		t.Errorf("what was done is forgotten: %s", diff)
	}
}

// decode reads sinks as the worker's configuration does.
func decode(input string) (c audit.Config, err error) {
	c.Undecoded = named.Raw(input)
	return c, c.Decode(kinds.All())
}

func TestSinksAreThoseConfigured(t *testing.T) {
	c, err := decode(`{"log": true, "file": {"path": "/var/log/drydock/audit.jsonl", "maxSizeMB": 10, "compress": true},
		"webhook": {"url": "https://collector/audit", "headers": {"Authorization": {"env": "TOKEN"}}, "secret": {"file": "/run/secrets/key"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"log", "file", "webhook"}, audit.New(c, slog.Default()).Names()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if names := audit.New(audit.Config{}, slog.Default()).Names(); len(names) != 0 {
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
		c, err := decode(input)
		if err != nil {
			t.Errorf("%s: %v", input, err)
			continue
		}
		err = c.Validate()
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, want %q", input, err, want)
		}
	}
	if _, err := decode(`{"file": {"path": "a", "maxsize": 3}}`); err == nil || !strings.Contains(err.Error(), "maxsize") {
		t.Errorf("an unknown field: %v", err)
	}
}
