package migrate

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/kinds"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/migration"
	"drydock.dev/drydock/rules/spec"
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
		"not for --from sap, which has rules of its own":         {"--from", "sap", "--shadow", "--max-parallel", "2"},
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

// Work that a worker refuses would keep it from its start.
func TestAWorkerTakesTheWrittenWork(t *testing.T) {
	at := t.TempDir()
	system, err := migration.Of(migration.UpgradeController, migration.Given{})
	if err != nil {
		t.Fatal(err)
	}
	var o unstructured.Unstructured
	plan := `{apiVersion: upgrade.cattle.io/v1, kind: Plan, metadata: {name: os, namespace: system-upgrade}, spec: {concurrency: 1, nodeSelector: {matchLabels: {a: b}},
		secrets: [{name: token, defaultMode: 493}], prepare: {image: a}, upgrade: {image: b, volumes: [{name: c, source: /c, destination: /d}]}}}`
	if err := yaml.Unmarshal([]byte(plan), &o.Object); err != nil {
		t.Fatal(err)
	}
	report := system.Report(migration.Cluster{Objects: map[schema.GroupVersionResource][]unstructured.Unstructured{system.Reads()[0]: {o}}})
	if err := write(at, report.Inputs); err != nil || len(report.Inputs) != 3 {
		t.Fatalf("%v, %+v", err, report)
	}
	text, err := os.ReadFile(filepath.Join(at, "worker.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var c checks.Config
	config, err := yaml.YAMLToJSONStrict([]byte(strings.ReplaceAll(string(text), "/etc/drydock", at)))
	if err == nil {
		err = errors.Join(spec.DecodeStrict(config, &c), c.Decode(kinds.All()))
	}
	if err == nil {
		_, err = checks.New(c, k8stest.NewFake(), "test")
	}
	if err != nil {
		t.Error(err)
	}
}

// Nothing is overwritten.
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
