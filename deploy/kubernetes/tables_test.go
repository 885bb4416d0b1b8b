package kubernetes_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"drydock.dev/drydock/deploy/kubernetes"
)

// made compares a file with what is made of the manifests; UPDATE_GOLDEN=1 writes it instead.
func made(t *testing.T, file string, change func(content string) string) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := change(string(content))
	if want == string(content) {
		return
	}
	if os.Getenv("UPDATE_GOLDEN") == "" {
		t.Fatalf("%s is not what the manifests say: make it anew with UPDATE_GOLDEN=1 go test ./deploy/kubernetes/", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func parts(t *testing.T) []kubernetes.Part {
	t.Helper()
	parts, err := kubernetes.Parts()
	if err != nil {
		t.Fatal(err)
	}
	return parts
}

// TestTheWorkerKnowsWhatGrantsAPermission keeps what errors about missing permissions go by what the manifests grant.
func TestTheWorkerKnowsWhatGrantsAPermission(t *testing.T) {
	var rules []string
	for _, part := range parts(t) {
		for _, g := range part.Grants {
			for _, group := range g.APIGroups {
				rule, err := json.Marshal(struct {
					Part      string   `json:"part"`
					Namespace string   `json:"namespace,omitempty"`
					Group     string   `json:"group,omitempty"`
					Resources []string `json:"resources"`
					Verbs     []string `json:"verbs"`
				}{part.Name, g.Namespace, group, g.Resources, g.Verbs})
				if err != nil {
					t.Fatal(err)
				}
				rules = append(rules, "  "+string(rule))
			}
		}
	}
	made(t, "../../rules/preflight/granted.json", func(string) string { return "[\n" + strings.Join(rules, ",\n") + "\n]\n" })
}

// TestTheReferenceListsThePermissions keeps the reference's table of permissions what the manifests grant.
func TestTheReferenceListsThePermissions(t *testing.T) {
	table := "| file | feature | permissions |\n| --- | --- | --- |\n"
	for _, part := range parts(t) {
		table += fmt.Sprintf("| [%s](../../deploy/kubernetes/%s) | %s | %s |\n", part.File, part.File, feature(t, part), permissions(t, part))
	}
	made(t, "../../docs/reference/permissions.md", func(content string) string {
		const begin, end = "<!-- permissions: made of deploy/kubernetes -->\n", "<!-- end of permissions -->\n"
		before, rest, found := strings.Cut(content, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("docs/reference/permissions.md has no %q up to %q", begin, end)
		}
		return before + begin + table + end + after
	})
}

// feature is what the file says in its first sentence.
func feature(t *testing.T, part kubernetes.Part) string {
	t.Helper()
	if part.Name == kubernetes.Base {
		return "any maintenance"
	}
	text, _ := read(t, part.File)
	header, _, _ := strings.Cut(text, "\napiVersion:")
	about, found := strings.CutPrefix(strings.Join(strings.Fields(strings.ReplaceAll(header, "#", "")), " "), "Feature: ")
	if !found {
		t.Errorf("%s does not name its feature", part.File)
	}
	sentence, _, _ := strings.Cut(about, ". ")
	return sentence
}

// permissions are those of a part in words.
func permissions(t *testing.T, part kubernetes.Part) string {
	t.Helper()
	var words []string
	namespace := ""
	for _, g := range part.Grants {
		for _, group := range g.APIGroups {
			var text bytes.Buffer
			if g.Namespace != namespace {
				namespace = g.Namespace
				fmt.Fprintf(&text, "in `%s`: ", namespace)
			}
			text.WriteString(strings.Join(g.Resources, ", "))
			if group != "" {
				fmt.Fprintf(&text, " (%s)", group)
			}
			words = append(words, text.String()+" "+strings.Join(g.Verbs, ", "))
		}
	}
	_, objects := read(t, part.File)
	for _, object := range objects {
		if role, ok := object.(*rbacv1.ClusterRole); ok && role.AggregationRule != nil {
			for _, selector := range role.AggregationRule.ClusterRoleSelectors {
				for key, value := range selector.MatchLabels {
					words = append(words, fmt.Sprintf("what ClusterRoles with the label `%s: %q` grant", key, value))
				}
			}
		}
	}
	return strings.Join(words, "; ")
}
