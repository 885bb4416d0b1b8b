package renewed

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatWasReadBeforeCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	var reported []string
	open := func() (*Value[string], error) {
		return Open(func() (string, error) { return Token(path) }, func(err error) { reported = append(reported, err.Error()) })
	}
	set := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := open(); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("error = %v", err)
	}
	set("first\n")
	v, err := open()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, text := range []string{"first", " \n", "", "second\n", "", "third"} {
		set(text)
		if was := v.Last(); len(got) > 0 && was != got[len(got)-1] {
			t.Errorf("the last is %q without having been read", was)
		}
		got = append(got, v.Get())
		if failed := v.Problem() != nil; failed != (strings.TrimSpace(text) == "") {
			t.Errorf("%q: problem %v", text, v.Problem())
		}
	}
	if diff := cmp.Diff([]string{"first", "first", "first", "second", "second", "third"}, got); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if len(reported) != 2 || !strings.Contains(reported[0], "is empty") {
		t.Errorf("reported %q, want each time that it went bad, once", reported)
	}
}
