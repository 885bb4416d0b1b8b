// Package controllertest has what tests of workflows on the frame share.
package controllertest

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"drydock.dev/drydock/workflows/controller"
)

// Again decides, decides a second time at once, and expects the same decision in words and the same state. The state has to reach the next
// run as a whole: no field may hide another.
func Again(t *testing.T, c controller.Controller, turn controller.Turn, words func(controller.Decision) string) controller.Decision {
	t.Helper()
	if hidden := Hidden(reflect.TypeOf(c).Elem()); len(hidden) > 0 {
		t.Errorf("several fields of %T have the JSON names %q, those of controller.Base included", c, hidden)
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

// Hidden returns the JSON names that several fields of a state have, with those of the structs that it embeds. encoding/json drops or hides
// such fields, and does not tell cases apart when it reads.
func Hidden(state reflect.Type) (names []string) {
	count := map[string]int{}
	for _, f := range fieldsOf(state) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		if name = strings.ToLower(name); count[name] == 1 {
			names = append(names, name)
		}
		count[name]++
	}
	return names
}

// fieldsOf returns the fields that encoding/json writes of a struct as its own.
func fieldsOf(state reflect.Type) (fields []reflect.StructField) {
	for i := range state.NumField() {
		switch f := state.Field(i); {
		case f.Anonymous && f.Type.Kind() == reflect.Struct && f.Tag.Get("json") == "":
			fields = append(fields, fieldsOf(f.Type)...)
		case f.IsExported():
			fields = append(fields, f)
		}
	}
	return fields
}
