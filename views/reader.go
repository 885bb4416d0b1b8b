// Package views has what people see of maintenances, plans, health checks, profiles and the scheduler: a document each, drawn in a terminal
// and in the Temporal UI alike.
package views

import (
	"fmt"
	"regexp"
	"time"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/moment"
	"drydock.dev/drydock/rules/period"
)

// Reader is who reads a view.
type Reader struct {
	// now is the present moment, in the reader's zone.
	now time.Time
	// brief: the view stays as it is while time goes on, and is small.
	brief bool
	// requestor is whom commands name; they name nobody where it is empty.
	requestor string
}

// At is a reader at a moment, who sees all there is, with times in the zone of now.
func At(now time.Time) Reader { return Reader{now: now} }

// Naming is the reader of commands that name a requestor, as they have to where a node has several maintenances.
func (r Reader) Naming(requestor string) Reader {
	r.requestor = requestor
	return r
}

// Brief is a reader of the details of a workflow in the Temporal UI: times are in UTC, ages are times, and lists and what people wrote are
// cut.
func Brief() Reader { return Reader{brief: true} }

const (
	// briefList bounds the entries of a list in a brief view, briefMessages the messages, briefText the bytes of what somebody wrote.
	briefList     = 20
	briefMessages = 5
	briefText     = 200
	// mostWarnings bounds the warnings of any view.
	mostWarnings = 20
)

// heading is the title of a table that has none in a terminal. In Markdown it keeps two lists apart.
func (r Reader) heading(title string) string {
	if r.brief {
		return title
	}
	return ""
}

// at writes a moment.
func (r Reader) at(t time.Time) string {
	if r.brief {
		return t.UTC().Format("2006-01-02 15:04:05Z")
	}
	return moment.Clock(t, r.now)
}

// ago writes a moment with how long ago it was.
func (r Reader) ago(t time.Time) string {
	if r.brief {
		return r.at(t)
	}
	return fmt.Sprintf("%s, %s ago", r.at(t), period.Age(r.now.Sub(t)))
}

// in writes a moment with how long it is until then.
func (r Reader) in(t time.Time) string {
	if r.brief {
		return r.at(t)
	}
	return fmt.Sprintf("%s (in %s)", r.at(t), period.Age(t.Sub(r.now)))
}

// age is how long ago a moment was, or in a brief view the moment.
func (r Reader) age(t time.Time) string {
	if r.brief {
		return r.at(t)
	}
	return period.Age(r.now.Sub(t))
}

// since is the age of what began at a moment; empty for no moment.
func (r Reader) since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return r.age(t)
}

// words is a program's text with the moments in it as the reader has them, and gangs by the names of their plans alone.
func (r Reader) words(text string) string {
	return moment.InText(gangOfRun.ReplaceAllString(text, "$1"), r.at)
}

// gangOfRun is a gang's name with the run that makes it that of no other gang, which tells a person nothing.
var gangOfRun = regexp.MustCompile(`(\bgang [^\s/]+)/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`)

// said is a text that somebody wrote.
func (r Reader) said(text string) string {
	if r.brief {
		return bounds.Cut(text, briefText)
	}
	return text
}

// first are the first entries of a list that the reader sees, with how many of those are left out.
func first[T any](r Reader, all []T) (some []T, more int) {
	if r.brief && len(all) > briefList {
		return all[:briefList], len(all) - briefList
	}
	return all, 0
}

// last are the last entries of a list, or in a brief view the latest messages, the newest first.
func last[T any](r Reader, all []T) []T {
	if !r.brief {
		return all
	}
	var some []T
	for i := len(all) - 1; i >= max(0, len(all)-briefMessages); i-- {
		some = append(some, all[i])
	}
	return some
}

// warn adds a line for each of some warnings.
func warn(d *document.Document, r Reader, warnings ...string) {
	shown := min(mostWarnings, len(warnings))
	for _, text := range warnings[:shown] {
		d.Line("Warning: %s", r.words(text))
	}
	if len(warnings) > shown {
		d.Line("%s", document.AndMore(len(warnings)-shown))
	}
}

// colon puts a colon before a text that is not empty.
func colon(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
