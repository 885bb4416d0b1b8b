package views

import (
	"fmt"
	"strings"
	"time"

	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/rules/number"
	"drydock.dev/drydock/rules/period"
)

// mostClaims bounds the nodes of a migration that are listed.
const mostClaims = 20

// Migration is what there is of a system that Drydock can take the place of, and what becomes of it. Written is where its files are, empty if
// they are nowhere.
func Migration(r migration.Report, written string) (d document.Document) {
	d.Fact("From", r.From)
	d.Table(lines("Found", r.Found))
	d.Table(lines("Before Drydock takes over", r.Problems))
	d.Table(settings("What becomes of its settings", r.Translated))
	d.Table(settings("What has no equal", r.Without))
	claims := document.Table{Title: "Nodes that it has out of service, or wants to take out", Header: []string{"node", "for", "state", "with Drydock"}, None: "none"}
	for _, c := range r.Claims[:min(len(r.Claims), mostClaims)] {
		claims.Add(c.Node, c.For, c.State, c.Becomes)
	}
	claims.More = document.AndMore(len(r.Claims) - len(claims.Rows))
	d.Table(claims)
	if len(r.Inputs) > 0 {
		files := make([]string, len(r.Inputs))
		for i, input := range r.Inputs {
			files[i] = input.File
		}
		where := "--write DIRECTORY writes them"
		if written != "" {
			where = "written to " + written
		}
		d.Paragraph("Files for Drydock: %s (%s).", strings.Join(files, ", "), where)
	}
	steps(&d, "To take over:", r.Take)
	steps(&d, "To go back:", r.Back)
	return d
}

func lines(title string, all []string) (t document.Table) {
	t.Title = title
	for _, line := range all {
		t.Add(line)
	}
	return t
}

func settings(title string, all []migration.Setting) document.Table {
	t := document.Table{Title: title, Header: []string{"setting", "value", "with Drydock"}}
	for _, s := range all {
		t.Add(s.Of, s.Value, s.Becomes)
	}
	return t
}

func steps(d *document.Document, title string, all []string) {
	d.Paragraph("%s", title)
	for _, step := range all {
		d.Command("  " + step)
	}
}

// Compared says in a line what a system has done with a node, and what Drydock would have done.
func Compared(c migration.Compared) string {
	waits := "Drydock would have let it wait"
	if c.Why != "" {
		waits += ": " + c.Why
	}
	text := ""
	switch c.Difference {
	case migration.Same:
		text = "taken, by Drydock too"
	case migration.Earlier:
		text = fmt.Sprintf("taken; Drydock would have taken it %s earlier", period.Text(c.By.Std().Round(time.Second)))
	case migration.Later:
		text = "taken; " + waits
	case migration.Sooner:
		text = "waits; Drydock would take it"
	case migration.Waits:
		text = "waits, with Drydock too: " + c.Why
	case migration.Gone:
		text = "not asked for any more; it was never taken"
	case migration.Before:
		text = "out of service since before"
	}
	if !c.Ended.IsZero() && c.Difference != migration.Gone {
		text = "given back (" + text + ")"
	}
	return fmt.Sprintf("%s for %s: %s", c.Node, c.For, text)
}

// differenceWords are the differences as people read their counts.
var differenceWords = map[migration.Difference]string{
	migration.Same:    "taken when Drydock would have taken it",
	migration.Earlier: "taken, and Drydock would have taken it earlier",
	migration.Later:   "taken, and Drydock would have let it wait",
	migration.Gone:    "not asked for any more before it was taken",
	migration.Before:  "out of service before the comparison began",
}

// Shadow sums up a comparison.
func Shadow(s *migration.Shadow, took time.Duration) (d document.Document) {
	t := document.Table{Title: "In " + period.Text(took.Round(time.Second)), None: "nothing has happened"}
	for _, difference := range migration.Differences() {
		if n := s.Counts[difference]; n > 0 {
			t.Add(number.Of(n, "node"), differenceWords[difference])
		}
	}
	if waiting, sooner := s.Waiting(); waiting > 0 {
		t.Add(number.Form(waiting, "node waits", "nodes wait"), fmt.Sprintf("Drydock would have taken %d of them", sooner))
	}
	d.Table(t)
	return d
}
