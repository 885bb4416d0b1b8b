package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/profile/state"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/invocation"
	"drydock.dev/drydock/starter/startertest"
)

// file is a configuration of profiles, whose path it returns.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "maintenance.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a command of the group with nobody to ask.
func run(stdin string, environ []string, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := New(invocation.New(invocation.Process{Args: []string{"drydock"}, Environ: environ, Stdin: strings.NewReader(stdin), Stdout: &out, Stderr: &errs}))
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.Execute()
	return out.String(), errs.String(), err
}

const (
	right = `
intervals: {requeue: 1m}
instances:
  check: [{type: hasLabel, name: approved, config: {key: ok}}, {type: cel, name: drained, config: {expression: "size(node.spec) > 0"}}]
  trigger: [{type: eviction, name: drain, config: {action: drain}}]
profiles:
- name: os-patching
  operational: {transitions: [{check: approved && !drained, trigger: drain, next: in-maintenance}]}
  in-maintenance: {transitions: [{check: drained, next: operational}]}
- name: flatcar
`
	withHook = `
intervals: {requeue: 1m}
instances:
  notify: [{type: slack, name: s, config: {hook: "${HOOK}", channel: c, message: m}, schedule: {type: periodic, config: {}}}]
profiles: [{name: p, operational: {notify: s}}]
`
)

func TestFilesAreLinted(t *testing.T) {
	for name, c := range map[string]struct {
		text    string
		environ []string
		args    []string
		code    int
		want    []string
	}{
		"right":                {right, nil, nil, 0, []string{"nothing is wrong with it"}},
		"wrong":                {"intervals: {}\nprofiles: [{}]\n", nil, nil, exit.Usage, []string{"2 problems, 0 warnings", "Problem: intervals.requeue\n  required", "profiles[0].name"}},
		"warnings alone":       {"intervals: {requeue: 1m, notify: 1h}\n", nil, nil, 0, []string{"0 problems, 1 warning", "Warning: intervals.notify"}},
		"no YAML":              {"a: [", nil, nil, exit.Usage, []string{"the file is no YAML"}},
		"too long":             {strings.Repeat("# more\n", 1<<18), nil, nil, exit.Usage, []string{"1 problem, 0 warnings", "more than 1048576 bytes"}},
		"wrong CEL":            {strings.Replace(right, "size(node.spec) > 0", "1 + 1", 1), nil, nil, exit.Usage, []string{"instances.check[1] (drained).config.expression", "want true or false"}},
		"a variable":           {withHook, []string{"HOOK=https://hooks.example/secret"}, nil, 0, []string{"nothing is wrong"}},
		"a variable, unset":    {withHook, nil, nil, exit.Usage, []string{"${HOOK} has no value", "--allow-unset"}},
		"a variable, forgiven": {withHook, nil, []string{"--allow-unset"}, 0, []string{"0 problems, 1 warning", "${HOOK} has no value"}},
		"for programs":         {withHook, nil, []string{"-o", "json"}, exit.Usage, []string{`"variable": "HOOK"`, `"warnings": []`}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, from := range []string{file(t, c.text), "-"} {
				stdout, _, err := run(c.text, c.environ, append([]string{"lint", from}, c.args...)...)
				if code := exit.CodeOf(err); code != c.code {
					t.Errorf("exit code %d, want %d: %v", code, c.code, err)
				}
				for _, want := range c.want {
					if !strings.Contains(stdout, want) {
						t.Errorf("want %q in\n%s", want, stdout)
					}
				}
				if strings.Contains(stdout, "hooks.example") {
					t.Errorf("what a variable gives is shown:\n%s", stdout)
				}
			}
		})
	}
}

func TestCommandLinesOfProfiles(t *testing.T) {
	path := file(t, right)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lint"}, "missing FILE: lint FILE"},
		{[]string{"lint", "a", "b"}, "one file at a time, not a, b"},
		{[]string{"lint", "/nonexistent"}, "open /nonexistent: no such file"},
		{[]string{"lint", filepath.Dir(path)}, "is a directory"},
		{[]string{"lint", path, "-o", "xml"}, "want one of table"},
		{[]string{"graph", "os-patching"}, "missing --file FILE"},
		{[]string{"graph", "nobody", "--file", path}, `has no profile "nobody": it has default, flatcar, os-patching`},
		{[]string{"graph", "--file", file(t, "intervals: {}")}, "is not right:\nintervals.requeue: required"},
		{[]string{"list", "--state", "resting"}, `--state "resting": want one of operational, maintenance-required, in-maintenance`},
		{[]string{"list", "a--b"}, "PROFILE: "},
		{[]string{"list", "--timeout", "0s"}, "--timeout 0s: want more than 0"},
		{[]string{"explain"}, "missing NODE: explain NODE"},
		{[]string{"explain", "a/b"}, `"a/b" is not a node name`},
		{[]string{"explain", "a", "-o", "name"}, "want one of table"},
	} {
		if _, _, err := run("", nil, c.args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.args, err, c.want)
		}
	}
}

func TestProfilesAreDrawn(t *testing.T) {
	path := file(t, right)
	if out, _, err := run("", nil, "graph", "-f", path); err != nil || out != "default\nflatcar\nos-patching\n" {
		t.Errorf("%q, %v", out, err)
	}
	out, _, err := run("", nil, "graph", "os-patching", "-f", path)
	if err != nil || !strings.HasPrefix(out, "---\ntitle: \"os-patching\"\n---\nstateDiagram-v2\n") {
		t.Errorf("%q, %v", out, err)
	}
	if out, _, err = run(withHook, nil, "graph", "p", "-f", "-"); err != nil || !strings.Contains(out, "notify") {
		t.Errorf("%q, %v", out, err)
	}
	graph, _, err := New(invocation.New(invocation.Process{Args: []string{"drydock"}})).Find([]string{"graph"})
	if err != nil {
		t.Fatal(err)
	}
	if err := graph.ParseFlags([]string{"-f", path}); err != nil {
		t.Fatal(err)
	}
	words, directive := graph.ValidArgsFunction(graph, nil, "")
	if !slices.Contains(words, "flatcar") || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("%v, %v", words, directive)
	}
	if words, _ = graph.ValidArgsFunction(graph, []string{"flatcar"}, ""); len(words) > 0 {
		t.Errorf("after a name it offers %v", words)
	}
}

// A report has a page of nodes; the list has all of them.
func TestAllPagesAreAskedFor(t *testing.T) {
	all := startertest.ProfileNodes()
	asked := 0
	ask := func(in api.ProfileReportInput) (api.ProfileReport, error) {
		asked++
		from := slices.IndexFunc(all, func(n api.ProfileNode) bool { return n.Node > in.After })
		page := api.ProfileReport{At: startertest.Noon, Problem: fmt.Sprintf("page %d", asked), Nodes: all[from:min(from+2, len(all))]}
		if from+2 < len(all) {
			page.Next = page.Nodes[1].Node
		}
		return page, nil
	}
	got, err := pages(api.ProfileReportInput{}, ask)
	if err != nil || asked != 3 || got.Problem != "page 1" || strings.Join(got.Names(), " ") != "worker-01 worker-02 worker-03 worker-04 worker-05" {
		t.Errorf("%d pages, %+v, %v", asked, got, err)
	}
	got, err = pages(api.ProfileReportInput{Profile: "flatcar", State: state.Required}, ask)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(got.Nodes[0].Profiles); err != nil || len(got.Nodes[0].Profiles) != 1 || !strings.Contains(string(text), "flatcar") {
		t.Errorf("%s, %v", text, err)
	}
	// One of which nothing can be decided is not left out.
	if names := strings.Join(got.Names(), " "); names != "worker-02 worker-03 worker-05" {
		t.Errorf("it lists %s", names)
	}
	if _, err := pages(api.ProfileReportInput{}, func(api.ProfileReportInput) (api.ProfileReport, error) {
		return api.ProfileReport{Next: "worker-01"}, nil
	}); err == nil || !strings.Contains(err.Error(), "does not get on") {
		t.Error(err)
	}
	away := errors.New("away")
	if _, err := pages(api.ProfileReportInput{}, func(api.ProfileReportInput) (api.ProfileReport, error) { return api.ProfileReport{}, away }); !errors.Is(err, away) {
		t.Error(err)
	}
}

func TestNobodyIsToListInWords(t *testing.T) {
	for want, in := range map[string]api.ProfileReportInput{
		"No nodes.": {}, "No node has the profile p.": {Profile: "p"}, "No node has a profile in in-maintenance.": {State: state.Maintenance},
		"No node has the profile p in operational.": {Profile: "p", State: state.Operational},
	} {
		if got := nobody(in); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWarningsOfAReport(t *testing.T) {
	var text strings.Builder
	warn(&text, api.ProfileReport{Problem: "a: b\nc: d", Stopped: "the nodes cannot be listed"})
	const want = "Warning: no node is evaluated: the nodes cannot be listed\nWarning: the file is not in force as it stands: a: b\n  c: d\n"
	if text.String() != want {
		t.Errorf("%q", text.String())
	}
}
