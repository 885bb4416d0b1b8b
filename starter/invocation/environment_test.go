package invocation

import (
	"strings"
	"testing"

	"drydock.dev/drydock/rules/spec"
)

func TestRequestorFromUserName(t *testing.T) {
	for user, want := range map[string]string{
		"ops":                    "ops",
		"Jane.Doe":               "Jane.Doe",
		`CORP\jane`:              "CORP-jane",
		"jane@example.com":       "jane-example.com",
		"_svc_":                  "svc",
		"x":                      "user-x",
		"":                       "manual",
		"---":                    "manual",
		"müller":                 "m-ller",
		strings.Repeat("a", 80):  strings.Repeat("a", 63),
		strings.Repeat("a.", 40): strings.TrimRight(strings.Repeat("a.", 32)[:63], "."),
	} {
		got := requestorFrom(user)
		if got != want {
			t.Errorf("requestorFrom(%q) = %q, want %q", user, got, want)
		}
		if err := spec.RequestorName(got); err != nil {
			t.Errorf("requestorFrom(%q): %v", user, err)
		}
	}
}

func TestLastOfDuplicateVariablesCounts(t *testing.T) {
	env := Environment{"A=1", "AB=2", "A=3", "EMPTY="}
	if got := env.Get("A"); got != "3" {
		t.Errorf("A = %q, want 3", got)
	}
	if value, ok := env.LookupEnv("EMPTY"); !ok || value != "" {
		t.Errorf("EMPTY = %q, %v", value, ok)
	}
	if _, ok := env.LookupEnv("B"); ok {
		t.Error("B is set")
	}
}
