package terminal

import (
	"time"

	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/visible"
)

// OneLine keeps what comes from outside, such as reasons, from breaking a table or moving the cursor.
func OneLine(text string) string { return visible.Line(text) }

// Clock is a time of today, or with its date another day's, in the local time zone, which it names.
func Clock(t, now time.Time) string { return moment.Clock(t, now) }

// Words is a text of the worker's with the times in it as Clock has them.
func Words(text string, now time.Time) string {
	return moment.InText(text, func(t time.Time) string { return moment.Clock(t, now) })
}

// Colon puts a colon before a text that is not empty.
func Colon(text string) string { return Prefixed(": ", text) }

// Prefixed puts a prefix before a text that is not empty.
func Prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
