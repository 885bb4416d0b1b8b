package health

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/rules/health"
)

func TestAListSaysWhichChecksAreNotInTheFile(t *testing.T) {
	checks := api.HealthChecks{{Name: "infra"}, {Name: "workers", Configured: true}, {Name: "gpu", Configured: true}}
	compare(checks, []string{"gpu"})
	if !checks[1].Left || checks[1].Source != api.SourceLeft || checks[0].Left || checks[2].Left {
		t.Errorf("%+v", checks)
	}
}

func TestWhichCheckRemediatesANode(t *testing.T) {
	e := explained{CheckExplanation: api.CheckExplanation{HealthExplanation: health.Explanation{Found: true, State: health.NodeUnhealthy}}}
	if e.remediates() || !e.concerned() {
		t.Error("it is concerned, and does not remediate")
	}
	if e.State = health.NodeRecovered; !e.remediates() {
		t.Error("what has recovered has a remediation left")
	}
}

func TestFilesOfHealthChecks(t *testing.T) {
	const fields = "selector: {matchLabels: {a: b}}\nmaintenance: {}\n"
	for name, c := range map[string]struct {
		text, want string
		choose     []string
		names      string
	}{
		"a check with its name":    {text: "name: a\n" + fields, names: "a"},
		"several documents":        {text: "name: a\n" + fields + "---\nname: b\n" + fields, names: "a b"},
		"one of several":           {text: "name: a\n" + fields + "---\nname: b\n" + fields, choose: []string{"b"}, names: "b"},
		"one that is not there":    {text: "name: a\n" + fields, choose: []string{"c"}, want: `no health check "c": it has a`},
		"a worker's configuration": {text: "cluster: x\nhealthChecks: {a: {selector: {matchLabels: {a: b}}, maintenance: {}}}", names: "a"},
		"the same name twice":      {text: "name: a\n" + fields + "---\nname: a\n" + fields, want: `two health checks "a"`},
		"no name":                  {text: fields, want: "name: is missing"},
		"nothing":                  {text: "", want: "has no health check"},
		"another kind":             {text: "kind: Pod", want: "kind"},
		"no object":                {text: "[1]", want: "want an object"},
		"all that is wrong at once": {
			text: "name: a\nselector: {}\nmaintenance: {}\nminHealthy: 1\nmaxUnhealthy: 1\n", want: "a.selector",
		},
	} {
		file := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		checks, err := readChecks(file, nil, c.choose)
		var names []string
		for _, one := range checks {
			names = append(names, one.Name)
		}
		switch {
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		case c.want == "" && (err != nil || strings.Join(names, " ") != c.names):
			t.Errorf("%s: %v, %v", name, names, err)
		}
	}
	if checks, err := readChecks("-", bytes.NewBufferString("name: a\n"+fields), nil); err != nil || len(checks) != 1 {
		t.Errorf("%v, %v", checks, err)
	}
}

// The pages show checks that are taken.
func TestThePagesShowHealthChecks(t *testing.T) {
	found := 0
	for _, page := range []string{"tasks/health-checks.md", "reference/health.md"} {
		text, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(block[1], "healthChecks:") && !strings.Contains(block[1], "kind: NodeHealthCheck\n") {
				continue
			}
			found++
			checks, err := readChecks("-", strings.NewReader(block[1]), nil)
			if err != nil || len(checks) == 0 {
				t.Errorf("%s: %v\n%s", page, err, block[1])
			}
		}
	}
	if found < 2 {
		t.Errorf("only %d examples were found", found)
	}
}
