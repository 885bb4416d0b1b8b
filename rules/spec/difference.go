package spec

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
)

// Difference is a field in which a running maintenance differs from a request to start one.
type Difference struct {
	Field   string `json:"field"`
	Running any    `json:"running"`
	Asked   any    `json:"asked"`
}

// Differences compares the fields that input sets with those of the running maintenance; asked is the input decoded. Fields that input
// leaves out do not count: there the running maintenance's own input, or the worker's defaults, decided.
func Differences(input map[string]any, asked, running Maintenance) []Difference {
	var found []Difference
	askedFields, runningFields := asObject(asked), asObject(running)
	for _, path := range leaves("", input) {
		// What is a list in the input, such as a plan in the KEP's form, may be an object in the maintenance.
		a, r := at(askedFields, path), at(runningFields, path)
		if path == "additionalRequestors" && contains(running.Requestors(), asked.AdditionalRequestors) {
			// Others may have joined since.
			continue
		}
		if !reflect.DeepEqual(a, r) {
			found = append(found, Difference{Field: path, Running: r, Asked: a})
		}
	}
	return found
}

func contains(all, some []string) bool {
	for _, s := range some {
		if !slices.Contains(all, s) {
			return false
		}
	}
	return true
}

// asObject is a maintenance as JSON has it. Both sides go through the same encoding, so that what it leaves out is
// equal to what it leaves out.
func asObject(m Maintenance) map[string]any {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // a Maintenance holds nothing that cannot be encoded
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		panic(err)
	}
	return object
}

// leaves are the paths of all values that are not objects, in order; lists count as values.
func leaves(prefix string, object map[string]any) []string {
	var paths []string
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if inner, ok := object[key].(map[string]any); ok {
			paths = append(paths, leaves(prefix+key+".", inner)...)
			continue
		}
		paths = append(paths, prefix+key)
	}
	return paths
}

func at(object map[string]any, path string) any {
	for key := range object {
		if key == path {
			return object[key]
		}
		if inner, ok := object[key].(map[string]any); ok && len(path) > len(key) && path[:len(key)+1] == key+"." {
			return at(inner, path[len(key)+1:])
		}
	}
	return nil
}
