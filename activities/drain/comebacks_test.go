package drain

import (
	"strings"
	"testing"

	"drydock.dev/drydock/activities/activitytest"
)

func TestAPodThatCameBackStaysItsFirstOwners(t *testing.T) {
	for name, controllers := range map[string]int{"orphaned": 0, "adopted by another": 1} {
		back, late := newComebacks(), activitytest.Pod("late")
		back.evicted(activitytest.Pod("first"))
		back.notice(late)
		late.OwnerReferences = late.OwnerReferences[:controllers]
		for i := range late.OwnerReferences {
			late.OwnerReferences[i].UID, late.OwnerReferences[i].Name = "other", "other"
		}
		if back.wait(late).IsZero() {
			t.Errorf("%s: is not left alone", name)
		}
		before := back.wait(late)
		back.evicted(late)
		if text := back.explain(late); strings.Contains(text, "other") || !strings.Contains(text, "(1 came back") || !back.wait(late).After(before) {
			t.Errorf("%s: %s, until %s", name, text, back.wait(late))
		}
	}
}
