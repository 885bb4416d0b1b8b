package workflows_test

import (
	"slices"
	"strings"
	"testing"
)

// TestWorkflowsOnTheFrameHaveNoLoopOfTheirOwn: they wait, set timers, and take messages by the frame alone.
func TestWorkflowsOnTheFrameHaveNoLoopOfTheirOwn(t *testing.T) {
	var found []string
	for folder, source := range readSources(t) {
		if folder == "register.go" || folder == "controller" || !strings.Contains(source, `"drydock/workflows/controller"`) {
			continue
		}
		found = append(found, folder)
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
