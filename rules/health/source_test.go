package health

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatANodeHas(t *testing.T) {
	created, changed := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC), time.Date(2026, 7, 2, 12, 0, 0, 0, time.UTC)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "False", LastTransitionTime: metav1.NewTime(changed)}},
	}}
	for name, c := range map[string]struct {
		condition UnhealthyCondition
		want      time.Time
		has       bool
		words     string
	}{
		"a condition":         {UnhealthyCondition{Type: "Ready", Status: "False"}, changed, true, "Ready False"},
		"another status":      {UnhealthyCondition{Type: "Ready", Status: "Unknown"}, time.Time{}, false, "Ready Unknown"},
		"another condition":   {UnhealthyCondition{Type: "Disk", Status: "False"}, time.Time{}, false, "Disk False"},
		"a missing condition": {UnhealthyCondition{Missing: "KernelDeadlock"}, time.Time{}, true, "KernelDeadlock missing"},
		"one that is there":   {UnhealthyCondition{Missing: "Ready"}, time.Time{}, false, "Ready missing"},
	} {
		since, has := c.condition.Since(node)
		what, how := c.condition.Words()
		if !since.Equal(c.want) || has != c.has || what+" "+how != c.words {
			t.Errorf("%s: %s, %t; %s %s", name, since, has, what, how)
		}
	}
}

func TestAMissingConditionIsOneEntry(t *testing.T) {
	decode := func(conditions string) error {
		_, err := Decode([]byte(`{"selector":{"matchLabels":{"pool":"blue"}},"maintenance":{"input":{}},"unhealthyConditions":[` + conditions + `]}`))
		return err
	}
	if err := decode(`{"missing":"KernelDeadlock","duration":"10m"},{"type":"KernelDeadlock","status":"True","duration":"1m"}`); err != nil {
		t.Error(err)
	}
	for conditions, want := range map[string]string{
		`{"missing":"A","type":"A","status":"B","duration":"1m"}`:              "unhealthyConditions[0]: names several things",
		`{"missing":"A","duration":"1m"},{"missing":"A","duration":"2m"}`:      "unhealthyConditions[1]: A missing is there twice",
		`{"missing":"` + strings.Repeat("x", maxWord+1) + `","duration":"1m"}`: "unhealthyConditions[0].missing: has 317 bytes",
		`{"missing":"A"}`: "unhealthyConditions[0].duration: required",
	} {
		if err := decode(conditions); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", conditions, err, want)
		}
	}
}

// TestAConditionThatIsRemovedCountsFromThen: a node that loses the condition after years has its duration of grace.
func TestAConditionThatIsRemovedCountsFromThen(t *testing.T) {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	observed := func(s *State, uid string, after time.Duration, matches ...Match) time.Time {
		s.Observe(Observation{At: at.Add(after), Nodes: []Facts{{Name: "w-01", UID: uid, CreatedAt: at.AddDate(-3, 0, 0), Matches: matches}}})
		if got := s.Nodes[0].Matches; len(got) == 1 {
			return got[0].Since
		}
		return time.Time{}
	}
	var s State
	for _, step := range []struct {
		uid   string
		after time.Duration
		want  time.Duration
	}{
		{"a", time.Minute, time.Minute}, {"a", 2 * time.Minute, time.Minute}, {"b", 3 * time.Minute, 3 * time.Minute},
	} {
		if since := observed(&s, step.uid, step.after, Match{Index: 1}); !since.Equal(at.Add(step.want)) {
			t.Errorf("after %s node %s is ill since %s, want %s", step.after, step.uid, since, at.Add(step.want))
		}
	}
	observed(&s, "b", 4*time.Minute)
	if since := observed(&s, "b", 5*time.Minute, Match{Index: 1}); !since.Equal(at.Add(5 * time.Minute)) {
		t.Errorf("what went and came again is ill since %s", since)
	}
}
