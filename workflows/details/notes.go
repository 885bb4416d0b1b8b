// Package details renders what the Temporal UI shows of a workflow's troubles and notes, as Markdown.
package details

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/markdown"
)

// shownNotes bounds the notes that are shown.
const shownNotes = 5

// Troubles renders each trouble as a paragraph; empty where there is none.
func Troubles(troubles []api.Trouble) string {
	var text strings.Builder
	for _, t := range troubles {
		fmt.Fprintf(&text, "\n\n**%s**: %s", markdown.Text(t.What), markdown.Text(t.Why))
	}
	return text.String()
}

// Notes renders the latest notes as a list, newest first; empty where there are none.
func Notes(notes []api.RecordedDecision) string {
	var text strings.Builder
	if len(notes) > 0 {
		text.WriteString("\n")
	}
	for i := len(notes) - 1; i >= max(0, len(notes)-shownNotes); i-- {
		fmt.Fprintf(&text, "\n- %s: %s", markdown.Text(notes[i].What), markdown.Text(notes[i].Why))
	}
	return text.String()
}
