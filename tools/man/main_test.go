package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/starter"
)

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Each command that people see has its page, and two runs write the same.
func TestPagesOfAllCommands(t *testing.T) {
	date := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	first, second := t.TempDir(), t.TempDir()
	for _, dir := range []string{first, second} {
		if err := write(starter.Command(), dir, "v0.2.0", date); err != nil {
			t.Fatal(err)
		}
	}
	pages, err := filepath.Glob(filepath.Join(first, "*", "*"))
	if err != nil || len(pages) < 60 {
		t.Errorf("%d files, %v", len(pages), err)
	}
	for _, page := range pages {
		other := filepath.Join(second, strings.TrimPrefix(page, first))
		if !bytes.Equal(read(t, page), read(t, other)) {
			t.Errorf("%s differs from run to run", page)
		}
	}
	packed, err := gzip.NewReader(bytes.NewReader(read(t, filepath.Join(first, "man", "drydock-plan-create.1.gz"))))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	for _, want := range []string{"DRYDOCK-PLAN-CREATE", "drydock v0.2.0", "--max-parallel", "Jul 2026"} {
		if err != nil || !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), want) {
			t.Errorf("%v, not %q in\n%s", err, want, text)
		}
	}
	for file, want := range map[string]string{"drydock.bash": "__start_drydock", "drydock.zsh": "#compdef drydock", "drydock.fish": "complete -c drydock"} {
		if !strings.Contains(string(read(t, filepath.Join(first, "completions", file))), want) {
			t.Errorf("%s does not have %q", file, want)
		}
	}
}
