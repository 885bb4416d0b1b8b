// Package controllertest has what tests of workflows on the frame share.
package controllertest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"drydock.dev/drydock/workflows/controller"
	"drydock.dev/drydock/workflows/handover/handovertest"
)

// Again decides, decides a second time at once, and expects the same decision in words and the same state. The state has to reach the next
// run as a whole: no field may hide another.
func Again(t *testing.T, c controller.Controller, turn controller.Turn, words func(controller.Decision) string) controller.Decision {
	t.Helper()
	// encoding/json drops or hides fields of one name, and does not tell cases apart when it reads.
	found := map[string]bool{}
	for _, field := range handovertest.FieldsOf(reflect.TypeOf(c).Elem()) {
		name := strings.ToLower(field.Path)
		if found[name] {
			t.Errorf("several fields of %T have the JSON name %q, those of controller.Base included", c, name)
		}
		found[name] = true
	}
	d := c.Decide(turn)
	before := stateOf(t, c)
	if again := words(c.Decide(turn)); again != words(d) || stateOf(t, c) != before {
		t.Errorf("called again it decides %q", again)
	}
	return d
}

func stateOf(t *testing.T, c controller.Controller) string {
	t.Helper()
	state, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(state)
}
