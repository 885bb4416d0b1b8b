package audit_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/audit/audittest"
	"drydock.dev/drydock/audit/kinds"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/sections"
)

func sinks(all ...*flaky) *audit.Sinks {
	var c audit.Config
	for _, f := range all {
		c.Sinks = append(c.Sinks, sections.Chosen[audit.SinkConfig]{Kind: f.called, Config: f})
	}
	return audit.New(c, slog.Default())
}

// flaky is a sink that fails for a while.
type flaky struct {
	called   string
	failures int
	taken    []string
}

func (f *flaky) Validate(string, *sections.Problems) {}

func (f *flaky) Sink(audit.Environment) audit.Sink { return f }

func (f *flaky) Write(_ context.Context, r record.Record) error {
	if f.failures > 0 {
		f.failures--
		return errors.New("disk full")
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
	c.Undecoded = sections.Raw(input)
	return c, c.Decode(kinds.All())
}

func TestSinksAreThoseConfigured(t *testing.T) {
	c, err := decode(`{"key": {"file": "/run/secrets/audit-key"}, "log": true, "file": {"path": "/var/log/drydock/audit.jsonl", "maxSizeMB": 10, "compress": true},
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
		`{"log": true, "key": "canary"}`:                                               "key: want {file: <path>}",
		`{"key": {"env": "X"}}`:                                                        "key: has no meaning without a sink",
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

func TestAKeyThatProvesNothingIsAnError(t *testing.T) {
	t.Setenv("AUDIT_KEY", "too short")
	for place, want := range map[string]string{"AUDIT_KEY": "audit.key: the key is too short", "AUDIT_NONE": "audit.key: environment variable AUDIT_NONE is not set"} {
		c, err := decode(`{"log": true, "key": {"env": "` + place + `"}}`)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		written, err := audit.New(c, slog.New(slog.DiscardHandler)).Write(t.Context(), audittest.Record("worker-01", "run-1"), nil)
		if err == nil || !strings.Contains(err.Error(), want) || len(written) != 0 {
			t.Errorf("%s: %v, %v", place, err, written)
		}
	}
}

// receiver takes the records of a chain, or answers as it is told.
type receiver struct {
	answers []error
	got     []record.Record
}

func (r *receiver) take(_ context.Context, sealed record.Record, line []byte) error {
	if decoded, err := record.Decode(line); err != nil || decoded.Hash != sealed.Hash {
		return errors.Join(errors.New("it is not what is sent"), err)
	}
	var answer error
	if len(r.answers) > 0 {
		answer, r.answers = r.answers[0], r.answers[1:]
	}
	if answer == nil || errors.Is(answer, errLost) {
		r.got = append(r.got, sealed)
	}
	return answer
}

// errLost: the record was taken, and the answer lost.
var errLost = errors.New("connection reset")

// verdict is that of somebody who reads what the receiver got, each record once.
func (r *receiver) verdict(t *testing.T) record.Verdict {
	t.Helper()
	v := record.NewVerifier()
	seen := map[string]bool{}
	for i, sealed := range r.got {
		line, err := sealed.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if !seen[sealed.Hash] {
			v.Line("got", i+1, line)
		}
		seen[sealed.Hash] = true
	}
	return v.Verdict()
}

func TestAChainGoesOnWhateverBecomesOfARecord(t *testing.T) {
	refused, lost := errors.New("403"), audit.Uncertain(errLost)
	for name, c := range map[string]struct {
		answers []error
		runs    string
	}{
		"all taken":                     {nil, "1 2 3"},
		"one refused":                   {[]error{nil, refused}, "1 3"},
		"an answer lost":                {[]error{nil, lost}, "1 2 2 3"},
		"it does not answer for a time": {[]error{lost, lost, lost}, "1 1 1"},
	} {
		t.Run(name, func(t *testing.T) {
			r, chain := &receiver{answers: c.answers}, audit.NewChain(audit.Key{})
			for _, run := range []string{"1", "2", "3"} {
				if err := chain.Write(t.Context(), audittest.Record("n1", run), r.take); err != nil && len(c.answers) == 0 {
					t.Error(err)
				}
			}
			if got := audittest.Runs(r.got); got != c.runs {
				t.Errorf("it got %s, want %s", got, c.runs)
			}
			if v := r.verdict(t); !v.Intact {
				t.Errorf("%+v", v.Findings)
			}
		})
	}
	t.Run("an answer lost, and another end of the same maintenance", func(t *testing.T) {
		r, chain := &receiver{answers: []error{lost}}, audit.NewChain(audit.Key{})
		first, second := audittest.Record("n1", "1"), audittest.Record("n1", "1")
		second.LastRunID = "2"
		for i, one := range []record.Record{first, second} {
			if err := chain.Write(t.Context(), one, r.take); (err == nil) != (i == 1) {
				t.Errorf("record %d: %v", i, err)
			}
		}
		if got := r.got[len(r.got)-1]; got.LastRunID != "2" {
			t.Errorf("the last one that it got is of run %q", got.LastRunID)
		}
	})
	t.Run("it never answers", func(t *testing.T) {
		r, chain := &receiver{}, audit.NewChain(audit.Key{})
		for range 10 {
			r.answers = append(r.answers, audit.Uncertain(errors.New("timeout")))
		}
		for i := range 12 {
			if err := chain.Write(t.Context(), audittest.Record("n1", "1"), r.take); (err == nil) != (i >= 9) {
				t.Errorf("try %d: %v", i, err)
			}
		}
		// Its number is spent: nobody knows whether it was taken.
		if len(r.got) != 3 || r.got[0].Number != 2 || r.got[0].Previous == "" {
			t.Errorf("got %+v", r.got)
		}
	})
	t.Run("a turn that is not waited for", func(t *testing.T) {
		chain := audit.NewChain(audit.Key{})
		began, end := make(chan struct{}), make(chan struct{})
		go chain.Write(context.Background(), audittest.Record("n1", "1"), func(context.Context, record.Record, []byte) error { //nolint:errcheck // the second one is what is tested
			close(began)
			<-end
			return nil
		})
		<-began
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := chain.Write(ctx, audittest.Record("n1", "2"), (&receiver{}).take); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		close(end)
	})
}
