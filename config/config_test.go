package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	auditkinds "drydock.dev/drydock/audit/kinds"
	checkkinds "drydock.dev/drydock/checks/kinds"
	"drydock.dev/drydock/config"
	"drydock.dev/drydock/docs/schemas/schematest"
	notifykinds "drydock.dev/drydock/notify/kinds"
)

var kinds = config.Kinds{Channels: notifykinds.All(), Checks: checkkinds.All(), Sinks: auditkinds.All()}

func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.good.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no good configurations to test: %v", err)
	}
	files = append(files, "../deploy/compose/drydock.yaml", "../deploy/kubernetes/base/drydock.yaml")
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := config.Load(file, func(string) string { return "" }, kinds)
			if err == nil {
				err = c.Validate()
			}
			if err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(file)
			if err == nil && file != "testdata/empty.good.yml" {
				err = schematest.CheckInput(t, "config", text)
			}
			if err != nil {
				t.Errorf("an editor refuses it by its schema: %v", err)
			}
		})
	}
}

// What an editor marks by the schema is what a worker refuses, as far as a schema can say it.
func TestTheSchemaRefusesWhatTheWorkerDoes(t *testing.T) {
	for _, text := range []string{
		"clusterr: x", "scheduler: {quotas: {heldPerRequestor: 3}}", "scheduler: {groups: [{nodeSelector: a}]}", "log: {level: loud}",
		"channels: {a: {}}", "channels: {a: {kubernetes: {}, url: {env: A}}}", "channels: {a: {slack: {token: xoxb}}}",
		"checks: {a: {signal: {}}}", "hooks: {a: {http: {url: http://a}, signal: {}}}", "work: {a: {success: maybe, signal: {}}}",
		"defaults: {node: a}", "healthChecks: {a: {selector: {}, name: a}}", "metrics: {authentication: basic}", "windows: [nights]",
	} {
		c := config.Default()
		err := config.Parse([]byte(text), &c, kinds)
		if err == nil {
			err = c.Validate()
		}
		if err == nil {
			t.Errorf("%s: the worker takes it", text)
		}
		if schematest.CheckInput(t, "config", []byte(text)) == nil {
			t.Errorf("%s: the schema takes it", text)
		}
	}
}

// What the reference shows has to be a configuration: it is one of the good ones, word for word.
func TestTheReferenceShowsGoodFiles(t *testing.T) {
	for name, file := range map[string]string{
		"full": "reference/configuration", "windows": "reference/configuration", "policy": "reference/configuration", "audit": "reference/configuration",
		"channels": "reference/channels", "checks": "reference/hooks-and-checks", "hooks": "reference/hooks-and-checks", "work": "reference/hooks-and-checks",
		"health": "reference/health", "profiles": "tasks/profiles",
	} {
		page, err := os.ReadFile("../docs/" + file + ".md")
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile("testdata/" + name + ".good.yml")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "```yaml\n"+strings.TrimSpace(string(text))+"\n```\n") {
			t.Errorf("docs/%s.md does not show testdata/%s.good.yml", file, name)
		}
	}
}

// Names in the defaults are refused only where they are not configured.
func TestDefaultsMayNameWhatIsConfigured(t *testing.T) {
	c := config.Default()
	if err := config.Parse([]byte(`
channels: {oncall: {kubernetes: {}}}
checks: {smoke: {http: {url: "http://smoke"}}}
hooks: {open: {signal: {}}, close: {signal: {}}, rest: {signal: {}}}
defaults:
  notify: [oncall]
  validation: {checks: [smoke]}
  hooks: {beforeCordon: [open], afterDrain: [rest, rest], beforeRelease: [close]}
`), &c, kinds); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil && strings.Contains(err.Error(), "there is no") {
		t.Error(err)
	}
	c.Channels, c.Checks, c.Hooks = nil, nil, nil
	err := c.Validate()
	for _, want := range []string{
		`defaults.notify[0]: there is no channel "oncall"`, `defaults.validation.checks[0]: there is no check "smoke"`,
		`defaults.hooks.beforeCordon[0]: there is no hook "open"`, `defaults.hooks.afterDrain[1]: there is no hook "rest"`,
		`defaults.hooks.beforeRelease[0]: there is no hook "close"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// Whoever needs another part of the configuration reads it without the kinds: their sections are neither decoded nor
// validated, and nothing of them is shown.
func TestWithoutKindsTheirSectionsAreKept(t *testing.T) {
	c := config.Default()
	if err := config.Parse([]byte(`
cluster: blue
channels: {oncall: {pager: {token: canary}}}
checks: {smoke: {smoke: {level: canary}}}
hooks: {open: {smoke: {level: canary}}}
prometheus: {rul: canary}
audit: {tape: {label: canary}}
defaults: {notify: [oncall], validation: {checks: [smoke]}, hooks: {beforeCordon: [open]}}
`), &c, config.Kinds{}); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil || c.Cluster != "blue" {
		t.Errorf("%s: %v", c.Cluster, err)
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if shown := string(text) + fmt.Sprintf("%v %+v %#v", c.Channels, c.Audit, c.Prometheus); strings.Contains(shown, "canary") {
		t.Error(shown)
	}
	if err := config.Parse([]byte("channels: [oncall]"), &c, config.Kinds{}); err == nil || !strings.HasPrefix(err.Error(), "channels: want an object") {
		t.Error(err)
	}
}

// The sections of kinds are refused as any other part of the configuration is.
func TestSectionsOfAnotherTypeAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"audit: 3":                            "audit: want an object, got number",
		"audit: {log: please}":                "audit.log: want true or false, got string",
		"audit: {file: [a]}":                  "audit.file: want an object, got array",
		"prometheus: https://p":               "prometheus: want an object, got string",
		"prometheus: {rul: https://p}":        `prometheus.rul: unknown field; did you mean "url"?`,
		"channels: {a: {slack: true}}":        "channels.a.slack: want an object, got bool",
		"hooks: {a: {closing: 3}}":            "hooks.a.closing: want an object, got number",
		"hooks: {a: {closing: {signal: {}}}}": "hooks.a.closing.signal: unknown field",
		"hooks: {a: {prometheus: {}}}":        "hooks.a.prometheus: unknown field",
		"checks: {a: {signal: {}}}":           "checks.a.signal: unknown field",
	} {
		c := config.Default()
		if err := config.Parse([]byte(text), &c, kinds); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Each bad configuration says in its first line, a comment, what the error must contain.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad configurations to test: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			first, _, _ := strings.Cut(string(text), "\n")
			want := strings.TrimPrefix(first, "# ")
			c, err := config.Load(file, func(string) string { return "" }, kinds)
			if err == nil {
				err = c.Validate()
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error = %v, want one with %q", err, want)
			}
		})
	}
}

func TestEnvironmentBeatsFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.yml")
	if err := os.WriteFile(file, []byte("cluster: one\nlog: {level: debug}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, func(name string) string {
		return map[string]string{"DRYDOCK_CLUSTER": "two", "DRYDOCK_EVICTIONS_PER_SECOND": "7.5"}[name]
	}, kinds)
	if err != nil {
		t.Fatal(err)
	}
	want := config.Default()
	want.Cluster, want.Log.Level, want.Kubernetes.EvictionsPerSecond = "two", "debug", 7.5
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("want - got +\n%s", diff)
	}
	if _, err := config.Load("", func(name string) string {
		return map[string]string{"DRYDOCK_KUBERNETES_BURST": "many"}[name]
	}, kinds); err == nil || !strings.Contains(err.Error(), "DRYDOCK_KUBERNETES_BURST") {
		t.Errorf("error = %v, want one that names the variable", err)
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := config.Load("testdata/none.yml", os.Getenv, kinds); err == nil {
		t.Error("a missing file was accepted")
	}
}
