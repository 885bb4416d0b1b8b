package secret_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drydock.dev/drydock/secret"
)

func file(t *testing.T, content string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestASecretIsReadWhereItIs(t *testing.T) {
	t.Setenv("DRYDOCK_TEST_SECRET", "from the environment\n")
	t.Setenv("DRYDOCK_TEST_EMPTY", "")
	full, empty, large := file(t, " two\nlines \r\n\n"), file(t, "\n"), file(t, strings.Repeat("x", 64<<10+1))
	for name, c := range map[string]struct {
		value       secret.Value
		want, wrong string
	}{
		"file":             {secret.Value{File: full}, " two\nlines ", ""},
		"variable":         {secret.Value{Env: "DRYDOCK_TEST_SECRET"}, "from the environment", ""},
		"no file":          {secret.Value{File: "/no/such"}, "", "reading a secret: open /no/such"},
		"a folder":         {secret.Value{File: t.TempDir()}, "", "reading a secret: read "},
		"empty file":       {secret.Value{File: empty}, "", "the secret file " + empty + " is empty"},
		"large file":       {secret.Value{File: large}, "", "has more than 65536 bytes"},
		"no variable":      {secret.Value{Env: "DRYDOCK_TEST_NOT_SET"}, "", "environment variable DRYDOCK_TEST_NOT_SET is not set"},
		"an empty one too": {secret.Value{Env: "DRYDOCK_TEST_EMPTY"}, "", "environment variable DRYDOCK_TEST_EMPTY is not set or empty"},
	} {
		got, err := c.value.Read()
		if got != c.want || (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s: %q, %v, want %q, %q", name, got, err, c.want, c.wrong)
		}
	}
}

func TestARotatedSecretIsReadAnew(t *testing.T) {
	v := secret.Value{File: file(t, "first")}
	for _, want := range []string{"first", "second"} {
		if err := os.WriteFile(v.File, []byte(want+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := v.Read(); err != nil || got != want {
			t.Errorf("%q, %v, want %s", got, err, want)
		}
	}
}

func TestWhatIsNoPlaceOfASecretIsRefusedWithoutShowingIt(t *testing.T) {
	for input, valid := range map[string]bool{
		`{"file": "/run/secret"}`: true, `{"env": "NAME"}`: true,
		`"canary"`: false, `{}`: false, `3`: false, `["canary"]`: false, `{"fil": "canary"}`: false,
		`{"file": "/canary", "env": "canary"}`: false, `{"file": 3}`: false, `{"value": "canary"}`: false,
	} {
		var holder struct {
			Token secret.Value `json:"token,omitzero"`
		}
		if err := json.Unmarshal([]byte(`{"token": `+input+`}`), &holder); err != nil {
			t.Errorf("%s: %v", input, err)
		}
		err := holder.Token.Validate()
		if (err == nil) != valid || err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", input, err)
		}
		if holder.Token.IsZero() {
			t.Errorf("%s counts as absent", input)
		}
	}
	if v := (secret.Value{}); !v.IsZero() || v.Validate() == nil {
		t.Error("no secret is not absent")
	}
}

func TestSecretsHideThemselves(t *testing.T) {
	t.Setenv("CANARY", "canary-value")
	v := secret.Value{Env: "CANARY"}
	asJSON, err := json.Marshal(map[string]any{"v": v, "p": &v})
	if err != nil {
		t.Fatal(err)
	}
	var asText, asLines strings.Builder
	slog.New(slog.NewTextHandler(&asText, nil)).Info("m", "v", v, "p", &v)
	slog.New(slog.NewJSONHandler(&asLines, nil)).Info("m", "v", v, "p", &v, "in", struct{ V secret.Value }{v})
	shown := []string{string(asJSON), asText.String(), asLines.String(), fmt.Sprint(v)}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		shown = append(shown, fmt.Sprintf(verb, v), fmt.Sprintf(verb, &v))
		if verb != "%x" {
			shown = append(shown, fmt.Sprintf("%v", map[string]secret.Value{verb: v}))
		}
	}
	for _, text := range shown {
		if strings.Contains(strings.ToLower(text), "canary") || !strings.Contains(text, "(secret)") && !strings.Contains(text, fmt.Sprintf("%x", "(secret)")) {
			t.Errorf("shown as %s", text)
		}
	}
}
