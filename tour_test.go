package drydock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// section is the text of a page under a heading of the second level.
func section(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// declares reports whether a file declares a function, "Name" or "Type.Name".
func declares(t *testing.T, file, name string) bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return true
	}
	return slices.ContainsFunc(parsed.Decls, func(d ast.Decl) bool {
		f, ok := d.(*ast.FuncDecl)
		return ok && functionName(f) == name
	})
}

// functionName is a function's name, with the type that a method is of.
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if named, ok := of.(*ast.Ident); ok {
		return named.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

var (
	// stops are the files and functions of the tour.
	stops = regexp.MustCompile("\\[([^\\]]+\\.go)\\]\\(\\.\\./([^)]+)\\)(?:\\s+`([^`]+)`)?")
	// roomsOf are the rooms that a paragraph of the tour is about.
	roomsOf = regexp.MustCompile(`\*\*([a-z0-9]+)/\*\*`)
	// aside are the rooms that no maintenance comes through.
	aside = []string{"deploy", "docs", "examples", "tools"}
)

// Each file and function that the tour leads to exists, and the tour leads through every room.
func TestTheTourLeadsThroughEveryRoom(t *testing.T) {
	tour := section(t, "docs/architecture.md", "A tour")
	all := stops.FindAllStringSubmatch(tour, -1)
	if len(all) < 30 {
		t.Errorf("the tour has %d stops only", len(all))
	}
	for _, stop := range all {
		switch text, file, function := stop[1], stop[2], stop[3]; {
		case text != file:
			t.Errorf("the link to %s says %s", file, text)
		case function == "":
			t.Errorf("%s: which function is to be read?", file)
		case !declares(t, file, function):
			t.Errorf("%s has no function %s", file, function)
		}
	}
	var visited []string
	for _, room := range roomsOf.FindAllStringSubmatch(tour, -1) {
		visited = append(visited, room[1])
	}
	for path := range packagesIn(t, ".") {
		if in := strings.Split(room(path), "/")[0]; path != product && !slices.Contains(visited, in) && !slices.Contains(aside, in) {
			t.Errorf("the tour leaves out %s/", in)
			visited = append(visited, in) // said once
		}
	}
}
