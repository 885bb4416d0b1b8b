package devstack

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestAuditIsReadFromAnyPlace(t *testing.T) {
	first, second, begun := `{"verb":"get","stage":"ResponseComplete"}`+"\n", `{"verb":"list","objectRef":{"resource":"pods"}}`+"\n", `{"verb":"wat`
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(first+second+begun), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		since int
		parts []string
		want  []string
	}{
		{name: "from the beginning", want: []string{"get", "list"}},
		{name: "some lines", parts: []string{`"pods"`, "list"}, want: []string{"list"}},
		{name: "no line", parts: []string{`"pods"`, "get"}},
		{name: "from within a line", since: 5, want: []string{"list"}},
		{name: "from a line's beginning", since: len(first), want: []string{"list"}},
		{name: "from a line that is being written", since: len(first + second)},
		{name: "from the end", since: len(first + second + begun)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var verbs []string
			err := ReadAudit(path, int64(c.since), func(a Audited) { verbs = append(verbs, a.Verb) }, c.parts...)
			if err != nil || !slices.Equal(verbs, c.want) {
				t.Errorf("read %v, %v; want %v", verbs, err, c.want)
			}
		})
	}
	if err := ReadAudit(path, 1000, nil); err == nil || !strings.Contains(err.Error(), "rotated") {
		t.Errorf("behind the end: %v", err)
	}
	if err := os.WriteFile(path, []byte("nonsense\n"+first), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReadAudit(path, 0, func(Audited) {}); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a line that is no JSON: %v", err)
	}
}
