package call_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drydock/workflows/call"
)

// notWatches are long activities that a worker that starts leaves to the one that carries them out: they act, or end soon by themselves.
var notWatches = map[string]string{
	"AwaitOutOfService": acts,
	"AwaitPreflight":    "a maintenance that waits for it notices a lost worker after ten seconds",
	"AwaitWork":         acts,
	"CallHook":          acts,
	"Heal":              acts,
	"KeepRecord":        acts,
	"Look":              readsOnce,
	"Query":             readsOnce,
	"TakeInventory":     readsOnce,
	"WaitForPods":       "a maintenance that waits for it notices a lost worker after ten seconds",
}

const (
	acts      = "it acts"
	readsOnce = "it reads once and ends"
)

// watching are names of activities that watch, wherever they are named and however they are called.
var watching = regexp.MustCompile(`^(Watch|Await|Evaluate|Follow)`)

// TestEveryWatchIsListed reads the workflows: an activity that is named in a function which calls one by Long or Beating, or whose name
// says that it watches, is one of Watches or of notWatches.
func TestEveryWatchIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, w := range call.Watches() {
		listed[w.ActivityType()] = true
	}
	named := longActivities(t)
	for name, where := range named {
		if _, not := notWatches[name]; listed[name] == not {
			t.Errorf("activity %s, which %s calls: listed as a watch is %t, and as none is %t", name, where, listed[name], not)
		}
	}
	for name := range listed {
		if named[name] == "" {
			t.Errorf("no workflow calls %s as a long activity", name)
		}
	}
	for name := range notWatches {
		if named[name] == "" {
			t.Errorf("no workflow calls %s as a long activity: it need not be listed", name)
		}
	}
}

// longActivities are the names of activities, and where each is named.
func longActivities(t *testing.T) map[string]string {
	t.Helper()
	named := map[string]string{}
	set := token.NewFileSet()
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "call"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			readCalls(d, path, named)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return named
}

// readCalls takes the activities that a declaration names as call.STUB.NAME.
func readCalls(d ast.Decl, path string, named map[string]string) {
	long := false
	var names []string
	ast.Inspect(d, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		switch of := s.X.(type) {
		case *ast.Ident:
			long = long || of.Name == "call" && (s.Sel.Name == "Long" || s.Sel.Name == "Beating")
		case *ast.SelectorExpr:
			if from, ok := of.X.(*ast.Ident); ok && from.Name == "call" {
				names = append(names, s.Sel.Name)
			}
		}
		return true
	})
	for _, name := range names {
		if long || watching.MatchString(name) {
			named[name] = path
		}
	}
}
