package views

import (
	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
)

// Notes are what a workflow has decided: in a brief view the latest.
func Notes(all []api.RecordedDecision, r Reader) document.Table {
	t := document.Table{Title: "Notes", Header: []string{"at", "note"}}
	if r.brief {
		t.Title = "Notes, the latest first"
	}
	for _, n := range last(r, all) {
		t.Add(r.at(n.At), r.words(n.What+colon(n.Why)))
	}
	return t
}

// Troubles has a line for each thing that fails and is tried again.
func Troubles(d *document.Document, all []api.Trouble, r Reader) {
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = t.String()
	}
	warn(d, r, texts...)
}
