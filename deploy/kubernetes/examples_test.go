package kubernetes_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drydock.dev/drydock/checks"
	"drydock.dev/drydock/checks/kinds"
	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/rules/profile"
	"drydock.dev/drydock/rules/profile/cel"
	"drydock.dev/drydock/rules/profile/check"
	"drydock.dev/drydock/rules/spec"
)

// The examples of work are Jobs that the worker takes, of images that never change under their name.
func TestTheExamplesAreWorkThatTheWorkerTakes(t *testing.T) {
	files, err := filepath.Glob("examples/*-job.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		var c checks.Config
		config := `{"work": {"example": {"job": {"templateFile": "` + file + `", "namespace": "drydock-work"}}}}`
		if err := spec.DecodeStrict([]byte(config), &c); err != nil {
			t.Fatal(err)
		}
		if err := c.Decode(kinds.All()); err != nil {
			t.Fatal(err)
		}
		if _, err := checks.New(c, k8stest.NewFake(), "test"); err != nil {
			t.Error(err)
		}
		text, _ := read(t, file)
		for line := range strings.Lines(text) {
			if image, ok := strings.CutPrefix(strings.TrimSpace(line), "image: "); ok && (!strings.Contains(image, "@sha256:") || strings.Contains(image, "latest")) {
				t.Errorf("%s: %s is not one image for ever", file, image)
			}
		}
	}
}

// The examples of profiles are taken, here and by maintenance-controller: nothing is to be warned of.
func TestTheExamplesAreProfilesThatTheWorkerTakes(t *testing.T) {
	files, err := filepath.Glob("examples/profiles-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("files %v, %v", files, err)
	}
	environment := profile.Environment{
		Variable:    func(name string) (string, bool) { return "https://hooks.example.com/T/B/x", name == "SLACK_HOOK" },
		Environment: check.Environment{CEL: cel.Compile},
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if found := profile.Lint(text, environment); len(found.Problems)+len(found.Warnings) > 0 {
			t.Errorf("%s: %v %v", file, found.Problems, found.Warnings)
		}
		c, err := profile.Load(text, environment)
		if err != nil {
			t.Fatal(err)
		}
		if name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "profiles-"), ".yaml"); !c.Known(name) {
			t.Errorf("%s has no profile %s", file, name)
		}
	}
}
