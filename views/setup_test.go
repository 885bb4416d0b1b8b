package views_test

import (
	"io"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/setup"
	"drydock.dev/drydock/starter/startertest"
	"drydock.dev/drydock/starter/terminal"
	"drydock.dev/drydock/views"
)

func TestAnOpenTemporalIsWarnedOf(t *testing.T) {
	for _, open := range []bool{true, false} {
		var out strings.Builder
		terminal.Show(&out, views.Setup(setup.Report{Address: "temporal:7233", Namespace: "fleet", Open: open}, false, "drydock"))
		const want = "WARNING: Temporal at temporal:7233 asks for no credentials: anyone who reaches it can evict pods"
		if got := out.String(); strings.Contains(got, want) != open || strings.Contains(got, "WARNING") != open {
			t.Errorf("open %t: %q", open, got)
		}
	}
}

func TestSetupTables(t *testing.T) {
	report := setup.Report{
		Address: "temporal:7233", Namespace: "fleet", Context: "prod", Server: "https://10.0.0.1:6443",
		Items: []setup.Item{
			{Kind: setup.Temporal, State: setup.Present, Text: "server 1.32.1"},
			{
				Kind: setup.Namespace, Name: "fleet", State: setup.Missing, Text: "it does not exist", Fix: setup.CreateNamespace,
				Commands: []string{"temporal operator namespace create --namespace fleet --retention 30d"},
			},
			{Kind: setup.Permissions, Name: "eviction", State: setup.Unknown, Text: "not known: forbidden", NextStep: "ask somebody who may impersonate the account"},
			{Kind: setup.Permissions, Name: "volumes", State: setup.Optional, Text: "not granted"},
			{Kind: setup.Permissions, Name: "hooks", State: setup.Optional, Text: "not granted"},
		},
	}
	startertest.GoldenInWidths(t, "setup", func(w io.Writer) { terminal.Show(w, views.Setup(report, false, "drydock")) })
	report.Items[1].Tried = "permission denied"
	startertest.Golden(t, "setup_refused", func(w io.Writer) { terminal.Show(w, views.Setup(report, true, "drydock")) })
	startertest.Golden(t, "setup_print", func(w io.Writer) { terminal.Show(w, views.SetupCommands(report)) })
	report.Items = report.Items[:1]
	startertest.Golden(t, "setup_there", func(w io.Writer) { terminal.Show(w, views.Setup(report, true, "drydock")) })
}
