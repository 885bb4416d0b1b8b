package visible_test

import (
	"testing"

	"drydock.dev/drydock/rules/visible"
)

func TestWhatNobodySeesIsShown(t *testing.T) {
	for text, want := range map[string]string{
		"plain ü 日本 😀":               "plain ü 日本 😀",
		"a\nb\tc\r\nd":               "a b c  d",
		"\x1b[2J\x00":                `\u{1b}[2J\u{0}`,
		"\x7f\u009b":                 `\u{7f}\u{9b}`,
		"txt\u202egpj":               `txt\u{202e}gpj`,
		"work\u200ber":               `work\u{200b}er`,
		"ad\u00admin":                `ad\u{ad}min`,
		"\u2061\u2064":               `\u{2061}\u{2064}`,
		"\u180e\U000e0041\U000e007f": `\u{180e}\u{e0041}\u{e007f}`,
		"\u2028\ufeff":               `\u{2028}\u{feff}`,
		"a\x9bb\xff":                 "a\ufffdb\ufffd",
		"":                           "",
	} {
		if got := visible.Line(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got, want := visible.Lines("a\n\tb\r\u2067"), "a\n\tb\\u{d}\\u{2067}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
