package startertest

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Golden compares with a file of testdata; UPDATE_GOLDEN=1 writes it instead.
func Golden(t *testing.T, name string, render func(io.Writer)) {
	t.Helper()
	var got bytes.Buffer
	render(&got)
	path := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
}
