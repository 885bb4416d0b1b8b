package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A policy is compiled before anything is begun.
func TestCheckCompilesThePolicy(t *testing.T) {
	for config, c := range map[string]struct {
		status int
		says   string
	}{
		`policy: [{name: no-force, require: "!maintenance.drain.force"}]`: {0, ""},
		`policy: [{name: no-force, require: "!maintenance.drain.forse"}]`: {2, "policy[0] (no-force).require: line 1, column 19: undefined field 'forse'"},
		`policy: [{name: eyes, require: "approval.by != "}]`:              {2, "policy[0] (eyes).require: line 1, column 1"},
		`quotas: {heldPerRequestor: 0}`:                                   {2, "quotas.heldPerRequestor: 0 is refused"},
	} {
		file := filepath.Join(t.TempDir(), "drydock.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, flags := range [][]string{{"--check"}, nil} {
			if c.status == 0 && flags == nil {
				continue // it would begin to work
			}
			var stderr strings.Builder
			if status := Main(t.Context(), append(flags, "--config", file), &stderr); status != c.status || !strings.Contains(stderr.String(), c.says) {
				t.Errorf("%s %v: status %d, %s", config, flags, status, &stderr)
			}
		}
	}
}
