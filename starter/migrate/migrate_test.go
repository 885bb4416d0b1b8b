package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/starter/invocation"
)

func TestFlagsThatDoNotGoTogether(t *testing.T) {
	for want, args := range map[string][]string{
		"missing --from SYSTEM":                                  {},
		"--from \"puppet\" is none of":                           {"--from", "puppet"},
		"--file: only for --from sap":                            {"--from", "kured", "--file", "a"},
		"--for, --max-parallel and --max-unavailable: only with": {"--from", "kured", "--for", "1h"},
		"--max-parallel: ":                                       {"--from", "kured", "--shadow", "--max-parallel", "some"},
		"--write: neither with --shadow nor with --back":         {"--from", "kured", "--back", "--write", "a"},
		"--shadow and --back: one of them":                       {"--from", "kured", "--back", "--shadow"},
		"\"-1s\" is negative":                                    {"--from", "kured", "--shadow", "--for", "-1s"},
		"no such file or directory":                              {"--from", "sap", "--file", "/nowhere/maintenance.yaml"},
		"--output \"xml\"":                                       {"--from", "kured", "-o", "xml"},
	} {
		cmd := New(&invocation.App{})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(args)
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}

// Files are written all or none, and nothing is overwritten.
func TestWhatIsThereIsNotOverwritten(t *testing.T) {
	at := filepath.Join(t.TempDir(), "new")
	files := []migration.Input{{File: "a.yaml", Text: "a"}, {File: "b.yaml", Text: "b"}}
	if err := write(at, files); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(at, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := write(at, files); err == nil || !strings.Contains(err.Error(), "b.yaml is there already, and nothing was written") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(at, "a.yaml")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
