package api_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/docs/schemas"
)

// TestTheReferenceListsEventsAndAttributes keeps the reference's tables of them what is declared; UPDATE_GOLDEN=1 writes them.
func TestTheReferenceListsEventsAndAttributes(t *testing.T) {
	events, attributes := "| Event | recorded when |\n| --- | --- |\n", "| search attribute | what it has |\n| --- | --- |\n"
	for _, e := range api.NodeEvents {
		events += fmt.Sprintf("| `%s` | %s |\n", e.Reason, e.Meaning)
	}
	for _, a := range api.SearchAttributes {
		attributes += fmt.Sprintf("| `%s` | %s |\n", a.Name, a.Meaning)
	}
	listed(t, "maintenance", "events on nodes", events)
	listed(t, "commands", "search attributes", attributes)
}

// listed keeps a table of a page of the reference, between two comments, what is declared.
func listed(t *testing.T, page, name, table string) {
	t.Helper()
	file := "../docs/reference/" + page + ".md"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := fmt.Sprintf("<!-- %s: made of package api -->\n", name), fmt.Sprintf("<!-- end of %s -->\n", name)
	before, rest, found := strings.Cut(string(content), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no %q up to %q", file, begin, end)
	}
	published(t, file, before+begin+schemas.Linked(table, page)+end+after)
}

// TestEventsOnNodesAreDeclared refuses a reason that is written where an Event is recorded, and a phase whose Event has no row.
func TestEventsOnNodesAreDeclared(t *testing.T) {
	literal := regexp.MustCompile(`nodeevent\.Event\{[^}]*Reason:\s*"|\.warn\([^,()]+(?:\(\))?, "`)
	for _, folder := range []string{"../activities", "../workflows"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.Name() == "testdata":
				return filepath.SkipDir
			case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			content, err := os.ReadFile(path)
			if found := literal.Find(content); found != nil {
				t.Errorf("%s has a reason that is not in NodeEvents: %s", path, found)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	declared := map[api.EventReason]bool{}
	for _, e := range api.NodeEvents {
		if declared[e.Reason] {
			t.Errorf("%s has two rows", e.Reason)
		}
		declared[e.Reason] = true
	}
	for _, phase := range []api.Phase{
		api.Cordoned, api.Draining, api.Ready, api.RequestorFailed, api.Validating, api.Completed, api.Cancelled, api.Failed, api.NodeGone,
	} {
		if !declared[api.EventOfPhase(phase)] {
			t.Errorf("there is no Event of the phase %s", phase)
		}
	}
}
