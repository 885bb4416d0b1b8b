package starter

import (
	"fmt"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/preflight"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
)

func TestPreflightExitCode(t *testing.T) {
	fine := preflight.Report{Node: "worker-02"}
	for name, c := range map[string]struct {
		reports []preflight.Report
		want    int
	}{
		"fine":          {[]preflight.Report{fine}, exit.OK},
		"one is not":    {[]preflight.Report{fine, startertest.StoppedReport()}, exit.WouldStop},
		"warnings only": {[]preflight.Report{{Warnings: startertest.StoppedReport().Warnings}}, exit.OK},
	} {
		if got := exit.CodeOf(invocation.WouldStop(c.reports)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if !strings.Contains(exit.CodesHelp, fmt.Sprintf("\n  %d    preflight", exit.WouldStop)) {
		t.Error("the help does not say which")
	}
}

func TestPreflightTakesTheFlagsOfStart(t *testing.T) {
	a := invocation.New(invocation.Process{Args: []string{"drydock"}})
	start, command := newStart(a), newPreflight(a)
	for _, name := range []string{"file", "force", "pod-selector", "escalation", "reason", "requestor"} {
		if start.Flags().Lookup(name) == nil || command.Flags().Lookup(name) == nil {
			t.Errorf("--%s is missing", name)
		}
	}
	if !command.Flags().Lookup("reason").Hidden || command.Flags().Lookup("force").Hidden {
		t.Error("flags that say nothing about the drain are shown, or others are not")
	}
}
