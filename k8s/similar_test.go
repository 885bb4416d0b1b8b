package k8s_test

import (
	"slices"
	"testing"

	"drydock.dev/drydock/k8s"
)

func TestSimilar(t *testing.T) {
	names := []string{"worker-01", "worker-02", "worker-10", "worker-11", "control-plane", "gpu1.rack7.example.com", "a", "ab"}
	for name, want := range map[string][]string{
		"worker-1":       {"worker-01"},
		"wroker-01":      {"worker-01"},
		"Worker-02":      {"worker-02"},
		"worker-01":      nil, // not itself, and the others are other nodes
		"worker-03":      nil,
		"gpu1":           {"gpu1.rack7.example.com"},
		"control-plane1": {"control-plane"},
		"storage":        nil,
		"":               {"a"},
		"b":              {"a", "ab"},
	} {
		got := k8s.Similar(name, names)
		if len(got) > 3 || slices.Contains(got, name) {
			t.Errorf("Similar(%q) = %v", name, got)
		}
		if len(want) > 0 && (len(got) == 0 || got[0] != want[0]) || len(want) <= 1 && len(got) > len(want) && name != "" {
			t.Errorf("Similar(%q) = %v, want %v", name, got, want)
		}
	}
	if got := k8s.Similar("n", nil); got != nil {
		t.Errorf("Similar of no names = %v", got)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1}, {"abc", "acb", 1}, {"abc", "ab", 1},
		{"worker", "wroker", 1}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"knoten-ä", "knoten-a", 1}, {"ca", "abc", 3},
	} {
		if got := k8s.EditDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if there, back := k8s.EditDistance(c.a, c.b), k8s.EditDistance(c.b, c.a); there != back {
			t.Errorf("editDistance of %q and %q is %d and %d", c.a, c.b, there, back)
		}
	}
}
