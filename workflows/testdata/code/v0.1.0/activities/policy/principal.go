package policy

import (
	"drydock.dev/drydock/workflows/testdata/code/v0.1.0/api"
	"strings"
)

const (
	// maxText bounds what of a word is compared and judged, in bytes, and a principal.
	maxText = 1024
	// pageSize and maxPages bound the part of a history in which a message is looked for.
	pageSize = 200
	maxPages = 50
)

// Word is a message by which it is found in the history.
type Word struct {
	Name    string `json:"name"`
	By      string `json:"by,omitempty"`
	Comment string `json:"comment,omitempty"`
	Run     string `json:"run,omitempty"`
}

// WordOf is what of a message is judged.
func WordOf(name string, p api.Simple) Word {
	return Word{Name: name, By: cut(p.By), Comment: cut(p.Comment), Run: cut(p.Run)}
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "")
}
