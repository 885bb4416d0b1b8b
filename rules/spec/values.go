package spec

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/rules/period"
)

// walk visits the values of a JSON document with the types that they are to become: those that read themselves, and
// those that hold no others. What has no place in the type has none.
func walk(path string, value any, t reflect.Type, visit func(path string, value any, t reflect.Type)) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil || t.Kind() == reflect.Interface {
		return
	}
	if !readsItself(t) {
		switch value := value.(type) {
		case map[string]any:
			if t.Kind() == reflect.Struct {
				for _, field := range namedFields(t) {
					if inside, given := value[field.name]; given {
						walk(join(path, field.name), inside, field.t, visit)
					}
				}
				for _, name := range slices.Sorted(maps.Keys(value)) {
					if !slices.ContainsFunc(namedFields(t), func(f namedField) bool { return f.name == name }) {
						visit(join(path, name), value[name], nil)
					}
				}
				return
			}
			if t.Kind() == reflect.Map {
				for _, key := range slices.Sorted(maps.Keys(value)) {
					walk(join(path, key), value[key], t.Elem(), visit)
				}
				return
			}
		case []any:
			if t.Kind() == reflect.Slice {
				for i, item := range value {
					walk(fmt.Sprintf("%s[%d]", path, i), item, t.Elem(), visit)
				}
				return
			}
		}
	}
	visit(path, value, t)
}

// namedField is a field of a struct by its name in JSON.
type namedField struct {
	name string
	t    reflect.Type
}

// fieldsAt are the fields of the object at a path, in the order of their declarations; none where there is no struct.
func fieldsAt(t reflect.Type, path string) []namedField {
	for path != "" {
		var name string
		name, path, _ = strings.Cut(path, ".")
		name, _, _ = strings.Cut(name, "[")
		if t = element(t); t.Kind() == reflect.Map {
			t = t.Elem()
			continue
		}
		fields := namedFields(t)
		i := slices.IndexFunc(fields, func(f namedField) bool { return f.name == name })
		if i < 0 {
			return nil
		}
		t = fields[i].t
	}
	return namedFields(element(t))
}

// element is the type of what a pointer points to, and of the entries of a list.
func element(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// namedFields are the fields of a struct, with those of the structs that are embedded in it.
func namedFields(t reflect.Type) []namedField {
	if t.Kind() != reflect.Struct {
		return nil
	}
	var all []namedField
	for field := range t.Fields() {
		switch name, _, _ := strings.Cut(field.Tag.Get("json"), ","); {
		case name == "" && field.Anonymous:
			all = append(all, namedFields(element(field.Type))...)
		case name != "" && name != "-":
			all = append(all, namedField{name, field.Type})
		}
	}
	return all
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

func readsItself(t reflect.Type) bool { return reflect.PointerTo(t).Implements(unmarshaler) }

// checkTimes reads what is to become a Duration or a time.
func checkTimes(object map[string]any, t reflect.Type) (problems []error) {
	walk("", object, t, func(path string, value any, t reflect.Type) {
		switch t {
		case reflect.TypeFor[Duration]():
			problems = append(problems, misfit(path, value, t)...)
		case reflect.TypeFor[time.Time]():
			text, _ := value.(string)
			if _, err := time.Parse(time.RFC3339, text); err != nil {
				problems = append(problems, fmt.Errorf("%s: %v is not a time: write it in RFC 3339, YYYY-MM-DDThh:mm:ssZ, or with an offset such as +01:00 in place of Z", path, value))
			}
		}
	})
	return problems
}

// misfits finds the values that cannot be read, by their fields: a decoder stops at the first, and does not tell the field
// of one that reads itself.
func misfits(object map[string]any, root reflect.Type) (problems []error) {
	walk("", object, root, func(path string, value any, t reflect.Type) {
		switch t {
		case nil:
			problems = append(problems, fieldFirst(fmt.Errorf("unknown field %q", path), root))
		case reflect.TypeFor[Duration](), reflect.TypeFor[time.Time](): // checkTimes has read them
		default:
			problems = append(problems, misfit(path, value, t)...)
		}
	})
	return problems
}

// misfit reads one value alone.
func misfit(path string, value any, t reflect.Type) []error {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, reflect.New(t).Interface())
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) && wrong.Field == "" {
		err = errors.New(wanted(wrong))
	}
	if err == nil {
		return nil
	}
	var problems []error
	for line := range strings.Lines(err.Error()) {
		problems = append(problems, errors.New(under(path, strings.TrimSuffix(line, "\n"))))
	}
	return problems
}

// fieldPath is what begins a line that names a field already.
var fieldPath = regexp.MustCompile(`^[a-zA-Z][\w.\[\]-]*: `)

// under puts a path in front of what is wrong there, unless it begins with it.
func under(path, problem string) string {
	switch {
	case path == "", strings.HasPrefix(problem, path+"."), strings.HasPrefix(problem, path+":"), strings.HasPrefix(problem, path+"["):
		return problem
	case fieldPath.MatchString(problem):
		return path + "." + problem
	}
	return path + ": " + problem
}

var daysWritten = regexp.MustCompile(`"[0-9]{1,5}d`)

// HasDays reports whether a JSON document has a Duration with days, which Go's own durations do not have. It is false for a
// document that cannot be read.
func HasDays(data []byte, v any) (has bool) {
	if !daysWritten.Match(data) {
		return false // what is long is not decoded for nothing
	}
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		return false
	}
	walk("", object, reflect.TypeOf(v), func(_ string, value any, t reflect.Type) {
		text, _ := value.(string)
		has = has || t == reflect.TypeFor[Duration]() && period.HasDays(text)
	})
	return has
}
