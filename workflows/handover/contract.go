package handover

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// Contract is what an earlier release accepts as the state of a workflow. It decodes strictly, and ends the workflow where it finds a field
// that it does not know.
//
// So the payload has the fields that release knows, and the metadata of the payload has the rest, which that release neither reads nor hands
// on. Where the workflow needs the rest, the payload has Standstill in place of the state, so that the workflow stands still with that
// release.
type Contract struct {
	Fields Fields
	// Dispensable are the paths of later fields that the earlier release can do without: they are only shown to people.
	Dispensable []string
	// Values has the values that the earlier release knows, for the paths of fields where it has to know them.
	Values map[string][]string
	// Standstill is a state with which the earlier release fails the workflow task before it does anything. Where it is empty, the earlier
	// release gets the whole state.
	Standstill string
}

// Keys of the metadata of a payload: the part of a state that is not in the payload, and a state in whose place the payload
// has a Standstill.
const (
	metadataRest  = "drydock-rest"
	metadataState = "drydock-state"
)

// Write returns the state as a run hands it to the next.
func (c Contract) Write(state any, unknown Unknown) (converter.RawValue, error) {
	full, err := Encode(state, unknown)
	if err != nil {
		return converter.RawValue{}, err
	}
	tree, err := treeOf(full)
	if err != nil {
		return converter.RawValue{}, err
	}
	s := splitter{Contract: c}
	within := s.within(tree, c.Fields, "")
	rest := without(tree, within)
	switch {
	case s.needed && c.Standstill != "":
		return payload([]byte(c.Standstill), metadataState, full), nil
	case s.needed || rest == nil:
		return payload(full, "", nil), nil
	}
	known, err := json.Marshal(within)
	beside, err2 := json.Marshal(rest)
	if err := errors.Join(err, err2); err != nil {
		return converter.RawValue{}, fmt.Errorf("writing the state: %w", err)
	}
	return payload(known, metadataRest, beside), nil
}

func payload(data []byte, key string, beside []byte) converter.RawValue {
	metadata := map[string][]byte{converter.MetadataEncoding: []byte(converter.MetadataEncodingJSON)}
	if key != "" {
		metadata[key] = beside
	}
	return converter.NewRawValue(&commonpb.Payload{Metadata: metadata, Data: data})
}

// Read reads a state that Write, or the earlier release, has written.
func Read(raw converter.RawValue, into any) (Unknown, error) {
	full, err := whole(raw.Payload())
	if err != nil {
		return Unknown{}, err
	}
	return Decode(full, into)
}

// whole returns the state in a payload and its metadata.
func whole(p *commonpb.Payload) ([]byte, error) {
	if state, there := p.GetMetadata()[metadataState]; there {
		return state, nil
	}
	beside, there := p.GetMetadata()[metadataRest]
	if !there {
		return p.GetData(), nil
	}
	known, err := treeOf(p.GetData())
	if err != nil {
		return nil, err
	}
	rest, err := treeOf(beside)
	if err != nil {
		return nil, err
	}
	return json.Marshal(with(known, rest, nil))
}

// splitter finds the part of a state that a release knows.
type splitter struct {
	Contract
	// needed: the workflow cannot go on without what the release does not know.
	needed bool
}

// within returns the part of a tree that fields name.
func (s *splitter) within(tree any, fields Fields, path string) any {
	switch tree := tree.(type) {
	case string:
		values, there := s.Values[path]
		s.needed = s.needed || there && !slices.Contains(values, tree)
	case []any:
		entry, ok := fields[EveryEntry]
		if !ok {
			return tree
		}
		known := make([]any, len(tree))
		for i, value := range tree {
			known[i] = s.within(value, entry, path+"."+EveryEntry)
		}
		return known
	case map[string]any:
		if len(fields) > 0 { // otherwise all fields below are known
			return s.withinObject(tree, fields, path)
		}
	}
	return tree
}

// withinObject ignores an unknown field that is empty or dispensable.
func (s *splitter) withinObject(object map[string]any, fields Fields, path string) any {
	known := map[string]any{}
	for name, value := range object {
		below, there := fields[name]
		place := joinPath(path, name)
		if all, ok := fields[EveryKey]; ok {
			below, there, place = all, true, joinPath(path, EveryKey)
		}
		if there {
			known[name] = s.within(value, below, place)
		} else if !slices.Contains([]string{"null", "false", `""`, "0", "[]", "{}"}, textOf(value)) {
			s.needed = s.needed || !slices.Contains(s.Dispensable, place)
		}
	}
	return known
}

// Fields are the fields of a state, by name, and those below each. A field without any is known with all that is below.
type Fields map[string]Fields

// EveryEntry and EveryKey stand in Fields for the entries of a list, and for the keys of a map.
const (
	EveryEntry = "[]"
	EveryKey   = "*"
)

// ParseFields reads fields from text, a path a line.
func ParseFields(text string) Fields {
	all := Fields{}
	for path := range strings.FieldsSeq(text) {
		at := all
		for name := range strings.SplitSeq(path, ".") {
			if at[name] == nil {
				at[name] = Fields{}
			}
			at = at[name]
		}
	}
	return all
}

func joinPath(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
