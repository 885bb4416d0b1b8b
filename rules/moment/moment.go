// Package moment is how people read a point in time: in their own zone, which is always named.
package moment

import (
	"regexp"
	"time"
)

// Clock is a time of the day of now, or with its date another day's, in the zone of now. It is empty for no time.
func Clock(t, now time.Time) string {
	t = t.In(now.Location())
	switch {
	case t.IsZero():
		return ""
	case t.Year() == now.Year() && t.YearDay() == now.YearDay():
		return t.Format("15:04:05 MST")
	default:
		return t.Format("2006-01-02 15:04:05 MST")
	}
}

// Dated is a time with its date and the offset of its zone, in the zone of now, for what leaves the machine: elsewhere a
// zone's letters may mean another one. It is empty for no time.
func Dated(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(now.Location()).Format("2006-01-02 15:04:05 -07:00")
}

// written is how programs write a time within a text.
var written = regexp.MustCompile(`\b\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})`)

// InText is a program's text with the RFC 3339 times in it shown as show does.
func InText(text string, show func(time.Time) string) string {
	return written.ReplaceAllStringFunc(text, func(found string) string {
		t, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return show(t)
	})
}
