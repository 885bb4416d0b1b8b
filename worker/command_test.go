package worker

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"drydock.dev/drydock/config"
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

// What the configuration names outside of itself is looked at, and every line of what is wrong says in which file.
func TestCheckLooksAtWhatIsNamed(t *testing.T) {
	folder := t.TempDir()
	file, plain := filepath.Join(folder, "drydock.yaml"), filepath.Join(folder, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for config, says := range map[string][]string{
		`audit: {file: {path: ` + folder + `/new/folder/audit.jsonl}}`:             nil,
		`audit: {file: {path: ` + plain + `}}`:                                     nil,
		`audit: {file: {path: ` + plain + `/audit.jsonl}}`:                         {": audit.file: path: "},
		`audit: {file: {path: ` + folder + `}}`:                                    {": audit.file: path: "},
		`checks: {burn: {job: {templateFile: /no/such.yaml, namespace: drydock}}}`: {": checks.burn.job", "/no/such.yaml"},
		`{listen: "127.0.0.1:99999", adminListen: "127.0.0.1:http"}`:               {": listen: ", "65535", "\n" + file + ": adminListen: "},
		`{cluster: 3, log: {level: 4}}`:                                            {": cluster: ", "\n" + file + ": log.level: "},
	} {
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadDir(folder)
		var stderr strings.Builder
		status := Main(t.Context(), []string{"--check", "--config", file}, &stderr)
		if (status == 0) != (says == nil) {
			t.Errorf("%s: status %d, %s", config, status, &stderr)
		}
		for i, part := range says {
			if i == 0 {
				part = "drydock-worker: " + file + part
			}
			if !strings.Contains(stderr.String(), part) {
				t.Errorf("%s: %q is not in %s", config, part, &stderr)
			}
		}
		if after, _ := os.ReadDir(folder); len(after) != len(before) {
			t.Errorf("%s: it left %v", config, after)
		}
	}
}

// What is named as a file of a secret is there when the configuration is checked, or it is said which field names it.
func TestCheckReadsTheFilesOfSecrets(t *testing.T) {
	there := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(there, []byte("c4nary-token"), 0o600); err != nil {
		t.Fatal(err)
	}
	for config, says := range map[string]string{
		`channels: {oncall: {slack: {token: {file: %s}, channel: C1}}}`:                                            "",
		`channels: {oncall: {slack: {token: {env: NOT_SET_HERE}, channel: C1}}}`:                                   "",
		`channels: {oncall: {slack: {token: {file: /no/such}, channel: C1}}}`:                                      "channels.oncall.slack.token: reading a secret: open /no/such",
		`channels: {oncall: {url: {file: /no/such}}}`:                                                              "channels.oncall.url: reading a secret: open /no/such",
		`channels: {oncall: {webhook: {url: {file: /no/such}}}}`:                                                   "channels.oncall.webhook.url: reading a secret",
		`channels: {oncall: {webhook: {url: "https://h", headers: {X-Key: {file: /no/such}}}}}`:                    "channels.oncall.webhook.headers.X-Key: reading a secret",
		`checks: {probe: {http: {url: "https://h", bearerToken: {file: /no/such}}}}`:                               "checks.probe.http.bearerToken: reading a secret",
		`hooks: {tell: {http: {url: "https://h"}, closing: {http: {url: "https://h", bearerToken: {file: /no}}}}}`: "hooks.tell.closing.http.bearerToken: reading a secret",
		`prometheus: {url: "https://h", bearerToken: {file: /no/such}}`:                                            "prometheus.bearerToken: reading a secret",
		`audit: {key: {file: /no/such}, file: {path: /a}}`:                                                         "audit.key: reading a secret",
		`audit: {webhook: {url: "https://h", secret: {file: /no/such}}}`:                                           "audit.webhook.secret: reading a secret",
	} {
		file := filepath.Join(t.TempDir(), "drydock.yaml")
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(config, "%s", there)), 0o600); err != nil {
			t.Fatal(err)
		}
		var stderr strings.Builder
		status := Main(t.Context(), []string{"--check", "--config", file}, &stderr)
		if (status == 0) != (says == "") || !strings.Contains(stderr.String(), says) || strings.Contains(stderr.String(), "c4nary") {
			t.Errorf("%s: status %d, %s", config, status, &stderr)
		}
	}
}

// A flag that is taken sets a field: one that is only listed would be ignored.
func TestEveryFlagSetsAField(t *testing.T) {
	f := &flags{}
	flags := f.command(io.Discard).Flags()
	taken := map[string]bool{"config": true, "check": true, "ready": true}
	if err := new(config.Config).PutFlags(func(name string) string {
		taken[name] = true
		return ""
	}); err != nil {
		t.Fatal(err)
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if !taken[flag.Name] {
			t.Errorf("--%s is taken, and sets nothing", flag.Name)
		}
		delete(taken, flag.Name)
	})
	for name := range taken {
		t.Errorf("--%s sets a field, and is not taken", name)
	}
}

// Flags and variables of the environment are named beside the fields that they set: flags beat the environment, which beats the file.
func TestFlagsBeatTheEnvironmentWhichBeatsTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "drydock.yaml")
	if err := os.WriteFile(file, []byte("cluster: of-file\ntaskQueue: of-file\nlog: {format: json}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRYDOCK_TASK_QUEUE", "of-environment")
	t.Setenv("DRYDOCK_KUBERNETES_QPS", "7.5")
	t.Setenv("DRYDOCK_LISTEN", "127.0.0.1:1")
	var stderr strings.Builder
	var f flags
	cmd := f.command(&stderr)
	if err := cmd.ParseFlags([]string{"--config", file, "--listen", "127.0.0.1:2", "--log-level", "debug", "--kubeconfig", "k"}); err != nil {
		t.Fatal(err)
	}
	c, err := f.load()
	if err != nil {
		t.Fatal(err)
	}
	got := []any{c.Cluster, c.TaskQueue, c.Log.Format, c.Kubernetes.QPS, c.Listen, c.Log.Level, c.Kubernetes.Kubeconfig}
	if want := []any{"of-file", "of-environment", "json", float32(7.5), "127.0.0.1:2", "debug", "k"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if help := cmd.Flags().FlagUsages(); !strings.Contains(help, "address of '/metrics'") || !strings.Contains(help, "(default 127.0.0.1:8080)") {
		t.Error(help)
	}
}
