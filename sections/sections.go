// Package sections reads sections of the configuration whose entries have names, so that errors name the entry and its field.
package sections

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/spec"
)

// Decode reads a section strictly: an object with an entry for each name. The error begins every line with the entry's field. A decoder by
// itself does not say which entry of a map is wrong.
func Decode[T any](section string, data []byte) (map[string]T, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return nil, fmt.Errorf("%s: want an object with an entry for each name", section)
	}
	entries := make(map[string]T, len(raw))
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var entry T
		problems = append(problems, Under(section+"."+name, spec.DecodeStrict(raw[name], &entry))...)
		entries[name] = entry
	}
	return entries, errors.Join(problems...)
}

// DecodeEach decodes entries that Decode has left undecoded; the error begins every line with the entry's field.
func DecodeEach[T any](section string, entries map[string]T, decode func(entry *T) error) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		entry := entries[name]
		problems = append(problems, Under(section+"."+name, decode(&entry))...)
		entries[name] = entry
	}
	return errors.Join(problems...)
}

// fieldPath is what begins a line that names a field already.
var fieldPath = regexp.MustCompile(`^[a-zA-Z][\w.\[\]-]*: `)

// Under puts a section's name in front of every line of its error; there are none of nil.
func Under(section string, err error) []error {
	if err == nil {
		return nil
	}
	var problems []error
	for line := range strings.Lines(err.Error()) {
		separator := ": "
		if fieldPath.MatchString(line) {
			separator = "."
		}
		problems = append(problems, errors.New(section+separator+strings.TrimSuffix(line, "\n")))
	}
	return problems
}
