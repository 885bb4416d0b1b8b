package conf

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Object reads the keys of a mapping. Each method that reads a key notes a problem where the value has the wrong
// type, and records the key as read: Unknown returns the others.
type Object struct {
	// Path is where it stands.
	Path     string
	fields   map[string]any
	asked    map[string]bool
	vars     *variables
	problems *Problems
	// absent: there is no such key, or it is empty. Broken: its value is no mapping. That is reported as a problem, and the keys that it lacks are not.
	absent, broken bool
	// isTop: it is that of the file, whose keys may also be variables.
	isTop bool
}

// Absent reports that there is no such key, or nothing in it.
func (o *Object) Absent() bool { return o.absent }

// Has reports whether there is something under a key.
func (o *Object) Has(key string) bool { return o.fields[key] != nil }

// IsBool reports that a value is written as a YAML boolean, such as True without quotes.
func (o *Object) IsBool(key string) bool {
	_, is := o.fields[key].(bool)
	return is
}

// At is the path of a key.
func (o *Object) At(key string) string {
	switch {
	case key == "":
		return o.Path
	case o.Path == "":
		return key
	}
	return o.Path + "." + key
}

// Refuse notes a problem with a key.
func (o *Object) Refuse(key, next, format string, args ...any) {
	if o.broken {
		return
	}
	o.problems.Add(o.At(key), next, format, args...)
}

// Unresolved notes that the references in a key's value have no value, or are not right.
func (o *Object) Unresolved(key string, err error) {
	p := Problem{Path: o.At(key), Text: err.Error(), Next: "correct the reference, or write $$ for a dollar sign"}
	var missing unset
	if errors.As(err, &missing) {
		p.Next, p.Variable = "set the variable for the worker, or write ${NAME:default}", missing.name
	}
	o.problems.Note(p)
}

// Unknown returns the keys that nothing has read, sorted.
func (o *Object) Unknown() []string {
	var keys []string
	for key := range o.fields {
		if !o.asked[key] && !(o.isTop && o.vars.looked[key]) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// get returns the value of a key with its references replaced. It is nil without a value, and ok is false if a reference is wrong.
func (o *Object) get(key string) (value any, ok bool) {
	o.asked[key] = true
	value, err := o.vars.resolve(o.fields[key], nil)
	if err != nil {
		o.Unresolved(key, err)
		return nil, false
	}
	return value, true
}

// textOf is a scalar as a text.
func textOf(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case found:
		return string(v), true
	case bool:
		return strconv.FormatBool(v), true
	case int, int64, uint64, float64:
		return fmt.Sprint(v), true
	}
	return "", false
}

func kindOf(value any) string {
	switch value.(type) {
	case found:
		// It may be a secret in the wrong place.
		return "is what a variable gives"
	case map[string]any, map[any]any:
		return "has keys of its own"
	case []any:
		return "is a list"
	}
	return fmt.Sprintf("is %q", cut(fmt.Sprint(value)))
}

// missing notes that something required is not there.
func (o *Object) missing(key, what string) { o.Refuse(key, what, "required") }

// Text reads a text; numbers and booleans are taken as such too.
func (o *Object) Text(key string) string {
	value, _ := o.get(key)
	if value == nil {
		return ""
	}
	text, ok := textOf(value)
	if !ok {
		o.Refuse(key, "write a text", "%s, and a text is wanted", kindOf(value))
	}
	return text
}

// Required reads a text that has to be there; what says what it is.
func (o *Object) Required(key, what string) string {
	before := len(o.problems.list)
	text := o.Text(key)
	if text == "" && len(o.problems.list) == before {
		o.missing(key, what)
	}
	return text
}

// Texts reads a list of texts, or one text in place of a list.
func (o *Object) Texts(key string) []string {
	value, _ := o.get(key)
	if value == nil {
		return nil
	}
	if joined, ok := value.(found); ok {
		var texts []string
		for part := range strings.SplitSeq(strings.Trim(string(joined), "[]"), ",") {
			texts = append(texts, unquoted(part))
		}
		return texts
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var texts []string
	for i, element := range list {
		resolved, err := o.vars.resolve(element, nil)
		if err != nil {
			o.Unresolved(fmt.Sprintf("%s[%d]", key, i), err)
			continue
		}
		text, ok := textOf(resolved)
		if !ok {
			o.Refuse(fmt.Sprintf("%s[%d]", key, i), "write a text", "%s, and a text is wanted", kindOf(resolved))
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// RequiredTexts reads a list that has to have something in it.
func (o *Object) RequiredTexts(key, what string) []string {
	before := len(o.problems.list)
	texts := o.Texts(key)
	if len(texts) == 0 && len(o.problems.list) == before {
		o.missing(key, what)
	}
	return texts
}

// Int reads a whole number; absent is the default.
func (o *Object) Int(key string, absent int) int {
	value, _ := o.get(key)
	switch v := value.(type) {
	case nil:
		return absent
	case int:
		return v
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<31 {
			return int(v)
		}
	case string, found:
		text, _ := textOf(v)
		if n, err := strconv.ParseInt(text, 0, 32); err == nil {
			return int(n)
		}
	}
	o.Refuse(key, "write a whole number", "%s, and a whole number is wanted", kindOf(value))
	return absent
}

// RequiredInt reads a whole number that has to be there, and not 0.
func (o *Object) RequiredInt(key, what string) int {
	before := len(o.problems.list)
	n := o.Int(key, 0)
	if n == 0 && len(o.problems.list) == before {
		o.missing(key, what)
	}
	return n
}

// Bool reads a boolean; absent is false.
func (o *Object) Bool(key string) bool {
	value, _ := o.get(key)
	switch v := value.(type) {
	case nil:
		return false
	case bool:
		return v
	case string, found:
		text, _ := textOf(v)
		switch strings.ToLower(text) {
		case "true", "t", "1", "on", "yes":
			return true
		case "false", "f", "0", "off", "no":
			return false
		}
	}
	o.Refuse(key, "write true or false", "%s, and true or false is wanted", kindOf(value))
	return false
}

// Duration reads a duration, in which a bare number counts seconds; absent is the default.
func (o *Object) Duration(key string, absent time.Duration) time.Duration {
	value, _ := o.get(key)
	seconds := math.NaN()
	switch v := value.(type) {
	case nil:
		return absent
	case int:
		seconds = float64(v)
	case float64:
		seconds = v
	case found:
		if n, err := strconv.ParseFloat(string(v), 64); err == nil {
			seconds = n
		}
	}
	if math.Abs(seconds) < math.MaxInt64/float64(time.Second) {
		return time.Duration(seconds * float64(time.Second))
	}
	text, _ := textOf(value)
	d, err := time.ParseDuration(text)
	if err != nil {
		o.Refuse(key, `write it like "90s", "1h30m", or as seconds`, "%s, and a duration is wanted", kindOf(value))
		return absent
	}
	return d
}

// RequiredDuration reads a duration that has to be there, and not 0.
func (o *Object) RequiredDuration(key, what string) time.Duration {
	before := len(o.problems.list)
	d := o.Duration(key, 0)
	if d == 0 && len(o.problems.list) == before {
		o.missing(key, what)
	}
	return d
}

// WrittenDuration reads a required duration that is written with its unit, 0s among them.
func (o *Object) WrittenDuration(key, what string) time.Duration {
	before := len(o.problems.list)
	text := o.Text(key)
	if len(o.problems.list) > before {
		return 0
	}
	if text == "" {
		o.missing(key, what)
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		o.Refuse(key, `write it with its unit, like "90s" or "1h30m"`, "%q is not a duration", cut(text))
	}
	return d
}

// Object reads a mapping; one that is absent has no keys.
func (o *Object) Object(key string) *Object {
	value, ok := o.get(key)
	read := o.object(o.At(key), value)
	read.broken = read.broken || !ok
	return read
}

func (o *Object) object(path string, value any) *Object {
	read := &Object{Path: path, asked: map[string]bool{}, vars: o.vars, problems: o.problems, absent: value == nil, broken: o.broken}
	fields, ok := mapping(value)
	if value != nil && !ok {
		o.problems.Add(path, "write keys with their values", "%s, and keys with values are wanted", kindOf(value))
		read.absent, read.broken = true, true
	}
	read.fields = fields
	return read
}

// Objects reads a list of mappings, or one in place of a list. Each has its path by its index and the text under name.
func (o *Object) Objects(key, name string) []*Object {
	value, _ := o.get(key)
	if value == nil {
		return nil
	}
	list, ok := value.([]any)
	if !ok {
		o.Refuse(key, "write each element with a dash before it", "%s, and a list is wanted", kindOf(value))
		return nil
	}
	var all []*Object
	for i, element := range list {
		resolved, err := o.vars.resolve(element, nil)
		if err != nil {
			o.Unresolved(fmt.Sprintf("%s[%d]", key, i), err)
			continue
		}
		label := ""
		if fields, ok := mapping(resolved); ok && name != "" {
			label, _ = textOf(fields[name])
		}
		path := Named(o.At(key), i, label)
		if resolved == nil {
			o.problems.Add(path, "take the dash away, or write what is meant", "there is nothing in it")
			continue
		}
		all = append(all, o.object(path, resolved))
	}
	return all
}
