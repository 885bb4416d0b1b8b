// Package controllertest has what tests of workflows on the frame share.
package controllertest

import (
	"encoding/json"
	"testing"

	"drydock/workflows/controller"
)

// Again decides, decides a second time at once, and expects the same decision in words and the same state.
func Again(t *testing.T, c controller.Controller, turn controller.Turn, words func(controller.Decision) string) controller.Decision {
	t.Helper()
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
