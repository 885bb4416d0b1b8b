package terminal

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/document"
)

// full is a disk with room for some writes.
type full struct{ room int }

var errFull = errors.New("no space left on device")

func (f *full) Write(p []byte) (int, error) {
	if f.room--; f.room < 0 {
		return 0, errFull
	}
	return len(p), nil
}

// A table that is cut is an error, as JSON that is cut is one.
func TestATableThatCannotBeWrittenIsAnError(t *testing.T) {
	var d document.Document
	d.Fact("Records", "7")
	d.Fact("Verdict", "intact")
	for _, format := range []string{FormatTable, FormatWide, FormatJSON, FormatYAML} {
		o := Output{Format: format}
		if err := o.Write(&full{}, d, d); !errors.Is(err, errFull) {
			t.Errorf("-o %s: %v", format, err)
		}
	}
	o := Output{Format: FormatTable}
	var long document.Document
	for range 1000 { // more than is written at once
		long.Fact("Records", strings.Repeat("7", 20))
	}
	if err := o.Write(&full{room: 1}, long, long); !errors.Is(err, errFull) {
		t.Errorf("after a line: %v", err)
	}
	var out bytes.Buffer
	if err := o.Write(&out, d, d); err != nil || out.String() != "Records:  7\nVerdict:  intact\n" {
		t.Errorf("%v, %q", err, out.String())
	}
}
