// Package handovertest reads the fields of types, for tests of what they hand over.
package handovertest

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"drydock.dev/drydock/workflows/handover"
)

var (
	ownJSON = reflect.TypeFor[json.Marshaler]()
	ownText = reflect.TypeFor[encoding.TextMarshaler]()
	rawJSON = reflect.TypeFor[json.RawMessage]()
)

// Field is one that a type writes as JSON. Optional is one that is not written where it says nothing.
type Field struct {
	Path     string
	Optional bool
}

// Above is the field that it is in, empty if it is the state's own.
func (f Field) Above() string {
	above := f.Path[:max(strings.LastIndexByte(f.Path, '.'), 0)]
	return strings.TrimSuffix(strings.TrimSuffix(above, "."+handover.EveryEntry), "."+handover.EveryKey)
}

// FieldsOf are the fields of a type, sorted by path. A type that writes its own JSON has none below itself, but for lists.
func FieldsOf(t reflect.Type) (all []Field) {
	collect(t, "", nil, func(f Field) { all = append(all, f) })
	slices.SortFunc(all, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return all
}

func collect(t reflect.Type, path string, above []reflect.Type, found func(Field)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == rawJSON || slices.Contains(above, t) || t.Kind() != reflect.Slice && (writesItself(t, ownJSON) || writesItself(t, ownText)) {
		return
	}
	switch t.Kind() {
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() != reflect.Uint8 {
			collect(t.Elem(), join(path, handover.EveryEntry), above, found)
		}
	case reflect.Map:
		found(Field{Path: join(path, handover.EveryKey), Optional: true})
		collect(t.Elem(), join(path, handover.EveryKey), above, found)
	case reflect.Struct:
		above = append(slices.Clone(above), t)
		for i := range t.NumField() {
			field := t.Field(i)
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			if name == "-" || !field.IsExported() && !field.Anonymous {
				continue
			}
			if field.Anonymous && name == "" {
				collect(field.Type, path, above, found)
				continue
			}
			if name == "" {
				name = field.Name
			}
			given := strings.Split(options, ",")
			found(Field{Path: join(path, name), Optional: slices.Contains(given, "omitempty") || slices.Contains(given, "omitzero")})
			collect(field.Type, join(path, name), above, found)
		}
	}
}

func writesItself(t reflect.Type, how reflect.Type) bool {
	return t.Implements(how) || reflect.PointerTo(t).Implements(how)
}

func join(path, name string) string { return strings.TrimPrefix(path+"."+name, ".") }
