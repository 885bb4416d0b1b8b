package sections

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/secret"
)

// Kind is a field of an entry whose configuration belongs to a package of its own. C is what the configurations of all
// kinds of such an entry can do.
type Kind[C any] struct {
	// Name is the field's.
	Name string
	// Config is a pointer to an empty configuration: one like it is made to read into.
	Config C
}

// Like returns a pointer to a zero value of the type that of points to.
func Like[C any](of C) C { return reflect.New(reflect.TypeOf(of).Elem()).Interface().(C) }

// Chosen is a kind that an entry has, with its configuration.
type Chosen[C any] struct {
	Kind   string
	Config C
}

// Raw is a part of the configuration that was read and not decoded, because the kinds that it may have are not known. It
// is not shown: what a kind would hide may be in it.
type Raw []byte

// UnmarshalJSON keeps the text.
func (r *Raw) UnmarshalJSON(data []byte) error {
	*r = slices.Clone(data)
	return nil
}

// MarshalJSON hides the text.
func (Raw) MarshalJSON() ([]byte, error) { return json.Marshal(secret.Hidden) }

// String hides the text.
func (Raw) String() string { return secret.Hidden }

// GoString hides the text from %#v.
func (Raw) GoString() string { return secret.Hidden }

// DecodeKinds reads an object strictly: the fields of common, a pointer to a struct, and those kinds that it has, which
// come back in the order of kinds. It decodes into one struct with all of these fields, so that errors are those of any
// other object.
func DecodeKinds[C any](data []byte, common any, kinds []Kind[C]) ([]Chosen[C], error) {
	known := reflect.ValueOf(common).Elem()
	fields := make([]reflect.StructField, 0, known.NumField()+len(kinds))
	for field := range known.Type().Fields() {
		fields = append(fields, reflect.StructField{Name: field.Name, Type: field.Type, Tag: field.Tag})
	}
	configs := make([]C, len(kinds))
	for i, kind := range kinds {
		configs[i] = Like(kind.Config)
		tag := reflect.StructTag(fmt.Sprintf("json:%q", kind.Name))
		fields = append(fields, reflect.StructField{Name: fmt.Sprintf("Kind%d", i), Type: reflect.TypeOf(configs[i]), Tag: tag})
	}
	object := reflect.New(reflect.StructOf(fields))
	var present map[string]json.RawMessage
	_ = json.Unmarshal(data, &present) // what is no object is refused below
	for i, kind := range kinds {
		if _, ok := present[kind.Name]; ok {
			object.Elem().Field(known.NumField() + i).Set(reflect.ValueOf(configs[i]))
		}
	}
	if err := spec.DecodeStrict(data, object.Interface()); err != nil {
		return nil, err
	}
	for i := range known.NumField() {
		known.Field(i).Set(object.Elem().Field(i))
	}
	var chosen []Chosen[C]
	for i, kind := range kinds {
		if _, ok := present[kind.Name]; ok {
			chosen = append(chosen, Chosen[C]{Kind: kind.Name, Config: configs[i]})
		}
	}
	return chosen, nil
}

// One refuses an entry that has not exactly one of the kinds.
func One[C any](chosen []Chosen[C], kinds []Kind[C]) error {
	if len(chosen) == 1 {
		return nil
	}
	had, want := []string{"none"}, make([]string, len(kinds))
	for i, c := range chosen {
		had = append(had[:i], c.Kind)
	}
	for i, kind := range kinds {
		want[i] = kind.Name
	}
	return fmt.Errorf("has %s: want exactly one of %s", strings.Join(had, " and "), strings.Join(want, ", "))
}

// EncodeKinds writes what DecodeKinds reads.
func EncodeKinds[C any](common any, chosen []Chosen[C]) ([]byte, error) {
	text, err := json.Marshal(common)
	if err != nil {
		return nil, err
	}
	object := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, err
	}
	for _, c := range chosen {
		if object[c.Kind], err = json.Marshal(c.Config); err != nil {
			return nil, err
		}
	}
	return json.Marshal(object)
}

// DecodeObject reads a section that is an object by a function that reads objects; the error begins every line with the
// section.
func DecodeObject(section string, data []byte, decode func(data []byte) error) error {
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return fmt.Errorf("%s: %w", section, err)
	}
	var got string
	switch value.(type) {
	case map[string]any:
		return errors.Join(Under(section, decode(data))...)
	case []any:
		got = "array"
	case string:
		got = "string"
	case bool:
		got = "bool"
	default:
		got = "number"
	}
	return fmt.Errorf("%s: want an object, got %s", section, got)
}
