package config_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/config"
	"drydock.dev/drydock/secret"
)

// meaning is a configuration without what JSON leaves open, such as the order of fields.
func meaning(t *testing.T, c config.Config) (value any) {
	t.Helper()
	text, err := json.Marshal(c)
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// FuzzParse: whatever is in the file, it is refused, or means the same once it is written down again.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no configurations to begin with: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		first := config.Default()
		if err := config.Parse(input, &first, kinds); err != nil || first.Validate() != nil {
			return
		}
		text, err := yaml.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		// Where secrets are is hidden in what is written.
		if bytes.Contains(text, []byte(secret.Hidden)) {
			return
		}
		again := config.Default()
		if err := config.Parse(text, &again, kinds); err != nil {
			t.Fatalf("what was accepted is refused: %v\n%s", err, text)
		}
		if err := again.Validate(); err != nil {
			t.Errorf("what was valid is not: %v\n%s", err, text)
		}
		if diff := cmp.Diff(meaning(t, first), meaning(t, again)); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
	})
}
