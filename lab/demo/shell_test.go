package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestCommandsCanBePasted(t *testing.T) {
	words := []string{"rollout", "--reason", "kernel 6.12", "--", "a'b", "{node}", `$HOME "x" \`, "", "*", "~", "KUBECONFIG=/a b"}
	out, err := exec.Command("sh", "-c", `printf '%s\n' `+commandLine(words)).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"); !slices.Equal(got, words) {
		t.Errorf("%q became %q", words, got)
	}
	if got := commandLine([]string{"drydock", "done", "worker-04", "--comment", "patched by hand"}); got != "drydock done worker-04 --comment 'patched by hand'" {
		t.Error(got)
	}
}

func TestTheScriptNamesTheWorkflowWhereThereIsOne(t *testing.T) {
	dir := t.TempDir()
	script, repaired := filepath.Join(dir, scriptName), filepath.Join(dir, "re paired")
	if err := os.WriteFile(script, []byte(scriptFor(repaired)), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(environment ...string) (string, error) {
		cmd := exec.Command(script, brokenNode)
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "DRYDOCK_") }), environment...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("DRYDOCK_WORKFLOW_ID=w"); err == nil || !strings.Contains(out, "patching worker-04 (workflow w)\n") {
		t.Errorf("%q, %v", out, err)
	}
	if err := os.WriteFile(repaired, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := run(); err != nil || !strings.Contains(out, "patching worker-04\n") {
		t.Errorf("%q, %v", out, err)
	}
}
