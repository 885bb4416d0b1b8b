package terminal

import (
	"testing"
)

func TestOneLineKeepsTheTerminalSafe(t *testing.T) {
	if got, want := OneLine("a\nb\tc\x1b[2Jd\u009be\u00fc"), "a b c[2Jde\u00fc"; got != want {
		t.Errorf("oneLine = %q, want %q", got, want)
	}
}
