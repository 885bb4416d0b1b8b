package maintenance

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestTablesFitTheTerminal(t *testing.T) {
	s := site.New(t, "")
	s.MustDrydock("start", "worker-01", "--wait", "--reason", strings.Repeat("a long story ", 12))
	s.MustDrydock("start", "worker-10", "--reason", "the second of one slot")
	s.UntilStatus(s.RunOf("worker-10"), "behind the first", func(status api.Status) bool { return strings.Contains(status.WaitingFor, "worker-01") })
	s.Eventually("the list has both", func() error {
		if out := s.MustDrydock("list"); strings.Count(out, "\n") != 3 {
			return errors.New(out)
		}
		return nil
	})
	s.Environment = append(s.Environment, "NO_COLOR=1")
	for _, width := range []int{60, 80, 120} {
		for _, args := range [][]string{{"list"}, {"status", "worker-01"}, {"limits"}, {"history", "worker-01", "--details"}} {
			out := s.InTerminal(width, args...)
			if !strings.Contains(out, "worker-01") || strings.Contains(out, "\x1b") {
				t.Errorf("%v at %d: %q", args, width, out)
			}
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("%v: %d columns of %d: %s", args, n, width, line)
				}
			}
		}
	}
	if out := s.InTerminal(60, "list"); strings.Count(out, "\n") != 3 || !strings.Contains(out, "…") {
		t.Errorf("a row of a list is not one line:\n%s", out)
	}
	if out := s.InTerminal(60, "list", "-o", "wide"); !strings.Contains(out, strings.Repeat("a long story ", 11)) {
		t.Errorf("-o wide is cut:\n%s", out)
	}
	s.Environment = append(s.Environment, "NO_COLOR=")
	if out := s.InTerminal(80, "list"); !strings.Contains(out, "\x1b[32mReady\x1b[0m") {
		t.Errorf("no colours in %q", out)
	}
	if out := s.MustDrydock("list"); strings.Contains(out, "\x1b") || strings.Contains(out, "…") {
		t.Errorf("a pipe gets %q", out)
	}

	for want, args := range map[string][]string{
		"worker-01\nworker-10\n": {"list", "-o", "name"},
		"worker-01\n":            {"list", "-o", "name", "--phase", "ready"},
		"worker-10\nworker-01\n": {"list", "-o", "name", "--sort-by", "phase"},
	} {
		if out := s.MustDrydock(args...); out != want {
			t.Errorf("%v: %q, want %q", args, out, want)
		}
	}
	if out := s.MustDrydock("list", "--no-headers"); !strings.HasPrefix(out, "worker-01 ") || strings.Count(out, "\n") != 2 {
		t.Errorf("without headers: %q", out)
	}
}
