package workflows_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// waiters are the packages that may wait, begin and receive by themselves: the frame and what it is made of, procedures, and the workflows
// of v0.1.0, whose histories have to replay.
var waiters = []string{
	"controller", "inbox", "reset",
	"auditrecord", "doctor", "permissions", "planrun", "preflight", "profilereport", "profiletransition", "windows",
	"maintenance", "notification", "scheduler",
}

// waits matches what a workflow has of its own that the frame does for others.
var waits = regexp.MustCompile(`\bworkflow\.(Await\w*|Sleep|NewTimer\w*|Go|GoNamed|New\w*(Selector|Channel|WaitGroup|Mutex|Semaphore)\w*|` +
	`GetSignalChannel\w*|Set(Update|Query|Signal)Handler\w*|Execute\w+|SignalExternalWorkflow|RequestCancelExternalWorkflow|` +
	`NewContinueAsNewError\w*|Now)\b`)

// TestOnlyTheFrameAndProceduresWait: other packages wait, set timers, and take messages by the frame alone.
func TestOnlyTheFrameAndProceduresWait(t *testing.T) {
	found := map[string]bool{}
	sources := readSources(t)
	delete(sources, "testdata") // code of earlier releases
	for folder, source := range sources {
		calls := waits.FindAllString(source, -1)
		switch found[folder] = len(calls) > 0; {
		case found[folder] && !slices.Contains(waiters, folder):
			t.Errorf("%s calls %q: that is the frame's. A procedure, which does one thing after the other, is added to waiters", folder, calls)
		case !found[folder] && slices.Contains(waiters, folder):
			t.Errorf("%s does not wait by itself: remove it from waiters", folder)
		}
	}
	for _, folder := range waiters {
		if _, there := found[folder]; !there {
			t.Errorf("there is no %s: remove it from waiters", folder)
		}
	}
}

// TestWorkflowsOnTheFrameDecideTwice: each has a test that decides with controllertest.Again, which looks at its state too.
func TestWorkflowsOnTheFrameDecideTwice(t *testing.T) {
	var found []string
	for folder, source := range readSources(t) {
		if folder == "register.go" || folder == "controller" || folder == "announce" ||
			!strings.Contains(source, `"drydock.dev/drydock/workflows/controller"`) {
			continue
		}
		if found = append(found, folder); !strings.Contains(testsOf(t, folder), "controllertest.Again(") {
			t.Errorf("%s: no test decides with controllertest.Again", folder)
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
