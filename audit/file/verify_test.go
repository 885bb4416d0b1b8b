package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/audit/audittest"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// verify checks a file and compares what is found, as "kind number".
func verify(t *testing.T, path string, want ...string) record.Verdict {
	t.Helper()
	v, err := Verify(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range v.Findings {
		got = append(got, fmt.Sprintf("%s %d", f.Kind, f.Number))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || v.Intact != (len(want) == 0) {
		t.Errorf("found %v, want %v: %+v", got, want, v)
	}
	return v
}

// again is another process that writes to the same file.
func again(path string) *audit.Sinks {
	return audittest.Sinks("file", &Config{Path: path}, slog.New(slog.DiscardHandler))
}

func TestAWriterThatRestartsGoesOnWithTheChain(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"), audittest.Record("b", "2"))
	mustWrite(t, again(path), audittest.Record("c", "3"))
	mustWrite(t, s, audittest.Record("d", "4"))
	v := verify(t, path)
	if len(v.Chains) != 1 || v.Chains[0].First != 1 || v.Chains[0].Last != 4 || v.Records != 4 || v.Proven {
		t.Errorf("%+v", v)
	}
}

func TestWritersOfOneFileTakeTurns(t *testing.T) {
	_, path := newFile(t)
	var all sync.WaitGroup
	for worker := range 4 {
		s := again(path)
		for i := range 10 {
			all.Go(func() {
				if _, err := s.Write(t.Context(), audittest.Record("a", fmt.Sprintf("%d-%d", worker, i)), nil); err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	if v := verify(t, path); v.Records != 40 || len(v.Chains) != 1 || v.Chains[0].Last != 40 {
		t.Errorf("%+v", v)
	}
}

func TestATornLineIsFoundAndTheChainGoesOn(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"))
	appendTo(t, path, `{"schema":"drydock.dev/audit/v1","wor`)
	var said bytes.Buffer
	mustWrite(t, audittest.Sinks("file", &Config{Path: path}, slog.New(slog.NewTextHandler(&said, nil))), audittest.Record("b", "2"))
	mustWrite(t, s, audittest.Record("c", "3"))
	if v := verify(t, path, "unreadable 0"); v.Findings[0].Line != 2 || v.Chains[0].Last != 3 {
		t.Errorf("%+v", v)
	}
	if !strings.Contains(said.String(), "is not whole") {
		t.Errorf("the log has %q", said.String())
	}
}

func TestAChainGoesOnThroughRotation(t *testing.T) {
	for _, compress := range []bool{false, true} {
		s, path := newFile(t, func(f *Config) { f.MaxSizeMB, f.Compress = 1, compress })
		for i := range 25 {
			mustWrite(t, s, large(i))
		}
		if compress {
			awaitCompressed(t, filepath.Dir(path))
		}
		if v := verify(t, path); v.Records != 25 || len(v.Chains) != 1 {
			t.Errorf("%+v", v)
		}
		// A process that begins when the file is just rotated away goes on with what it finds.
		if err := os.Rename(path, strings.TrimSuffix(path, ".jsonl")+"-2099-01-01T00-00-00.000.jsonl"); err != nil {
			t.Fatal(err)
		}
		mustWrite(t, again(path), audittest.Record("a", "last"))
		if v := verify(t, path); v.Records != 26 || v.Chains[0].Last != 26 {
			t.Errorf("%+v", v)
		}
	}
}

func TestOldFilesMayBeGone(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"), audittest.Record("b", "2"))
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, audittest.Record("c", "3"))
	if v := verify(t, path); v.Chains[0].First != 3 {
		t.Errorf("%+v", v)
	}
}

func TestAProcessKnowsItsOwnRecords(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"), audittest.Record("b", "2"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody cuts the end off while the worker runs.
	if err := os.WriteFile(path, data[:bytes.IndexByte(data, '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, audittest.Record("c", "3"))
	verify(t, path, "missing 3")
}

func TestRecordsAreProvenByTheKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	const old, fresh = "the first key of all", "the second key of all"
	write := func(run string) {
		c := audit.Config{Settings: audit.Settings{Key: secret.Value{Env: "AUDIT_KEY"}}, Sinks: []sections.Chosen[audit.SinkConfig]{{Kind: "file", Config: &Config{Path: path}}}}
		mustWrite(t, audit.New(c, slog.Default()), audittest.Record("a", run))
	}
	t.Setenv("AUDIT_KEY", old)
	write("1")
	t.Setenv("AUDIT_KEY", fresh)
	write("2")
	mustWrite(t, again(path), audittest.Record("a", "3")) // somebody without a key
	for _, c := range []struct {
		keys []string
		want int
	}{{nil, 0}, {[]string{old, fresh}, 1}, {[]string{fresh}, 2}, {[]string{"a key of somebody"}, 3}} {
		var keys [][]byte
		for _, k := range c.keys {
			keys = append(keys, []byte(k))
		}
		v, err := Verify(path, keys)
		if err != nil || len(v.Findings) != c.want || v.Proven != (len(keys) > 0) {
			t.Errorf("%v: %v, %+v", c.keys, err, v)
		}
	}
}

func TestALockIsNotWaitedForForEver(t *testing.T) {
	_, path := newFile(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	unlock, err := lock(t.Context(), path+lockEnding)
	if err != nil {
		t.Fatal(err)
	}
	stopped := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(stopped)
	if _, err := again(path).Write(ctx, audittest.Record("a", "1"), nil); !errors.Is(err, stopped) {
		t.Errorf("error %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, again(path), audittest.Record("a", "1"))
}
