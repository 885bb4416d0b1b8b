package document_test

import (
	"testing"

	"drydock.dev/drydock/rules/document"
)

func example() document.Document {
	d := document.Document{Title: "Maintenance of worker_01"}
	d.Fact("Phase", "Draining since noon")
	d.Fact("Failure", "")
	d.PaintedFact("Reason", document.Bad, "<kernel>")
	d.Line("Warning: a|b")
	pods := document.Table{Title: "Blocked by", Header: []string{"pod", "owner", "message"}, More: document.AndMore(2)}
	pods.Add("default/db-0", "", "budget *db*")
	pods.Add("", "", "budget all")
	d.Table(pods)
	warnings := document.Table{Title: "Warnings"}
	warnings.AddPainted(0, document.Bad, "no room", "in zone a")
	d.Table(warnings)
	d.Table(document.Table{Title: "Work"})
	d.Table(document.Table{Title: "Events", None: "none"})
	return d
}

func TestMarkdown(t *testing.T) {
	const want = `## Maintenance of worker\_01

- **Phase:** Draining since noon
- **Reason:** &lt;kernel&gt;

Warning: a\|b

### Blocked by

| pod | owner | message |
| --- | --- | --- |
| default/db-0 |  | budget \*db\* |
|  |  | budget all |

and 2 more

### Warnings

- no room; in zone a

### Events

none
`
	if got := document.Markdown(example()); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestDetails(t *testing.T) {
	const want = `**Maintenance of worker\_01**

- **Phase:** Draining since noon
- **Reason:** &lt;kernel&gt;

Warning: a\|b

Blocked by:

- default/db-0; message: budget \*db\*
  - message: budget all
- and 2 more

Warnings:

- no room; in zone a

Events:

none`
	if got := document.Details(example()); got != want {
		t.Errorf("got\n%s", got)
	}
}
