package terminal

import (
	"strings"
	"time"
)

// OneLine keeps what comes from outside, such as reasons, from breaking a table or moving the cursor.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// Clock is a time of today, or with its date another day's, in the local time zone.
func Clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format(time.TimeOnly)
	}
	return t.Format(time.DateTime)
}

// Colon puts a colon before a text that is not empty.
func Colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
