package startertest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"drydock.dev/drydock/starter/terminal"
)

// GoldenInWidths compares what is drawn in a pipe, and in terminals of three widths, none of whose lines is too long.
func GoldenInWidths(t *testing.T, name string, render func(io.Writer)) {
	t.Helper()
	Golden(t, name, render)
	for _, width := range []int{60, 80, 120} {
		Golden(t, fmt.Sprintf("%s_%d", name, width), func(w io.Writer) {
			var drawn bytes.Buffer
			render(&terminal.Page{Writer: &drawn, Width: width})
			for line := range strings.Lines(drawn.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%s: a line has %d columns of %d: %s", name, n, width, line)
				}
			}
			if _, err := io.Copy(w, &drawn); err != nil {
				t.Fatal(err)
			}
		})
	}
}

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
