package api

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestWhatSomebodyHasSettledBlocksNoMore(t *testing.T) {
	all := DrainProgress{
		Blockers: []Blocker{
			{Pod: "a/bare", Reason: ReasonNoController}, {Pod: "a/orphan", Reason: ReasonOrphaned},
			{Pod: "a/cache", Reason: ReasonLocalStorage}, {Pod: "a/web", Reason: "Budget"},
		},
		Reasons: map[string]int{ReasonNoController: 1, ReasonOrphaned: 1, ReasonLocalStorage: 3, "Budget": 1},
	}
	for name, c := range map[string]struct {
		status Status
		want   string
		left   int
	}{
		"nothing was said":      {Status{}, "a/bare a/orphan a/cache a/web", 6},
		"a pod is skipped":      {Status{SkippedPods: []string{"a/web"}}, "a/bare a/orphan a/cache", 5},
		"all may be lost":       {Status{Consents: []ConsentGiven{{Force: true}}}, "a/cache a/web", 4},
		"data may be lost":      {Status{Consents: []ConsentGiven{{DeleteEmptyDir: true}}}, "a/bare a/orphan a/web", 5},
		"one pod may be lost":   {Status{Consents: []ConsentGiven{{Force: true, DeleteEmptyDir: true, Pods: []string{"a/bare", "a/web"}}}}, "a/orphan a/cache a/web", 5},
		"a pod of another name": {Status{Consents: []ConsentGiven{{Force: true, Pods: []string{"b/bare"}}}}, "a/bare a/orphan a/cache a/web", 6},
	} {
		got := c.status.Unsettled(all)
		var pods []string
		for _, b := range got.Blockers {
			pods = append(pods, b.Pod)
		}
		left := 0
		for n := range maps.Values(got.Reasons) {
			left += n
		}
		if strings.Join(pods, " ") != c.want || left != c.left {
			t.Errorf("%s: %v, %v; want %s, %d in all", name, pods, got.Reasons, c.want, c.left)
		}
	}
	if !slices.Equal(slices.Sorted(maps.Values(all.Reasons)), []int{1, 1, 1, 3}) {
		t.Errorf("the progress has changed: %v", all.Reasons)
	}
}
