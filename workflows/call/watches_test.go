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

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/workflows/call"
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

// TestEveryWatchIsListed reads the workflows: an activity that is named in a function which calls one by Long, or whose name
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
	eachSource(t, func(path string, file *ast.File) {
		for _, d := range file.Decls {
			readCalls(d, path, named)
		}
	})
	return named
}

// eachSource reads the sources of the workflows.
func eachSource(t *testing.T, read func(path string, file *ast.File)) {
	t.Helper()
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
		if err == nil {
			read(path, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
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
			long = long || of.Name == "call" && s.Sel.Name == "Long"
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

// workflowsOnTheFrame are the types of the workflows that have watches of the frame, by folder.
var workflowsOnTheFrame = map[string]string{
	"health": api.HealthCheckType, "lockstep": api.LockstepType, "plan": api.MaintenancePlanType, "profile": api.ProfilesType,
	"remediation": api.NodeRemediationType,
}

// TestEveryWatchOfTheFrameIsListed: one that heartbeats is one of Watches under the type of the workflow that decides on it.
func TestEveryWatchOfTheFrameIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, w := range call.Watches() {
		listed[w.Workflow+" "+w.ActivityType()] = true
	}
	found := 0
	eachSource(t, func(path string, file *ast.File) {
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			for _, watch := range watchesIn(literal) {
				name, long := activityOf(watch)
				switch kind := workflowsOnTheFrame[filepath.Base(filepath.Dir(path))]; {
				case name == "":
					t.Errorf("%s: a controller.Watch does not spell out its Call: controller.Call{Func: ...}", path)
				case long && !listed[kind+" "+name]:
					t.Errorf("%s: %s of %q is not one of call.Watches", path, name, kind)
				case long:
					found++
				}
			}
			return true
		})
	})
	if found < len(workflowsOnTheFrame) {
		t.Errorf("found only %d watches", found)
	}
}

// watchesIn are the controller.Watch that a literal is, or that it lists without their type.
func watchesIn(literal *ast.CompositeLit) (watches []*ast.CompositeLit) {
	if isOfFrame(literal.Type, "Watch") {
		return []*ast.CompositeLit{literal}
	}
	list, ok := literal.Type.(*ast.ArrayType)
	if !ok || !isOfFrame(list.Elt, "Watch") {
		return nil
	}
	for _, e := range literal.Elts {
		if one, ok := e.(*ast.CompositeLit); ok && one.Type == nil {
			watches = append(watches, one)
		}
	}
	return watches
}

func isOfFrame(of ast.Expr, name string) bool {
	s, ok := of.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	from, ok := s.X.(*ast.Ident)
	return ok && from.Name == "controller"
}

// activityOf returns the activity of a watch, and whether it heartbeats; the name is empty if that cannot be read.
func activityOf(watch *ast.CompositeLit) (name string, long bool) {
	called, ok := fieldOf(watch, "Call").(*ast.CompositeLit)
	if !ok || !isOfFrame(called.Type, "Call") {
		return "", false
	}
	stub, ok := fieldOf(called, "Func").(*ast.SelectorExpr)
	if !ok {
		return "", false
	}
	return stub.Sel.Name, fieldOf(called, "Heartbeat") != nil
}

// fieldOf is the value of a field in a literal, nil if it is not there.
func fieldOf(literal *ast.CompositeLit, name string) ast.Expr {
	for _, e := range literal.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok && key.Name == name {
				return pair.Value
			}
		}
	}
	return nil
}
