package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"drydock/config"
)

func TestGoodFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.good.yml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no good configurations to test: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			c, err := config.Load(file, func(string) string { return "" })
			if err == nil {
				err = c.Validate()
			}
			if err != nil {
				t.Error(err)
			}
		})
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
			c, err := config.Load(file, func(string) string { return "" })
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
	})
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
	}); err == nil || !strings.Contains(err.Error(), "DRYDOCK_KUBERNETES_BURST") {
		t.Errorf("error = %v, want one that names the variable", err)
	}
}

func TestMissingFile(t *testing.T) {
	if _, err := config.Load("testdata/none.yml", os.Getenv); err == nil {
		t.Error("a missing file was accepted")
	}
}
