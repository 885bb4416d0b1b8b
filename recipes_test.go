package drydock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// spans are the texts that a recipe sets as code.
	spans = regexp.MustCompile("`([^`]+)`")
	// declaredIn are names with the file that declares them.
	declaredIn = regexp.MustCompile("`([\\w.]+)`\\s+(?:as\\s+)?in\\s+`([^`]+\\.go)`")
	// Commands that a recipe names, of go, make and drydock.
	goTest    = regexp.MustCompile(`^(UPDATE_GOLDEN=1 )?go test \./(\S+)$`)
	makeGoal  = regexp.MustCompile(`^make ([\w-]+)$`)
	ofDrydock = regexp.MustCompile(`^drydock ([\w-]+)`)
	name      = regexp.MustCompile(`^\w+(\.\w+)?$`)
	steps     = regexp.MustCompile(`(?m)^\d+\. `)
)

// recipes are those of CONTRIBUTING.md by what they add.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, text := range strings.Split(section(t, "CONTRIBUTING.md", "How to add ..."), "\n### ")[1:] {
		title, steps, _ := strings.Cut(text, "\n")
		all[title] = steps
	}
	delete(all, "Anything else")
	return all
}

// Whoever follows a recipe finds each file, folder, declaration and command that it names.
func TestRecipesNameWhatThereIs(t *testing.T) {
	all := recipes(t)
	for _, what := range []string{"A field", "A message", "A kind of channel", "A kind of check", "A workflow"} {
		if len(steps.FindAllString(all[what], -1)) < 3 {
			t.Errorf("there is no recipe %q with its steps", what)
		}
	}
	for what, recipe := range all {
		for _, pair := range declaredIn.FindAllStringSubmatch(recipe, -1) {
			if !slices.Contains(declarations(t, pair[2]), pair[1]) {
				t.Errorf("%s: %s is not declared in %s", what, pair[1], pair[2])
			}
		}
		beside := besideFilesOf(t, recipe)
		for _, span := range spans.FindAllStringSubmatch(recipe, -1) {
			if wrong := isNot(t, span[1], beside); wrong != "" {
				t.Errorf("%s: `%s`: %s", what, span[1], wrong)
			}
		}
	}
}

// isNot says what is wrong with a text that a recipe sets as code; beside are the declarations next to the files that it names.
func isNot(t *testing.T, span string, beside []string) (wrong string) {
	t.Helper()
	test, goal, command := goTest.FindStringSubmatch(span), makeGoal.FindStringSubmatch(span), ofDrydock.FindStringSubmatch(span)
	switch {
	case strings.Contains(span, `:"`): // a tag
	case test != nil && !hasTests(t, test[2], test[1] != ""):
		return "no test there would do that"
	case goal != nil && !hasLine(t, "Makefile", `^`+goal[1]+`:`):
		return "make has no such target"
	case command != nil && !hasCommand(t, command[1]):
		return "drydock has no such command"
	case test != nil, goal != nil, command != nil:
	case strings.Contains(span, "/"):
		if _, err := os.Stat(span); err != nil {
			return err.Error()
		}
	case !name.MatchString(span):
		return "it is none of: a path, a declaration, a tag, a command"
	case !slices.Contains(beside, span):
		return "no file of the packages that the recipe names declares it"
	}
	return ""
}

// besideFilesOf are the declarations of all files that lie next to one that a recipe names.
func besideFilesOf(t *testing.T, recipe string) (names []string) {
	t.Helper()
	for _, span := range spans.FindAllStringSubmatch(recipe, -1) {
		if filepath.Ext(span[1]) != ".go" {
			continue
		}
		files, err := filepath.Glob(filepath.Dir(span[1]) + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			names = append(names, declarations(t, file)...)
		}
	}
	return names
}

// declarations are what a file declares: constants, variables, types and functions, and methods as "Type.Name" and as "Name".
func declarations(t *testing.T, file string) (names []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Error(err)
		return nil
	}
	for _, d := range parsed.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names = append(names, d.Name.Name, functionName(d))
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

// hasTests reports whether a package has tests, and where it is to write golden files, one that does.
func hasTests(t *testing.T, folder string, golden bool) bool {
	t.Helper()
	files, err := filepath.Glob(folder + "/*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool { return !golden || hasLine(t, file, `UPDATE_GOLDEN`) })
}

// hasCommand reports whether drydock has a command of that name.
func hasCommand(t *testing.T, name string) bool {
	t.Helper()
	files, err := filepath.Glob("starter/*.go")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool { return hasLine(t, file, `\bUse:\s+"`+name+`[" ]`) })
}

func hasLine(t *testing.T, file, pattern string) bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?m)` + pattern).Match(text)
}
