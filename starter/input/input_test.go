package input

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
)

// buildInput parses a command line as start would and returns the input it makes.
func buildInput(t *testing.T, env invocation.Environment, stdin string, args ...string) (map[string]any, error) {
	t.Helper()
	var s Flags
	cmd := &cobra.Command{Use: "start"}
	s.Register(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return s.Input(env, strings.NewReader(stdin))
}

func TestInputHasOnlyWhatWasSet(t *testing.T) {
	env := invocation.Environment{invocation.EnvRequestor + "=ops"}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"nothing":           {nil, `{"requestor":"ops"}`},
		"zero values count": {[]string{"--priority", "0", "--force=false", "--grace-period", "0"}, `{"requestor":"ops","priority":0,"drain":{"force":false,"gracePeriodSeconds":0}}`},
		"everything": {
			[]string{
				"--requestor", "net", "--additional-requestor", "a1,b2", "--additional-requestor", "c3", "--reason", "kernel", "--ticket", "T-1",
				"--type", "unplanned", "--priority", "7", "--no-cordon", "--wait-for-pods", "app=x", "--wait-for-pods-timeout", "5m",
				"--drain-mode", "wait", "--pod-selector", "app=y", "--eviction-filter", "nvidia.com/.*", "--eviction-filter", "a,b",
				"--force", "--delete-emptydir-data", "--grace-period", "30", "--ready-timeout", "2h", "--on-ready-timeout", "release",
				"--on-node-replaced", "end", "--escalation", "2h=fail", "--via", "evictionRequest", "--protected-for", "0s",
				"--on-node-not-ready", "ignore", "--wait-for-volumes", "--preflight", "fail",
				"--include-namespace", "apps,jobs", "--include-namespace", "web", "--exclude-namespace", "kube-system",
				"--window", "nights", "--window", "weekends", "--expected-duration", "2h", "--ignore-windows", "the disk burns",
			},
			`{"requestor":"net","additionalRequestors":["a1","b2","c3"],"reason":"kernel","ticket":"T-1","type":"unplanned","priority":7,
			"windows":["nights","weekends"],"expectedDuration":"2h","ignoreWindows":{"reason":"the disk burns"},
			"cordon":false,"waitForPodCompletion":{"podSelector":"app=x","timeout":"5m"},"readyTimeout":"2h","onReadyTimeout":"release",
			"onNodeReplaced":"end","preflight":"fail","drain":{"mode":"wait","via":"evictionRequest","protectedFor":"0s",
			"onNodeNotReady":"ignore","waitForVolumeDetach":true,"podSelector":"app=y","force":true,"deleteEmptyDir":true,"gracePeriodSeconds":30,
			"podEvictionFilters":[{"byResourceNameRegex":"nvidia.com/.*"},{"byResourceNameRegex":"a,b"}],"namespaces":{"include":["apps","jobs","web"],"exclude":["kube-system"]},"escalation":[{"after":"2h","do":"fail"}]}}`,
		},
		"cordon explicitly": {[]string{"--no-cordon=false"}, `{"requestor":"ops","cordon":true}`},
		"no window at all":  {[]string{"--window="}, `{"requestor":"ops","windows":[]}`},
		"empty lists":       {[]string{"--notify", "", "--additional-requestor=", "--include-namespace="}, `{"requestor":"ops","notify":[],"additionalRequestors":[],"drain":{"namespaces":{"include":[]}}}`},
		"quoted":            {[]string{"--notify", `"a","b"`, "--notify", "c"}, `{"requestor":"ops","notify":["a","b","c"]}`},
		"the last counts":   {[]string{"--priority", "1", "--priority", "2", "--sla", "10m", "--sla", "20m=fail"}, `{"requestor":"ops","priority":2,"sla":{"after":"20m","do":"fail"}}`},
		"several of a kind": {[]string{"--hook", "beforeCordon=a", "--hook", "beforeCordon=b", "--hook", "afterDrain=c"}, `{"requestor":"ops","hooks":{"beforeCordon":["a","b"],"afterDrain":["c"]}}`},
		"no window":         {[]string{"--window", "none"}, `{"requestor":"ops","windows":[]}`},
		"never escalate":    {[]string{"--escalation", "none"}, `{"requestor":"ops","drain":{"escalation":[]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			input, err := buildInput(t, env, "", c.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(parsed(t, c.want), normal(t, input)); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
			if _, _, err := forNode(input, "worker-01"); err != nil && name != "empty lists" {
				t.Errorf("the workflow would refuse it: %v", err)
			}
		})
	}
}

func parsed(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func normal(t *testing.T, value any) any {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, string(data))
}

func TestAFileMayHoldWhatTheFlagTakes(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"texts": {
			"{sla: 30m=kill, windows: nights, notify: none, hooks: [afterDrain=a, afterDrain=b], drain: {escalation: [1h=notify, 2h=fail], podEvictionFilters: nvidia}}",
			`{"requestor":"ops","sla":{"after":"30m","do":"kill"},"windows":["nights"],"notify":[],"hooks":{"afterDrain":["a","b"]},
			"drain":{"escalation":[{"after":"1h","do":"notify"},{"after":"2h","do":"fail"}],"podEvictionFilters":[{"byResourceNameRegex":"nvidia"}]}}`,
		},
		"objects": {"{sla: {after: 30m}, cordon: false, drain: {escalation: []}}", `{"requestor":"ops","sla":{"after":"30m"},"cordon":false,"drain":{"escalation":[]}}`},
	} {
		input, err := buildInput(t, invocation.Environment{invocation.EnvRequestor + "=ops"}, c.file, "-f", "-")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(parsed(t, c.want), normal(t, input)); diff != "" {
			t.Errorf("%s: want - got +\n%s", name, diff)
		}
	}
	input, err := buildInput(t, nil, "notBefore: 48h", "-f", "-")
	if at, _ := input["notBefore"].(string); err != nil || !strings.HasSuffix(at, "Z") {
		t.Errorf("notBefore is %v (%v)", input["notBefore"], err)
	}
}

func TestAllErrorsOfAFileAreToldAtOnce(t *testing.T) {
	input, err := buildInput(t, nil, "{fo: 1, readyTimeout: soon, type: odd, sla: soon, priority: high, drain: {mod: 3, force: never}}", "-f", "-")
	if err == nil {
		_, _, err = forNode(input, "worker-01")
	}
	for _, want := range []string{"fo: unknown field", `readyTimeout: "soon"`, `type: "odd"`, `sla.after: "soon"`, "priority: want", `drain.mod: unknown field; did you mean "mode"?`, "drain.force: want"} {
		if err == nil || strings.Count("\n"+err.Error(), "\n"+want) != 1 {
			t.Errorf("%v: want %s once", err, want)
		}
	}
}

func TestFlagsGoOverEnvironmentOverFileOverUser(t *testing.T) {
	file := "requestor: file\nreason: from the file\ndrain: {mode: wait, force: true}\n"
	for name, c := range map[string]struct {
		env  invocation.Environment
		args []string
		want string
	}{
		"file over user":          {nil, nil, "file"},
		"environment over file":   {invocation.Environment{invocation.EnvRequestor + "=env"}, nil, "env"},
		"flags over environment":  {invocation.Environment{invocation.EnvRequestor + "=env"}, []string{"-r", "flag"}, "flag"},
		"flags over file, nested": {nil, []string{"--drain-mode", "none"}, "file"},
	} {
		t.Run(name, func(t *testing.T) {
			input, err := buildInput(t, c.env, file, append(c.args, "--file", "-")...)
			if err != nil {
				t.Fatal(err)
			}
			if got := input["requestor"]; got != c.want {
				t.Errorf("requestor = %v, want %v", got, c.want)
			}
			if drain := input["drain"].(map[string]any); drain["force"] != true {
				t.Errorf("drain = %v: what the flag does not set is lost", drain)
			}
		})
	}
}

func TestInputRefusesAndNamesTheFlagOrField(t *testing.T) {
	for name, c := range map[string]struct {
		args  []string
		stdin string
		want  string
	}{
		"escalation without action":  {[]string{"--escalation", "1h"}, "", `--escalation: "1h": want TIME=RUNG`},
		"unknown action":             {[]string{"--escalation", "1h=explode"}, "", `drain.escalation[0].do: "explode" is not one of`},
		"unknown way":                {[]string{"--via", "post"}, "", `drain.via: "post" is not one of eviction, evictionRequest`},
		"unknown preflight":          {[]string{"--preflight", "maybe"}, "", `preflight: "maybe" is not one of off, wait, fail`},
		"tier without a priority":    {[]string{"-f", "-"}, "drain: {plan: [{podSelector: app=web}]}", `drain.plan[0].podPriority: required`},
		"bad duration":               {[]string{"--ready-timeout", "soon"}, "", `readyTimeout: "soon" is not a duration`},
		"negative duration":          {[]string{"--ready-timeout", "-1h"}, "", `readyTimeout: "-1h" is negative`},
		"bad selector":               {[]string{"--pod-selector", "a=b=c"}, "", `drain.podSelector`},
		"bad expression":             {[]string{"--eviction-filter", "("}, "", `drain.podEvictionFilters[0].byResourceNameRegex`},
		"timeout without selector":   {[]string{"--wait-for-pods-timeout", "1h"}, "", `needs --wait-for-pods`},
		"unknown field in the file":  {[]string{"-f", "-"}, "drian: {}", `drian: unknown field`},
		"null in the file":           {[]string{"-f", "-"}, "reason:", `reason: null is not a value`},
		"duplicate key in the file":  {[]string{"-f", "-"}, "reason: a\nreason: b", `not valid YAML or JSON`},
		"file is a list":             {[]string{"-f", "-"}, "[a]", `want a JSON object, got a list`},
		"file with a scalar section": {[]string{"-f", "-", "--force"}, "drain: wait", `--force: drain in the file is not an object`},
		"requestor too long":         {[]string{"-r", strings.Repeat("a", 64)}, "", `requestor: `},
	} {
		t.Run(name, func(t *testing.T) {
			input, err := buildInput(t, nil, c.stdin, c.args...)
			if err == nil {
				_, _, err = forNode(input, "worker-01")
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error = %v, want %q in it", err, c.want)
			}
			if code := exit.CodeOf(err); code != exit.Usage {
				t.Errorf("exit code = %d, want %d", code, exit.Usage)
			}
		})
	}
}

func TestPlanComesFromTheFileInBothForms(t *testing.T) {
	for name, c := range map[string]struct {
		file  string
		tiers int
	}{
		"tiers":       {"drain: {plan: {tiers: [{podPriority: 1000, podSelector: {matchLabels: {app: web}}}], static: wait}}", 5},
		"KEP's list":  {"drain: {plan: [{podPriority: 1000, podSelector: app=web}]}", 13},
		"only a type": {"drain: {plan: {include: [DaemonSet]}}", 4},
	} {
		input, err := buildInput(t, nil, c.file, "-f", "-", "--force")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, decoded, err := forNode(input, "worker-01")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		tiers, err := decoded.Drain.Tiers()
		if err != nil || tiers.Len() != c.tiers || !decoded.Drain.Force {
			t.Errorf("%s: %+v has %d tiers (%v), want %d", name, decoded.Drain, tiers.Len(), err, c.tiers)
		}
	}
}

func TestNodesOfArgumentsAndFile(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		file map[string]any
		want []string
		err  string
	}{
		"arguments, each once":  {[]string{"b", "a", "b"}, nil, []string{"b", "a"}, ""},
		"the file's":            {nil, map[string]any{"node": "a"}, []string{"a"}, ""},
		"both the same":         {[]string{"a"}, map[string]any{"node": "a"}, []string{"a"}, ""},
		"both, and they differ": {[]string{"b"}, map[string]any{"node": "a"}, nil, `the file is for node "a"`},
		"none":                  {nil, nil, nil, "missing NODE"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := NodesOf(c.args, c.file)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error = %v, want %q", err, c.err)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("want - got +\n%s", diff)
			}
		})
	}
}

func TestReadObjectTakesJSONToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.json")
	if err := os.WriteFile(path, []byte(`{"node":"a","priority":3,"reason":"\ud83d\ude00 firmware"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadObject(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"node": "a", "priority": 3.0, "reason": "😀 firmware"}, normal(t, got)); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if _, err := ReadObject(path+"x", nil); exit.CodeOf(err) != exit.Usage {
		t.Errorf("missing file: %v, want a usage error", err)
	}
}

func TestErrorsSpeakOfTheFlagsThatWereGiven(t *testing.T) {
	file := filepath.Join(t.TempDir(), "maintenance.yaml")
	if err := os.WriteFile(file, []byte("{onReadyTimeout: x, drain: {mode: y}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`--wait-for-pods: "a=b=c" is not a label selector`: {"--wait-for-pods", "a=b=c"},
		`--escalation: "foo" is not one of`:                {"--escalation", "1h=fail", "--escalation", "2h=foo"},
		`--sla: "foo" is not a duration`:                   {"--sla", "foo"},
		`--additional-requestor: "a/b"`:                    {"--additional-requestor", "ok,a/b"},
		`--eviction-filter: `:                              {"--eviction-filter", "("},
		`--drain-mode: "z" is not one of`:                  {"--file", file, "--drain-mode", "z"},
		`onReadyTimeout: "x" is not one of`:                {"--file", file, "--drain-mode", "wait"},
		`--hook: "foo=bar" is not WHEN=NAME`:               {"--hook", "foo=bar"},
		`--hook: "a/b"`:                                    {"--hook", "afterDrain=a/b"},
		`--type: "a" is not one of planned`:                {"--type", "a", "--drain-mode", "z"},
	} {
		var s Flags
		cmd := &cobra.Command{Use: "start"}
		s.Register(cmd)
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		in, err := s.Input(invocation.Environment{invocation.EnvRequestor + "=ops"}, nil)
		if err == nil {
			_, err = s.OrdersFor(in, []string{"worker-01"})
		}
		if err == nil || !strings.Contains("\n"+err.Error(), "\n"+want) || exit.CodeOf(err) != exit.Usage {
			t.Errorf("%v: %v (code %d), want %s", args, err, exit.CodeOf(err), want)
		}
	}
}
