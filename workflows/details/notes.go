package details

import (
	"fmt"
	"strings"

	"drydock/api"
	"drydock/rules/markdown"
)

// shownNotes bounds what Notes shows.
const shownNotes = 5

// Troubles shows what fails as a paragraph each; empty where nothing does.
func Troubles(troubles []api.Trouble) string {
	var text strings.Builder
	for _, t := range troubles {
		fmt.Fprintf(&text, "\n\n**%s**: %s", markdown.Text(t.What), markdown.Text(t.Why))
	}
	return text.String()
}

// Notes shows the latest notes as a list, newest first; empty where there are none.
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
