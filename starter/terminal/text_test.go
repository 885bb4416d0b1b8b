package terminal

import (
	"bytes"
	"strings"
	"testing"
)

func TestOneLineKeepsTheTerminalSafe(t *testing.T) {
	if got, want := OneLine("a\nb\tc\x1b[2Jd\u009be\u00fc"), "a b c\\u{1b}[2Jd\\u{9b}e\u00fc"; got != want {
		t.Errorf("oneLine = %q, want %q", got, want)
	}
}

func TestALongNameIsBrokenWhereItMayBe(t *testing.T) {
	for text, want := range map[string]string{
		"short":                                "short",
		"shop/web-d5c649669-667df":             "shop/web-|d5c649669-|667df",
		"DisruptionBudget":                     "Disruption|Budget",
		"0123456789abcdefghij":                 "0123456789ab|cdefghij",
		"a-0123456789abcdef":                   "a-0123456789|abcdef",
		"the pod shop/web-d5c649669-667df is":  "the pod|shop/web-|d5c649669-|667df is",
		"  shop/web-d5c649669":                 "  shop/web-|  d5c649669",
		"日本語日本語日本語":                            "日本語日本語|日本語",
		"a text of words that need two breaks": "a text of|words that|need two|breaks",
	} {
		lines := wrap(text, 12)
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := wrap("日本語", 1); len(got) != 1 {
		t.Errorf("no room for a character: %q", got)
	}
}

func TestATextIsNarrowedBeforeANameIsBroken(t *testing.T) {
	var out bytes.Buffer
	r := NewRows(&Page{Writer: &out, Width: 60}, "  POD", "OWNER", "REASON", "SINCE", "MESSAGE")
	r.Add("  default/db-0", "-", "DisruptionBudget", "4m00s", "budget db allows 0 disruptions")
	r.Done()
	for _, whole := range []string{"default/db-0", "DisruptionBudget", "disruptions"} {
		if !strings.Contains(out.String(), whole) {
			t.Errorf("%q is broken:\n%s", whole, out.String())
		}
	}
}
