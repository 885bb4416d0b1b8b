package plan

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"drydock.dev/drydock/api"
	"drydock.dev/drydock/lab/e2e/site"
)

func TestSlowAPlanIsAPictureInATerminal(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 10}")
	s.Exits(s.AtTerminal("n", "plan", "create", "kernel", "worker-01"), 3, "Start this plan? [y/N]", "not confirmed; nothing was started")
	s.Exits(s.AtTerminal("y", "plan", "create", "kernel", "--all", "--canary", "1", "--ready-timeout", "3s", "--on-ready-timeout", "release", "--max-parallel", "3"), 0,
		"Warning: these are all", "plan started")
	out := s.InTerminal(50, "plan", "status", "kernel", "--watch")
	for _, want := range []string{"\x1b[33mRunning\x1b[0m", "\x1b[32mCompleted\x1b[0m", "\x1b[33m>", "\x1b[32m#", "\x1b[J", "# 1 done"} {
		if !strings.Contains(out, want) {
			t.Errorf("the picture has no %q:\n%q", want, out)
		}
	}
	s.Environment = append(s.Environment, "NO_COLOR=1")
	out = s.InTerminal(50, "plan", "status", "kernel", "--watch")
	last := out[max(0, strings.LastIndex(out, "kernel  Completed")):]
	if strings.Contains(out, "\x1b[3") || !strings.Contains(last, strings.Repeat("#", 10)) {
		t.Errorf("without colours it ends with\n%q", last)
	}
	for line := range strings.Lines(last) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(strings.ReplaceAll(line, "\x1b[K", ""), "\n")); n > 50 {
			t.Errorf("a line has %d columns of 50: %q", n, line)
		}
	}
}

func TestSlowAPlanIsRecorded(t *testing.T) {
	s := site.New(t, "scheduler: {maxParallel: 10}")
	s.MustDrydock("plan", "create", "kernel", "--all", "--yes", "--canary", "1", "--max-parallel", "2", "--ready-timeout", "2s", "--on-ready-timeout", "release",
		"--reason", "kernel 6.18")
	r := s.Record("plan-status-watch", 90, "plan", "status", "kernel", "--watch")
	if last := r.Last(); !strings.Contains(last, "Completed") || strings.Contains(last, "expected") || r.Screens() < 5 {
		t.Errorf("%d screens, the last is\n%s", r.Screens(), last)
	}
	if svg := r.SVG(); xml.Unmarshal(svg, new(struct{})) != nil || bytes.Contains(svg, []byte("\x1b")) {
		t.Errorf("the picture is\n%s", svg)
	}
}

func TestCompletionKnowsPlans(t *testing.T) {
	s := site.New(t, "")
	run := newPlan(s, "kernel", `{"nodes":["worker-01","worker-02"],"requestor":"ops"}`)
	untilReadyOf(s, run, "worker-01")
	untilPlan(s, run, "runs", func(p api.PlanStatus) bool { return p.Counts.Running == 1 })
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "pause", ""}, "kernel\n"},
		{[]string{"plan", "status", "k"}, "kernel\n"},
		{[]string{"plan", "status", "kernel", "--state", "f"}, "failed\n"},
		{[]string{"plan", "skip", ""}, "kernel\n"},
		{[]string{"plan", "skip", "kernel", "worker-01", ""}, "worker-02\n:"},
		{[]string{"plan", "create", "bios", "worker-0"}, "worker-03\n"},
		{[]string{"plan", "create", "bios", "--order", ""}, "fewestPods\n"},
		{[]string{"plan", "create", "bios", "--drain-mode", ""}, "external\n"},
	} {
		s.Eventually("the list has the plan", func() error {
			if out := s.MustDrydock(append([]string{"__complete"}, c.args...)...); !strings.Contains(out, c.want) {
				return fmt.Errorf("after %v: %q, want %q", c.args, out, c.want)
			}
			return nil
		})
	}
}
