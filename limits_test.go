package drydock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What a reader can take in at once, tests apart.
const (
	maxFields        = 15
	maxMethods       = 25
	maxFunctionLines = 60
	maxFileLines     = 400
)

// part is a struct with behaviour, as far as its package was read.
type part struct {
	at              token.Position
	fields, methods int
	// data is what is decoded or shown: inputs, payloads, statuses and configuration, which are as long as what they say.
	data bool
}

// TestNothingIsTooLargeToRead keeps files, functions and structs small.
func TestNothingIsTooLargeToRead(t *testing.T) {
	parts := map[string]*part{}
	set := token.NewFileSet()
	for _, path := range sources(t) {
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		if lines := set.File(file.Pos()).LineCount(); lines > maxFileLines {
			t.Errorf("%s has %d lines: more than %d", path, lines, maxFileLines)
		}
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				if lines := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1; lines > maxFunctionLines {
					t.Errorf("%s: %s has %d lines: more than %d", set.Position(d.Pos()), d.Name.Name, lines, maxFunctionLines)
				}
				if receiver := receiverOf(d); receiver != "" {
					partOf(parts, path, receiver).methods++
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if spec, ok := s.(*ast.TypeSpec); ok {
						readStruct(set, parts, path, spec)
					}
				}
			}
		}
	}
	for name, p := range parts {
		if !p.data && p.methods > 0 && (p.fields > maxFields || p.methods > maxMethods) {
			t.Errorf("%s: %s has %d fields and %d methods: more than %d and %d", p.at, name, p.fields, p.methods, maxFields, maxMethods)
		}
	}
}

// sources are the Go files of the repository, tests apart.
func sources(t *testing.T) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != "." && strings.HasPrefix(entry.Name(), ".") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !isForTests(path) {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 100 {
		t.Fatalf("only %d sources found", len(paths))
	}
	return paths
}

// isForTests tells the packages that only tests use: k8stest, workflowtest and others of such a name.
func isForTests(path string) bool {
	return slices.ContainsFunc(strings.Split(filepath.ToSlash(path), "/"), func(folder string) bool {
		return folder != "test" && strings.HasSuffix(folder, "test") && !strings.HasSuffix(folder, "_test")
	})
}

func partOf(parts map[string]*part, path, name string) *part {
	key := filepath.Dir(path) + "." + name
	if parts[key] == nil {
		parts[key] = &part{}
	}
	return parts[key]
}

func readStruct(set *token.FileSet, parts map[string]*part, path string, spec *ast.TypeSpec) {
	s, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	p := partOf(parts, path, spec.Name.Name)
	p.at, p.fields = set.Position(spec.Pos()), s.Fields.NumFields()
	p.data = slices.ContainsFunc(s.Fields.List, func(f *ast.Field) bool { return f.Tag != nil })
}

func receiverOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) != 1 {
		return ""
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
