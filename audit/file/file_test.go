package file

import (
	"compress/gzip"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/audit/audittest"
	"drydock.dev/drydock/rules/record"
)

func newFile(t *testing.T, change ...func(*Config)) (*audit.Sinks, string) {
	t.Helper()
	f := Config{Path: filepath.Join(t.TempDir(), "logs", "audit.jsonl")}
	for _, c := range change {
		c(&f)
	}
	return audittest.Sinks("file", &f, slog.Default()), f.Path
}

func mustWrite(t *testing.T, s *audit.Sinks, records ...record.Record) {
	t.Helper()
	for _, r := range records {
		if _, err := s.Write(t.Context(), r, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// expect reads a file and compares the runs in it; want in the error is empty if there is none.
func expect(t *testing.T, path, wantRuns, wantError string) {
	t.Helper()
	records, err := Read(path)
	if got := audittest.Runs(records); got != wantRuns {
		t.Errorf("runs %q, want %q", got, wantRuns)
	}
	if (err == nil) != (wantError == "") || err != nil && !strings.Contains(err.Error(), wantError) {
		t.Errorf("error %v, want %q", err, wantError)
	}
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"), audittest.Record("b", "2"), audittest.Record("a", "1"), audittest.Record("c", "3"))
	expect(t, path, "1 2 3", "")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file can be read by others: %s", info.Mode())
	}
}

func TestATornLineIsReportedAndTakesNothingWithIt(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"))
	appendTo(t, path, `{"schema":"drydock.dev/audit/v1","wor`)
	expect(t, path, "1", "audit.jsonl:2: the last line is not whole")
	var damage *Damage
	if _, err := Read(path); !errors.As(err, &damage) || !damage.Torn || damage.Line != 2 {
		t.Errorf("%+v", damage)
	}
	// The next record begins a line of its own.
	mustWrite(t, s, audittest.Record("b", "2"))
	expect(t, path, "1 2", "audit.jsonl:2: not an audit record")
}

func TestAWholeLastLineNeedsNoEnd(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.TrimSpace(string(data))), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "1", "")
	mustWrite(t, s, audittest.Record("b", "2"))
	expect(t, path, "1 2", "")
}

func TestBadLinesAreReportedOneByOne(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"))
	appendTo(t, path, "\n{\"level\":\"info\"}\nnonsense\n")
	mustWrite(t, s, audittest.Record("b", "2"))
	expect(t, path, "1 2", "audit.jsonl:3: not an audit record: schema")
	expect(t, path, "1 2", "audit.jsonl:4: not an audit record: invalid character")
}

// large is a record of about 100 kB.
func large(i int) record.Record {
	r := audittest.Record("a", fmt.Sprint(i))
	for range 100 {
		r.Phases = append(r.Phases, record.Phase{Message: strings.Repeat("x", 1000)})
	}
	return r
}

func TestRotatedFilesAreReadToo(t *testing.T) {
	for _, compress := range []bool{false, true} {
		t.Run(fmt.Sprintf("compressed %v", compress), func(t *testing.T) {
			s, path := newFile(t, func(f *Config) { f.MaxSizeMB, f.Compress = 1, compress })
			var want []string
			for i := range 25 {
				mustWrite(t, s, large(i))
				want = append(want, fmt.Sprint(i))
				// Whatever the state of rotation and compression, nothing is missing.
				expect(t, path, strings.Join(want, " "), "")
			}
			if compress {
				awaitCompressed(t, filepath.Dir(path))
			}
			expect(t, path, strings.Join(want, " "), "")
			if files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "audit-*")); err != nil || len(files) != 2 {
				t.Errorf("rotated files: %v, %v", files, err)
			}
		})
	}
}

// awaitCompressed waits until every rotated file is.
func awaitCompressed(t *testing.T, folder string) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		plain, err := filepath.Glob(filepath.Join(folder, "audit-*.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		if len(plain) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not compressed: %v", plain)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestACompressedFileThatIsTornIsReported(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("b", "2"))
	rotated := filepath.Join(filepath.Dir(path), "audit-2026-07-01T10-00-00.000.jsonl.gz")
	file, err := os.Create(rotated)
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(file)
	line, err := audittest.Record("a", "1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := packed.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	if err := packed.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "1 2", "cannot be decompressed to its end")
	if err := os.WriteFile(rotated, []byte("no gzip"), 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, path, "2", "audit-2026-07-01T10-00-00.000.jsonl.gz: it cannot be decompressed")
	// As long as the file itself is there, it is the one that is complete.
	appendTo(t, strings.TrimSuffix(rotated, ".gz"), string(line)+"\n")
	expect(t, path, "1 2", "")
}

func TestOtherFilesBesideItAreNotRead(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"))
	for _, name := range []string{"audit-old.jsonl", "audit.jsonl.bak", "audit-2026-07-01T10-00-00.000.log", "other-2026-07-01T10-00-00.000.jsonl"} {
		appendTo(t, filepath.Join(filepath.Dir(path), name), "nonsense\n")
	}
	expect(t, path, "1", "")
}

func TestReadingWhatIsNotThere(t *testing.T) {
	folder := t.TempDir()
	expect(t, filepath.Join(folder, "audit.jsonl"), "", "no audit records: there is no file")
	expect(t, filepath.Join(folder, "none", "audit.jsonl"), "", "no audit records: there is no file")
	expect(t, folder, "", "is a directory")
	line, err := audittest.Record("a", "1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	// Only rotated ones are left.
	appendTo(t, filepath.Join(folder, "audit-2026-07-01T10-00-00.000.jsonl"), string(line))
	expect(t, filepath.Join(folder, "audit.jsonl"), "1", "")
}

func TestAFileThatWasMovedAwayIsBegunAnew(t *testing.T) {
	s, path := newFile(t)
	mustWrite(t, s, audittest.Record("a", "1"))
	if err := os.RemoveAll(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, s, audittest.Record("b", "2"))
	expect(t, path, "2", "")
}

func TestAFolderThatCannotBeMadeIsAnError(t *testing.T) {
	inTheWay := filepath.Join(t.TempDir(), "file")
	appendTo(t, inTheWay, "")
	s := audittest.Sinks("file", &Config{Path: filepath.Join(inTheWay, "audit.jsonl")}, slog.Default())
	written, err := s.Write(t.Context(), audittest.Record("a", "1"), nil)
	if err == nil || !strings.Contains(err.Error(), "audit sink file: making the file's folder") || len(written) > 0 {
		t.Errorf("%v, %v", written, err)
	}
}

func TestManyWritersOfOneProcess(t *testing.T) {
	s, path := newFile(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if _, err := s.Write(t.Context(), audittest.Record("a", fmt.Sprint(i)), nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	records, err := Read(path)
	if err != nil || len(records) != 50 {
		t.Errorf("%d records, %v", len(records), err)
	}
}
