// Package compose holds the compose files to what is promised of them, without an engine.
package compose

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const root = "../.."

type service struct {
	Image       string
	User        string
	NetworkMode string   `json:"network_mode"`
	CapDrop     []string `json:"cap_drop"`
	SecurityOpt []string `json:"security_opt"`
	ReadOnly    bool     `json:"read_only"`
	Command     []string
	Volumes     []string
	Profiles    []string
	Environment map[string]string
}

func services(t *testing.T, path string) map[string]service {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return file.Services
}

// byDefault is what a variable is without anybody who sets it.
var byDefault = regexp.MustCompile(`\$\{\w+:-([^}]*)\}`)

func TestServicesAreConfined(t *testing.T) {
	all := services(t, "docker-compose.yaml")
	for _, name := range []string{"postgres", "schema", "temporal", "setup", "ui", "ui-guard", "worker", "prometheus", "prometheus-guard", "grafana", "cli"} {
		s, ok := all[name]
		if !ok {
			t.Errorf("there is no service %s", name)
			continue
		}
		user := byDefault.ReplaceAllString(s.User, "$1")
		if !regexp.MustCompile(`^[1-9]\d*:\d+$`).MatchString(user) {
			t.Errorf("%s: user %q: want a number that is not root's", name, s.User)
		}
		if len(s.CapDrop) != 1 || s.CapDrop[0] != "ALL" || len(s.SecurityOpt) == 0 {
			t.Errorf("%s: it keeps capabilities, or may gain some", name)
		}
		if image := byDefault.ReplaceAllString(s.Image, "$1"); !strings.Contains(image, ":") {
			t.Errorf("%s: image %s has no tag", name, s.Image)
		}
		for _, volume := range s.Volumes {
			source, _, _ := strings.Cut(volume, ":")
			if !strings.HasPrefix(source, "./") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, name := range []string{"setup", "ui-guard", "prometheus-guard", "worker", "cli"} {
		if !all[name].ReadOnly {
			t.Errorf("%s: its root file system can be written", name)
		}
	}
}

// refused are ports that no browser sends a request to (https://fetch.spec.whatwg.org/#port-blocking): those of IRC, since browsers have refused any.
var refused = []string{"6665", "6666", "6667", "6668", "6669"}

// TestNoPageReachesTheUIs holds Temporal's UI and Prometheus, which answer every name, to ports that browsers refuse, with guards before them
// where people look for them; and the servers beside them to what they have against pages of other sites.
func TestNoPageReachesTheUIs(t *testing.T) {
	all := services(t, "docker-compose.yaml")
	plain := func(text string) string { return byDefault.ReplaceAllString(text, "$1") }
	option := func(service, name string) string {
		for _, arg := range all[service].Command {
			if value, is := strings.CutPrefix(arg, name+"="); is {
				return plain(value)
			}
		}
		return ""
	}
	for _, ui := range []struct{ guard, listens, flags, people string }{
		{"ui-guard", "127.0.0.1:" + plain(all["ui"].Environment["TEMPORAL_UI_PORT"]), "", "8233"},
		{"prometheus-guard", option("prometheus", "--web.listen-address"), " --read-only", "9090"},
	} {
		if host, port, _ := strings.Cut(ui.listens, ":"); host != "127.0.0.1" || !slices.Contains(refused, port) {
			t.Errorf("what is behind %s listens on %q, where browsers go", ui.guard, ui.listens)
		}
		if got, want := plain(strings.Join(all[ui.guard].Command, " ")), "ui-guard"+ui.flags+" --listen=127.0.0.1:"+ui.people+" --ui=http://"+ui.listens; got != want {
			t.Errorf("%s runs %q, want %q", ui.guard, got, want)
		}
	}
	if got, want := plain(all["grafana"].Environment["PROMETHEUS_URL"]), "http://"+option("prometheus", "--web.listen-address"); got != want {
		t.Errorf("Grafana asks %s, and Prometheus is %s", got, want)
	}
	if got := all["temporal"].Environment["FRONTEND_HTTP_PORT"]; got != "0" {
		t.Errorf("Temporal's HTTP API has port %q, and answers every page", got)
	}
	if all["grafana"].Environment["GF_SERVER_ENFORCE_DOMAIN"] != "true" {
		t.Error("Grafana answers every name")
	}
	if !slices.ContainsFunc(all["prometheus"].Command, func(arg string) bool { return strings.HasPrefix(arg, "--web.cors.origin=http://(localhost|") }) {
		t.Error("Prometheus lets every page read its answers")
	}
}

// What is not built here must not be pulled in the trial.
func TestTheTrialNeedsNoRegistry(t *testing.T) {
	local := services(t, "deploy/compose/local.yaml")
	for name, s := range services(t, "docker-compose.yaml") {
		image := byDefault.ReplaceAllString(s.Image, "$1")
		over := local[name]
		switch {
		case len(over.Profiles) > 0:
		case over.Image != "":
			image = over.Image
			fallthrough
		default:
			if !strings.HasPrefix(image, "drydock") || !strings.HasSuffix(image, ":local") {
				t.Errorf("%s: image %s is not built here", name, image)
			}
		}
	}
}

var latest = regexp.MustCompile(`(?m)[\w}"']:latest\b|^\s*tag: *"?latest|VERSION=latest|@latest\b|newTag: *latest`)

// A tag that moves is another program tomorrow.
func TestNothingSaysLatest(t *testing.T) {
	for _, text := range []string{"image: drydock:latest", "${IMAGE:-temporalio/temporal:latest}", `tag: "latest"`, "go install x@latest"} {
		if !latest.MatchString(text) {
			t.Fatalf("%q is not found", text)
		}
	}
	for _, start := range []string{"deploy", "docs", "docker-compose.yaml", "README.md", "Makefile", ".github", ".goreleaser.yaml"} {
		err := filepath.WalkDir(filepath.Join(root, start), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
				return err
			}
			data, err := os.ReadFile(path)
			if err == nil {
				if found := latest.Find(data); found != nil {
					t.Errorf("%s says %s: name a version", path, found)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
