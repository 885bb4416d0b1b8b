// Package bounds is what texts and lists may take up, so that what goes into a payload stays far below what a server
// takes.
package bounds

import (
	"reflect"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Text is how long a text may be as JSON, in bytes: what people say, reasons, errors.
	Text = 1024
	// List is how many entries a list has at most, where nothing narrower is said.
	List = 300
	// cutMark ends a text that was cut.
	cutMark = "…"
)

// Cut shortens a text to the given number of bytes that it takes as JSON. Escapes count: a text of "<" takes six times
// its length.
func Cut(text string, most int) string {
	if 6*len(text) <= most {
		return text
	}
	size, fits := 0, 0
	for i, r := range text {
		_, width := utf8.DecodeRuneInString(text[i:])
		size += escaped(r, width)
		if size > most {
			return text[:fits] + cutMark
		}
		if size <= most-len(cutMark) {
			fits = i + width
		}
	}
	return text
}

// Words is Cut at the end of a word, and before a command that would not be whole: somebody may run it.
func Words(text string, most int) string {
	if Cut(text, most) == text {
		return text
	}
	end := len(strings.TrimSuffix(Cut(text, most-len(" ")), cutMark))
	if space := strings.LastIndex(text[:end], " "); space > 0 && text[end] != ' ' {
		end = space
	}
	for begin, after := nextCommand(text, 0); begin < end; begin, after = nextCommand(text, after) {
		if after > end {
			end = len(strings.TrimRight(text[:begin], ` "'(`))
		}
	}
	kept := strings.TrimRight(text[:end], " :;,")
	if kept == "" {
		return cutMark
	}
	return kept + " " + cutMark
}

// nextCommand is where the first command in a text begins, and where it ends, from a place on; where there is none that is the text's end.
func nextCommand(text string, from int) (begin, end int) {
	found := command.FindStringSubmatchIndex(text[from:])
	if found == nil {
		return len(text), len(text)
	}
	begin = from + found[2]
	quote := rune(0)
	if begin > 0 && (text[begin-1] == '"' || text[begin-1] == '\'') {
		quote = rune(text[begin-1])
	}
	return begin, begin + lengthOfCommand(text[begin:], quote)
}

// command is how each command in a sentence begins.
var command = regexp.MustCompile(`(?:^|[\s"'(])((?:drydock|kubectl) )`)

// lengthOfCommand is how long the command is with which a text begins: up to the quote that encloses it, or to what ends it in a sentence.
func lengthOfCommand(text string, enclosing rune) int {
	quoted := rune(0)
	for i, r := range text {
		switch {
		case r == enclosing, r == '\n':
			return i
		case r == quoted:
			quoted = 0
		case quoted != 0:
		case r == '"', r == '\'':
			quoted = r
		case r == '(', r == ')':
			return len(strings.TrimRight(text[:i], " "))
		case strings.ContainsRune(".,;:", r) && (i+1 == len(text) || text[i+1] == ' '):
			return i
		}
	}
	return len(text)
}

// escaped is how many bytes a character that takes some bytes of a text takes in a JSON string, as encoding/json writes
// it. An invalid byte becomes the replacement character.
func escaped(r rune, width int) int {
	switch {
	case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
		return len(`\n`)
	case r < ' ', r == '<', r == '>', r == '&', r == '\u2028', r == '\u2029', r == utf8.RuneError && width == 1:
		return len(`\u0000`)
	default:
		return width
	}
}

// Fit cuts every text in a value to Text, and every list to its first entries, List at most. The value is a pointer; what
// it shares with others is not changed. It takes values of strings, numbers, structs, slices, maps by string and
// pointers to these.
func Fit(value any) { fit(reflect.ValueOf(value).Elem()) }

var timeType = reflect.TypeFor[time.Time]()

func fit(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if text := v.String(); 6*len(text) > Text {
			v.SetString(Cut(text, Text))
		}
	case reflect.Struct:
		if v.Type() == timeType {
			return
		}
		for i := range v.NumField() {
			if field := v.Field(i); field.CanSet() {
				fit(field)
			}
		}
	case reflect.Pointer:
		fitPointer(v)
	case reflect.Slice:
		fitSlice(v)
	case reflect.Map:
		fitMap(v)
	}
}

func fitPointer(v reflect.Value) {
	if v.IsNil() || fits(v.Elem()) {
		return
	}
	own := reflect.New(v.Type().Elem())
	own.Elem().Set(v.Elem())
	fit(own.Elem())
	v.Set(own)
}

func fitSlice(v reflect.Value) {
	if v.Len() > List {
		v.Set(v.Slice3(0, List, List))
	}
	if v.Type().Elem().Kind() == reflect.Uint8 || fits(v) {
		return
	}
	own := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(own, v)
	for i := range own.Len() {
		fit(own.Index(i))
	}
	v.Set(own)
}

// fitMap drops a map that is too large or has a text that is too long: which of its entries were left would depend on
// chance.
func fitMap(v reflect.Value) {
	if !fits(v) {
		v.SetZero()
	}
}

// fits reports whether a value fits without a cut.
func fits(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		text := v.String()
		return 6*len(text) <= Text || Cut(text, Text) == text
	case reflect.Struct:
		if v.Type() == timeType {
			return true
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && !fits(v.Field(i)) {
				return false
			}
		}
	case reflect.Pointer:
		return v.IsNil() || fits(v.Elem())
	case reflect.Slice:
		if v.Len() > List {
			return false
		}
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return true
		}
		for i := range v.Len() {
			if !fits(v.Index(i)) {
				return false
			}
		}
	case reflect.Map:
		if v.Len() > List {
			return false
		}
		entries := v.MapRange()
		for entries.Next() {
			if !fits(entries.Key()) || !fits(entries.Value()) {
				return false
			}
		}
	}
	return true
}
