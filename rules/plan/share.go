package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/bounds"
	"drydock.dev/drydock/rules/number"
)

// own are the fields of a maintenance's input in which plans that share a node may differ: they say who wants it, from when on and
// whom it notifies, not what is done.
var own = []string{"reason", "ticket", "owner", "notify", "windows", "notBefore"}

// shownOfField bounds what is shown of a field, in bytes, and shownFields how many are.
const (
	shownOfField = 120
	shownFields  = 5
)

// Unshareable says in words in which fields two plans' maintenances differ that they would have to share; empty is in none.
// Each comes with the name of its plan.
func Unshareable(planA string, a json.RawMessage, planB string, b json.RawMessage) string {
	ofA, ofB := fieldsOf(a), fieldsOf(b)
	names := slices.Concat(slices.Collect(maps.Keys(ofA)), slices.Collect(maps.Keys(ofB)))
	slices.Sort(names)
	var differ []string
	for _, name := range slices.Compact(names) {
		if slices.Contains(own, name) || bytes.Equal(ofA[name], ofB[name]) {
			continue
		}
		differ = append(differ, fmt.Sprintf("maintenance.%s is %s in plan %s and %s in plan %s",
			bounds.Cut(name, shownOfField), canonical(ofA[name]), planA, canonical(ofB[name]), planB))
	}
	if more := len(differ) - shownFields; more > 0 {
		differ = append(differ[:shownFields], "and "+number.Form(more, "more field differs", "more fields differ"))
	}
	return strings.Join(differ, "; ")
}

// Settings stand for what plans that share a node may not differ in: two inputs have the same where Unshareable finds nothing.
func Settings(input json.RawMessage) string {
	fields := fieldsOf(input)
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(own, name) {
			fmt.Fprintf(sum, "%q %s\n", name, fields[name])
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:8])
}

// fieldsOf are the fields of an object in canonical form; nil if it is none.
func fieldsOf(input json.RawMessage) map[string][]byte {
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(input))
	decoder.UseNumber()
	if decoder.Decode(&fields) != nil {
		return nil
	}
	texts := make(map[string][]byte, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		texts[name], _ = json.Marshal(fields[name]) // it was read from JSON
	}
	return texts
}

func canonical(value []byte) string {
	if value == nil {
		return "absent"
	}
	return bounds.Cut(string(value), shownOfField)
}
