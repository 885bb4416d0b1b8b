package views_test

import (
	"io"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/document"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/conf"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestProfilesOfNodes(t *testing.T) {
	all := []api.ProfileCount{
		{Profile: "flatcar", State: state.Required, Nodes: 2, Failing: 1}, {Profile: "os-patching", State: state.Operational, Nodes: 41},
		{Profile: "os-patching", State: state.Required, Nodes: 1}, {Profile: "os-patching", State: state.Maintenance, Nodes: 1},
	}
	startertest.GoldenInWidths(t, "profile_list", func(w io.Writer) {
		terminal.Show(w, views.ProfileNodes(api.ProfileNodes{Counts: all, Nodes: startertest.ProfileNodes()}, "", noon))
	})
	startertest.Golden(t, "profile_list_of_one", func(w io.Writer) {
		terminal.Show(w, views.ProfileNodes(api.ProfileNodes{Counts: all}, "flatcar", noon))
	})
}

func TestALintIsShown(t *testing.T) {
	report := profile.Report{
		Problems: []conf.Problem{{Path: "instances.notify[0] (s).config.hook", Text: "${HOOK} has no value", Next: "set the variable", Variable: "HOOK"}, {Text: "the file is a list"}},
		Warnings: []conf.Problem{{Path: "intervals.notify", Text: "it is of an older version, and ignored", Next: "write the interval into the schedule of each notification"}},
	}
	startertest.GoldenInWidths(t, "profile_lint", func(w io.Writer) { terminal.Show(w, views.ProfileLint("maintenance.yaml", report)) })
}

func TestTheProfilesOfANodeAreExplained(t *testing.T) {
	lines := []string{"worker-02 is in-maintenance", "  os-patching: in-maintenance since 2026-07-01T09:55:00Z", "      no  node_ready (condition): \x1b[2Jit is not there"}
	startertest.Golden(t, "profile_explain", func(w io.Writer) { terminal.Show(w, views.ProfileExplanation(lines, noon)) })
	startertest.Golden(t, "profile_explain_details", func(w io.Writer) {
		_, _ = io.WriteString(w, document.Details(views.ProfileExplanation(lines, views.Brief())))
	})
}
