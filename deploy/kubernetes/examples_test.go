package kubernetes_test

import (
	"path/filepath"
	"strings"
	"testing"

	"drydock/checks"
	"drydock/checks/kinds"
	"drydock/k8s/k8stest"
	"drydock/rules/spec"
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
