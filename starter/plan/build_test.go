package plan

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"drydock.dev/drydock/rules/plan"
	"drydock.dev/drydock/starter/exit"
)

// built is the plan that a command line makes, in JSON.
func built(t *testing.T, file string, args ...string) (string, error) {
	t.Helper()
	raw, _, err := madeOf(t, file, args...)
	return string(raw), err
}

// madeOf is the plan that a command line makes.
func madeOf(t *testing.T, file string, args ...string) (json.RawMessage, plan.Plan, error) {
	t.Helper()
	var p planFlags
	cmd := &cobra.Command{Use: "create"}
	p.register(cmd)
	if file != "" {
		path := filepath.Join(t.TempDir(), "plan.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--file", path)
	}
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return p.build(strings.NewReader(""), "kernel", cmd.Flags().Args())
}

func TestPlansOfFlagsAndFiles(t *testing.T) {
	const file = "selector: pool=gpu\nreason: of the file\nstrategy: {maxParallel: 3, canary: {nodes: 2}}\nmaintenance: {priority: 4, drain: {force: true}}\n"
	for name, c := range map[string]struct{ file, args, want string }{
		"names":       {"", "a b a", `{"nodes":["a","b"]}`},
		"all":         {"", "--all --exclude x,y", `{"all":true,"exclude":["x","y"]}`},
		"the file":    {file, "", `{"selector":"pool=gpu","reason":"of the file","strategy":{"maxParallel":3,"canary":{"nodes":2}},"maintenance":{"priority":4,"drain":{"force":true}}}`},
		"other nodes": {"selector: pool=gpu\n", "a", `{"nodes":["a"]}`},
		"flags over the file": {
			file, "--reason new --max-parallel 10% --canary-soak 1h --priority 9 --grace-period 5",
			`{"selector":"pool=gpu","reason":"new","strategy":{"maxParallel":"10%","canary":{"nodes":2,"soak":"1h"}},"maintenance":{"priority":9,"drain":{"force":true,"gracePeriodSeconds":5}}}`,
		},
		"the whole strategy": {
			"", "a --max-parallel 2 --canary 1 --canary-soak 1h --canary-approval --max-failures 5% --pause-between 1m --order zone --on-blocked skip --blocked-after 20m --come-back-after 5m --tries 2",
			`{"nodes":["a"],"strategy":{"maxParallel":2,"canary":{"nodes":1,"soak":"1h","approval":true},"maxFailures":"5%","pauseBetween":"1m","order":"zone","onBlocked":"skip","blockedAfter":"20m","comeBackAfter":"5m","tries":2}}`,
		},
		"what is the plan's own": {
			"", "a --requestor ops --reason r --ticket t --owner o --notify oncall",
			`{"nodes":["a"],"requestor":"ops","reason":"r","ticket":"t","owner":"o","notify":["oncall"]}`,
		},
		"stages": {
			"", "a --strategy all-at-once --stage drain --tier 1000 --tier DaemonSet:5:app=web",
			`{"nodes":["a"],"strategy":{"type":"allAtOnce"},"stage":"Drain","drainPlan":{"tiers":[{"podType":"Default","podPriority":1000},{"podType":"DaemonSet","podPriority":5,"podSelector":"app=web"}]}}`,
		},
		"in a window":    {"", "a --window nights,weekends", `{"nodes":["a"],"windows":["nights","weekends"]}`},
		"with notice":    {"", "a --not-before 2030-01-01T00:00:00Z", `{"nodes":["a"],"maintenance":{"notBefore":"2030-01-01T00:00:00Z"}}`},
		"told to nobody": {"", "a --notify none", `{"nodes":["a"],"notify":[]}`},
		"a maintenance with a reason of its own": {
			"nodes: [a]\nmaintenance: {reason: mine}\n", "--reason plan", `{"nodes":["a"],"reason":"plan","maintenance":{"reason":"mine"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := built(t, c.file, strings.Fields(c.args)...)
			if err != nil {
				t.Fatal(err)
			}
			var is, want any
			if err := json.Unmarshal([]byte(got), &is); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, is); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestPlansThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, args, want string }{
		"no nodes":                 {"", "", "missing nodes"},
		"two ways":                 {"", "--all a", "pass one of --selector, --all and names"},
		"a bad amount":             {"", "a --max-parallel half", `--max-parallel: "half" is not an amount`},
		"no canary":                {"", "a --canary-soak 1h", "strategy.canary.nodes: required"},
		"no such order":            {"", "a --order random", "--order"},
		"blocked and waiting":      {"", "a --blocked-after 1m", "strategy.onBlocked"},
		"an unknown field":         {"nodes: [a]\nmaxParallel: 3\n", "", "maxParallel: unknown field"},
		"a file of something else": {"nodes: [a]\nmaintenance: [1]\n", "", "maintenance: "},
		"a list of strategies":     {"nodes: [a]\nstrategy: [1]\n", "--tries 2", "strategy in the file is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := built(t, c.file, strings.Fields(c.args)...)
			if err == nil || !strings.Contains(err.Error(), c.want) || exit.CodeOf(err) != exit.Usage {
				t.Errorf("%v with code %d, want %q", err, exit.CodeOf(err), c.want)
			}
		})
	}
}
