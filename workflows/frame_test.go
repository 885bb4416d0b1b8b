package workflows_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWorkflowsOnTheFrameHaveNoLoopOfTheirOwn: they wait, set timers, and take messages by the frame alone.
func TestWorkflowsOnTheFrameHaveNoLoopOfTheirOwn(t *testing.T) {
	var found []string
	for folder, source := range readSources(t) {
		if folder == "register.go" || folder == "controller" || !strings.Contains(source, `"drydock.dev/drydock/workflows/controller"`) {
			continue
		}
		found = append(found, folder)
		if folder != "announce" && !strings.Contains(testsOf(t, folder), "controllertest.Again(") {
			t.Errorf("%s: no test decides with controllertest.Again, which looks at its state too", folder)
		}
		for _, call := range []string{
			"Await", "NewTimer", "Sleep", "Go(", "GoNamed", "NewSelector", "GetSignalChannel", "SetUpdateHandler", "SetQueryHandler",
			"ExecuteActivity", "ExecuteChildWorkflow", "SignalExternalWorkflow", "NewContinueAsNewError", "Now(",
		} {
			if strings.Contains(source, "workflow."+call) {
				t.Errorf("%s calls workflow.%s: that is the frame's", folder, call)
			}
		}
	}
	for _, folder := range []string{"health", "lockstep", "plan", "profile", "remediation"} {
		if !slices.Contains(found, folder) {
			t.Errorf("%s does not run on the frame", folder)
		}
	}
}

// testsOf is the source of a folder's tests.
func testsOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(source)
	}
	return all.String()
}
