package markdown_test

import (
	"testing"

	"drydock.dev/drydock/rules/markdown"
)

func TestTextsFromOutsideAreShownAsTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"worker-01: new firmware":              "worker-01: new firmware",
		"[click](https://evil.example)":        `\[click\](https\://evil.example)`,
		"www.evil.example":                     `www\.evil.example`,
		"<img src=x onerror=alert(1)>":         `&lt;img src=x onerror=alert(1)&gt;`,
		"**bold** _it_ `code` ~~x~~ a|b &amp;": "\\*\\*bold\\*\\* \\_it\\_ \\`code\\` \\~\\~x\\~\\~ a\\|b &amp;amp;",
		"one\n\n# two\u2028- three":            `one \# two\\u{2028}- three`,
		"# title":                              `\# title`,
		"- entry":                              `\- entry`,
		"1. first":                             `1\. first`,
		"12) twelfth":                          `12\) twelfth`,
		`a\b`:                                  `a\\b`,
		"":                                     "",
		"ü 😀":                                  "ü 😀",
	} {
		if got := markdown.Text(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
