package terminal

import (
	"bytes"
	"testing"
)

func TestPrefixerKeepsLinesWhole(t *testing.T) {
	var out bytes.Buffer
	p := &Prefixer{To: &out, Prefix: "[n] "}
	for _, part := range []string{"one\ntw", "o\n", "", "\nthr", "ee"} {
		if n, err := p.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatalf("Write(%q) = %d, %v", part, n, err)
		}
	}
	if want := "[n] one\n[n] two\n[n] \n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	p.Flush()
	p.Flush()
	if want := "[n] one\n[n] two\n[n] \n[n] three\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestPrefixerBoundsALineWithoutEnd(t *testing.T) {
	var out bytes.Buffer
	p := &Prefixer{To: &out, Prefix: "[n] "}
	if _, err := p.Write(bytes.Repeat([]byte("x"), maxLine+1)); err != nil {
		t.Fatal(err)
	}
	if out.Len() < maxLine {
		t.Errorf("%d bytes written, want the long line to be let go", out.Len())
	}
}
