package conf

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v2"
)

// MaxFile bounds a file, in bytes.
const MaxFile = 1 << 20

// Read is the top of a file, which is absent if there is nothing to read it from. Whatever is wrong with it, and with what is read
// from it, is added to problems; env looks variables up. The library's own panics on odd input are problems too.
func Read(file []byte, env func(string) (string, bool), problems *Problems) *Object {
	top := map[string]any{}
	value, err := parseYAML(file)
	absent := true
	switch fields, ok := mapping(value); {
	case len(file) > MaxFile:
		problems.Add("", "take away what no chain has", "the file has more than %d bytes, and is not read", MaxFile)
	case err != nil:
		problems.Add("", "check its indentation and quotes", "the file is no YAML: %s", err)
	case ok:
		top, absent = fields, false
	case value != nil:
		problems.Add("", "want the keys intervals, instances and profiles", "the file %s", kindOf(value))
	default:
		problems.Add("", "write the keys intervals, instances and profiles", "the file has nothing in it")
	}
	notTexts(value, "", problems)
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	return &Object{fields: top, asked: map[string]bool{}, vars: &variables{top: top, env: env, looked: map[string]bool{}}, problems: problems, absent: absent, isTop: true}
}

func parseYAML(file []byte) (value any, err error) {
	defer func() {
		if r := recover(); r != nil {
			value, err = nil, fmt.Errorf("%v", r)
		}
	}()
	if len(file) > MaxFile {
		return nil, errors.New("too long")
	}
	err = yaml.Unmarshal(file, &value)
	return value, err
}

// HasMore reports that there is another document after the first, which alone is read.
func HasMore(file []byte) (more bool) {
	defer func() {
		if recover() != nil {
			more = false // as parseYAML
		}
	}()
	if value, err := parseYAML(file); err != nil || value == nil {
		return false
	}
	d := yaml.NewDecoder(bytes.NewReader(file))
	var first, next any
	return d.Decode(&first) == nil && d.Decode(&next) == nil && next != nil
}

// Repeated says which keys a file has twice in one place, where the last counts.
func Repeated(file []byte) []string {
	if _, err := parseYAML(file); err != nil {
		return nil
	}
	var value any
	var wrong *yaml.TypeError
	if err := yaml.UnmarshalStrict(file, &value); !errors.As(err, &wrong) {
		return nil
	}
	return wrong.Errors
}

// mapping are the fields of a mapping whose keys are texts.
func mapping(value any) (map[string]any, bool) {
	switch m := value.(type) {
	case map[string]any:
		return m, true
	case map[any]any:
		fields := make(map[string]any, len(m))
		for key, value := range m {
			if text, ok := key.(string); ok {
				fields[text] = value
			}
		}
		return fields, true
	}
	return nil, false
}

// notTexts finds keys that YAML takes for something else, such as on or 1.
func notTexts(value any, path string, problems *Problems) {
	switch v := value.(type) {
	case []any:
		for i, element := range v {
			notTexts(element, fmt.Sprintf("%s[%d]", path, i), problems)
		}
	case map[any]any:
		byText := map[string]any{}
		for key := range v {
			byText[fmt.Sprintf("%v %T", key, key)] = key
		}
		for _, text := range slices.Sorted(maps.Keys(byText)) {
			key := byText[text]
			at := strings.TrimPrefix(path+"."+fmt.Sprint(key), ".")
			if _, ok := key.(string); !ok {
				problems.Add(at, "write it in quotes", "the key %q is read as %T, and not as a text", cut(fmt.Sprint(key)), key)
			}
			notTexts(v[key], at, problems)
		}
	}
}
