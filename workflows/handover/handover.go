// Package handover is how a run hands its state to the next, which a worker of another release may run. A state is a
// contract:
//
//   - fields that a build does not know are kept and handed on, wherever they stand;
//   - a state that needs a newer build says so in the field "needs", and makes an older one panic: the workflow task
//     fails until a newer worker takes it;
//   - a state that cannot be read makes a build panic too. It never ends the workflow.
//
// An argument that no earlier run has handed over is input and no state: the workflows refuse it themselves.
package handover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// reads is the newest form of states that this build reads, and needsField the field of a state that asks for one.
const (
	reads      = 1
	needsField = "needs"
)

// Unknown has the fields of a state that the build which read it does not know, and beside them what that build knew of the state then.
type Unknown struct{ rest, known any }

// Opaque is a large part of a state, a field of the struct, that is read and written as a whole: to look for fields in it that a build does
// not know would take longer than a workflow task has. A newer form of it needs a newer build.
type Opaque interface{ Opaque() }

// outline is a copy of a state in which the opaque parts are empty, and the names of these.
func outline(state any) (rest any, opaque []string) {
	value := reflect.ValueOf(state)
	if value.Kind() != reflect.Pointer || value.Elem().Kind() != reflect.Struct {
		return state, nil
	}
	copied := reflect.New(value.Elem().Type())
	copied.Elem().Set(value.Elem())
	for i := range copied.Elem().NumField() {
		field := copied.Elem().Type().Field(i)
		if field.IsExported() && field.Type.Implements(reflect.TypeFor[Opaque]()) {
			copied.Elem().Field(i).SetZero()
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			opaque = append(opaque, name)
		}
	}
	return copied.Interface(), opaque
}

// outlineOf is a state without its opaque parts.
func outlineOf(data []byte, opaque []string) ([]byte, error) {
	if len(opaque) == 0 {
		return data, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	for _, name := range opaque {
		delete(fields, name)
	}
	return json.Marshal(fields)
}

// Decode reads a state, and returns what of it has no place in the type of into.
func Decode(data []byte, into any) (Unknown, error) {
	_, opaque := outline(into)
	rest, err := outlineOf(data, opaque)
	if err != nil {
		return Unknown{}, err
	}
	given, err := treeOf(rest)
	if err != nil {
		return Unknown{}, err
	}
	if err := readable(given); err != nil {
		return Unknown{}, err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return Unknown{}, fmt.Errorf("reading the state: %w", err)
	}
	read, _ := outline(into)
	known, err := encode(read)
	if err != nil {
		return Unknown{}, err
	}
	if rest := without(given, known); rest != nil {
		return Unknown{rest, known}, nil
	}
	return Unknown{}, nil
}

// Encode writes a state, with what an earlier run handed over and this build does not know.
func Encode(state any, unknown Unknown) ([]byte, error) {
	if unknown.rest == nil {
		return json.Marshal(state) // a workflow task has a second, and a state may have a megabyte
	}
	tree, err := encode(state)
	if err != nil {
		return nil, err
	}
	return json.Marshal(with(tree, unknown.rest, unknown.known))
}

// Must panics where a state cannot be read or written, which fails the workflow task and not the workflow.
func Must(what string, err error) {
	if err != nil {
		panic(fmt.Sprintf("%s: %v: the workflow stands still until a worker of a release that can read it runs (docs/tasks/upgrade.md)", what, err))
	}
}

// readable refuses a state that needs a newer build.
func readable(tree any) error {
	object, ok := tree.(map[string]any)
	if !ok {
		return errors.New("the state is no JSON object")
	}
	needs, there := object[needsField]
	if !there {
		return nil
	}
	number, ok := needs.(json.Number)
	form, err := number.Int64()
	if !ok || err != nil || form > reads {
		return fmt.Errorf("the state needs a newer release (%s: %v; this one reads %d)", needsField, needs, reads)
	}
	return nil
}

// treeOf reads JSON without losing a digit.
func treeOf(data []byte) (tree any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	if decoder.More() {
		return nil, errors.New("reading the state: there is more than one value")
	}
	return tree, nil
}

func encode(state any) (any, error) {
	data, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("writing the state: %w", err)
	}
	return treeOf(data)
}

// without is what of a tree is not in known; nil is nothing.
func without(given, known any) any {
	switch given := given.(type) {
	case map[string]any:
		known, ok := known.(map[string]any)
		if !ok {
			return nil
		}
		rest := map[string]any{}
		for name, value := range given {
			if its, there := known[name]; !there {
				rest[name] = value
			} else if left := without(value, its); left != nil {
				rest[name] = left
			}
		}
		if len(rest) > 0 {
			return rest
		}
	case []any:
		known, ok := known.([]any)
		if !ok || len(known) != len(given) {
			return nil
		}
		rest, some := make([]any, len(given)), false
		for i := range given {
			rest[i] = without(given[i], known[i])
			some = some || rest[i] != nil
		}
		if some {
			return rest
		}
	}
	return nil
}

// with adds to a tree the rest that without has left. Before is what was known then, nil where that is the tree itself. What is known now
// comes first, and what was unknown below a field that was cleared since goes too.
func with(tree, rest, before any) any {
	switch rest := rest.(type) {
	case map[string]any:
		object, ok := tree.(map[string]any)
		if !ok {
			return tree
		}
		before, _ := before.(map[string]any)
		for name, value := range rest {
			its, there := object[name]
			was, known := before[name]
			switch {
			case there:
				object[name] = with(its, value, was)
			case !known:
				object[name] = value
			}
		}
	case []any:
		list, ok := tree.([]any)
		before, known := before.([]any)
		switch {
		case ok && known:
			addTo(list, rest, before)
		case ok && len(list) == len(rest):
			for i := range list {
				list[i] = with(list[i], rest[i], nil)
			}
		}
	}
	return tree
}

// addTo gives each entry of a list that is still there its unknown fields back: first to those that are as they were, then
// to those that have changed and are the same by their name.
func addTo(list, rest, before []any) {
	texts, named := make(map[string][]int, len(list)), make(map[string][]int, len(list))
	for i, entry := range list {
		text := textOf(entry)
		texts[text] = append(texts[text], i)
		if name := nameOf(entry); name != "" {
			named[name] = append(named[name], i)
		}
	}
	taken := make([]bool, len(list))
	take := func(places map[string][]int, key string, i int) (found bool) {
		for left := places[key]; len(left) > 0; left = places[key] {
			place := left[0]
			places[key] = left[1:]
			if !taken[place] {
				taken[place] = true
				list[place] = with(list[place], rest[i], before[i])
				return true
			}
		}
		return false
	}
	var changed []int
	for i := range rest {
		if rest[i] != nil && !take(texts, textOf(before[i]), i) {
			changed = append(changed, i)
		}
	}
	for _, i := range changed {
		take(named, nameOf(before[i]), i)
	}
}

// names are the fields that identify entries of lists, the most reliable first.
var names = []string{"id", "requestId", "runId", "uid", "pod", "node", "name", "sequence", "by"}

// nameOf returns the first of these fields that an entry has, with its value; empty if it has none.
func nameOf(entry any) string {
	object, ok := entry.(map[string]any)
	if !ok {
		return ""
	}
	for _, name := range names {
		switch value := object[name].(type) {
		case string:
			return name + " " + value
		case json.Number:
			return name + "=" + value.String()
		}
	}
	return ""
}

func textOf(tree any) string {
	data, err := json.Marshal(tree)
	if err != nil {
		panic(err) // it was read from JSON
	}
	return string(data)
}
