package starter

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"drydock/rules/preflight"
)

func stoppedReport() preflight.Report {
	return preflight.Report{
		Node: "worker-01", Mode: "evict",
		Counts: map[preflight.Action]int{preflight.Evict: 2, preflight.Skip: 1, preflight.Refuse: 1},
		Pods: []preflight.Pod{
			{Pod: "default/bare", Tier: 1, Action: preflight.Refuse, Reason: "NoController", Message: "consent with force"},
			{Pod: "default/db-0", Tier: 1, Action: preflight.Evict, Budgets: []string{"default/db"}},
			{Pod: "kube-system/agent", Action: preflight.Skip, Reason: "DaemonSet", Message: "belongs to a DaemonSet"},
		},
		MorePods: 1,
		Budgets:  []preflight.Budget{{Budget: "default/db", Healthy: 1, Desired: 1, Pods: 1, OnNode: 1, Impossible: true}},
		Room:     &preflight.Room{Nodes: 3, Pods: 2},
		Problems: []preflight.Finding{
			{Code: preflight.MissingConsent, Object: "pod default/bare", Message: "consent with force"},
			{Code: preflight.ImpossibleBudget, Object: "budget default/db", Message: "as it is written it never allows one"},
		},
		Warnings:     []preflight.Finding{{Code: preflight.NodeNotReady, Object: "node worker-01", Message: "it is not Ready"}},
		MoreProblems: 3,
	}
}

func TestPreflightTable(t *testing.T) {
	golden(t, "preflight", func(w io.Writer) {
		renderPreflights(w, []preflight.Report{stoppedReport(), {Node: "worker-02"}})
	})
}

func TestPreflightExitCode(t *testing.T) {
	fine := preflight.Report{Node: "worker-02"}
	for name, c := range map[string]struct {
		reports []preflight.Report
		want    int
	}{
		"fine":          {[]preflight.Report{fine}, exitOK},
		"one is not":    {[]preflight.Report{fine, stoppedReport()}, exitWouldStop},
		"warnings only": {[]preflight.Report{{Warnings: stoppedReport().Warnings}}, exitOK},
	} {
		if got := preflightCode(c.reports); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if !strings.Contains(exitCodesHelp, fmt.Sprintf("\n  %d    preflight", exitWouldStop)) {
		t.Error("the help does not say which")
	}
}

func TestPreflightTakesTheFlagsOfStart(t *testing.T) {
	a := newApp(Process{Args: []string{"drydock"}})
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
