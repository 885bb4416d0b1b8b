// Package visible shows the characters that nobody sees: those that move a cursor, turn the direction of the text around
// them or take no room, so that a text from outside cannot look like another.
package visible

import (
	"fmt"
	"strings"
	"unicode"
)

// hidden are the characters that are shown by their numbers, beside those of control.
var hidden = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x00ad, Hi: 0x00ad, Stride: 1},
		{Lo: 0x061c, Hi: 0x061c, Stride: 1},
		{Lo: 0x180e, Hi: 0x180e, Stride: 1},
		{Lo: 0x200b, Hi: 0x200f, Stride: 1},
		{Lo: 0x2028, Hi: 0x202e, Stride: 1},
		{Lo: 0x2060, Hi: 0x206f, Stride: 1},
		{Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
	},
	R32:         []unicode.Range32{{Lo: 0xe0000, Hi: 0xe007f, Stride: 1}}, // tags, which spell a text of their own
	LatinOffset: 1,
}

// Line is a text in one line: a line break or a tab becomes a space, and what nobody sees becomes its number, as in
// \u{202e}. A byte that is no UTF-8 becomes the replacement character.
func Line(text string) string {
	return Lines(strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		return r
	}, text))
}

// Lines is a text that keeps its line breaks and tabs.
func Lines(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(hidden, r)) {
			fmt.Fprintf(&out, `\u{%x}`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}
