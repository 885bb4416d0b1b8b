package drydock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a reader can take in at once, tests apart.
const (
	maxFunctionLines = 60
	maxFileLines     = 400
)

// maxFunctionFields is how many fields of structs have a function type. A reader of a call by such a field cannot go to what it
// does: a method, an interface of one or two methods, or a plain value can be found. Lower this when you replace one.
const maxFunctionFields = 36

// maxWorkflowLines is how many lines workflows/ has, tests apart. Lower it when you have removed many. Raise it, and say why in the commit,
// for what belongs into a workflow and nowhere else: what decides belongs into rules/, what acts into activities/.
const maxWorkflowLines = 21254

// lineStep is by how many lines workflows/ may shrink before maxWorkflowLines has to follow.
const lineStep = 200

// TestWorkflowsDoNotGrowUnnoticed keeps the number of their lines.
func TestWorkflowsDoNotGrowUnnoticed(t *testing.T) {
	set := token.NewFileSet()
	lines := 0
	for path, file := range sources(t, set) {
		if strings.HasPrefix(filepath.ToSlash(path), "workflows/") {
			lines += set.File(file.Pos()).LineCount()
		}
	}
	switch {
	case lines > maxWorkflowLines:
		t.Errorf("workflows/ has %d lines: more than %d", lines, maxWorkflowLines)
	case lines < maxWorkflowLines-lineStep:
		t.Errorf("workflows/ has %d lines only: lower maxWorkflowLines to that", lines)
	}
}

// TestNothingIsTooLargeToRead keeps files and functions small.
func TestNothingIsTooLargeToRead(t *testing.T) {
	set := token.NewFileSet()
	for path, file := range sources(t, set) {
		if lines := set.File(file.Pos()).LineCount(); lines > maxFileLines {
			t.Errorf("%s has %d lines: more than %d", path, lines, maxFileLines)
		}
		for _, declared := range file.Decls {
			if d, ok := declared.(*ast.FuncDecl); ok {
				if lines := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1; lines > maxFunctionLines {
					t.Errorf("%s: %s has %d lines: more than %d", set.Position(d.Pos()), d.Name.Name, lines, maxFunctionLines)
				}
			}
		}
	}
}

// TestFunctionsAreMethods keeps the number of fields of function type.
func TestFunctionsAreMethods(t *testing.T) {
	set := token.NewFileSet()
	files := sources(t, set)
	named := functionTypes(files)
	var found []string
	for path, file := range files {
		if slices.Contains([]string{"lab", "deploy"}, strings.Split(filepath.ToSlash(path), "/")[0]) {
			continue // they test and measure Drydock
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.StructType); ok {
				for _, field := range s.Fields.List {
					if isFunction(field.Type, packageOf(path), named) {
						for range max(len(field.Names), 1) {
							found = append(found, set.Position(field.Pos()).String())
						}
					}
				}
			}
			return true
		})
	}
	slices.Sort(found)
	switch {
	case len(found) > maxFunctionFields:
		t.Errorf("%d fields are functions: more than %d:\n%s", len(found), maxFunctionFields, strings.Join(found, "\n"))
	case len(found) < maxFunctionFields:
		t.Errorf("only %d fields are functions: lower maxFunctionFields to that", len(found))
	}
}

// functionTypes are the named function types, as package and name. Functions that cancel a context are none: they have one
// implementation, which is not ours.
func functionTypes(files map[string]*ast.File) map[string]bool {
	named := map[string]bool{}
	for path, file := range files {
		for _, declared := range file.Decls {
			types, ok := declared.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range types.Specs {
				if spec, ok := s.(*ast.TypeSpec); ok {
					if _, ok := spec.Type.(*ast.FuncType); ok {
						named[packageOf(path)+"."+spec.Name.Name] = true
					}
				}
			}
		}
	}
	return named
}

// isFunction reports whether a type that a package names is a function, or a list or map of functions.
func isFunction(of ast.Expr, in string, named map[string]bool) bool {
	switch of := of.(type) {
	case *ast.FuncType:
		return true
	case *ast.Ident:
		return named[in+"."+of.Name]
	case *ast.SelectorExpr:
		from, ok := of.X.(*ast.Ident)
		return ok && named[from.Name+"."+of.Sel.Name]
	case *ast.MapType:
		return isFunction(of.Value, in, named)
	case *ast.ArrayType:
		return isFunction(of.Elt, in, named)
	case *ast.StarExpr:
		return isFunction(of.X, in, named)
	default:
		return false
	}
}

func packageOf(path string) string { return filepath.Base(filepath.Dir(path)) }

// maxParts is how many parts a maintenance has: its core's, and its own.
const maxParts = 12

// TestAMaintenanceHasFewParts counts the fields of core and maintenance that point to a part: embedded or named as their type.
func TestAMaintenanceHasFewParts(t *testing.T) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "workflows/maintenance/maintenance.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != "core" && spec.Name.Name != "maintenance" {
			return true
		}
		for _, field := range spec.Type.(*ast.StructType).Fields.List {
			if star, ok := field.Type.(*ast.StarExpr); ok {
				parts[star.X.(*ast.Ident).Name] = true
			}
		}
		return false
	})
	delete(parts, "core")  // the parts that it has count
	delete(parts, "state") // what goes to the next run is none
	if names := slices.Sorted(maps.Keys(parts)); len(names) != maxParts {
		t.Errorf("a maintenance has %d parts, want %d: %q", len(names), maxParts, names)
	}
}

// sources are the Go files of the repository by their path, tests apart.
func sources(t *testing.T, set *token.FileSet) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !isForTests(path) {
			files[path], err = parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d sources found", len(files))
	}
	return files
}

// isForTests reports whether a file is of a package that only tests use: k8stest, workflowtest and others of such a name.
func isForTests(path string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(folder string) bool {
		return folder != "test" && strings.HasSuffix(folder, "test") && !strings.HasSuffix(folder, "_test")
	})
}
