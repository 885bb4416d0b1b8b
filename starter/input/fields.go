package input

import (
	"cmp"
	"encoding/csv"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"drydock.dev/drydock/docs/schemas"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// FieldFlags are the flags that set the fields of an input. Its schema declares them: a field that names a flag has one, with the
// field's comment as its help.
type FieldFlags struct {
	flags []*fieldFlag
	// given are the flags that have set something, by its field.
	given map[string]string
}

// Form is how a flag is written where that is not how its field is.
type Form struct {
	// Field is the path of what it sets, for a flag that no field names.
	Field string
	// Usage takes the place of what the field says of itself, and Words that of its values.
	Usage, Shorthand string
	Words            []string
	// Read makes a value of what was given, of one text, unless Repeats is set or the field is a list. Without it the text becomes what
	// the field's type is.
	Read    func(texts []string) (any, error)
	Repeats bool
}

// Groups are the groups of flags, in the order in which a help shows them.
var Groups = []string{"Flags of the maintenance", "Flags of the strategy", "Flags of times", "Flags of the drain"}

// sections are the groups of the sections of an input; what is a duration or a time is of times elsewhere.
var sections = map[string]string{
	"strategy": Groups[1], "stage": Groups[1], "windows": Groups[2], "ignoreWindows": Groups[2], "onReadyTimeout": Groups[2], "cordon": Groups[3],
	"drain": Groups[3], "drainPlan": Groups[3], "preflight": Groups[3], "sla": Groups[3], "waitForPodCompletion": Groups[3],
}

// GroupOf is the group of a flag by the field that it sets; empty if it sets none.
func GroupOf(f *pflag.Flag) string {
	section, isTime := f.Annotations[sectionOf], f.Value.Type() == "duration" || f.Value.Type() == "time"
	switch {
	case section == nil:
		return ""
	case isTime:
		return cmp.Or(sections[section[0]], Groups[2])
	}
	return cmp.Or(sections[section[0]], Groups[0])
}

// sectionOf annotates a flag with the section of its field.
const sectionOf = "drydock/section"

// WithFlags are the fields of an input that name a flag.
func WithFlags(input string) []schemas.Field {
	return slices.DeleteFunc(schemas.InputOf(input).Below(), func(f schemas.Field) bool { return f.Flag == "" })
}

// Register adds the flags of fields to a command, and those of forms that name a field themselves.
func (s *FieldFlags) Register(cmd *cobra.Command, fields []schemas.Field, forms map[string]Form) {
	all := slices.Clone(fields)
	for _, name := range slices.Sorted(maps.Keys(forms)) {
		if forms[name].Field != "" {
			all = append(all, schemas.Field{Path: forms[name].Field, Flag: name, Type: "string"})
		}
	}
	for _, field := range all {
		form := forms[field.Flag]
		f := &fieldFlag{field: field, form: form}
		if form.Usage == "" {
			form.Usage = field.Usage()
		}
		var value pflag.Value = f
		if f.Type() == "strings" || form.Repeats {
			value = listFlag{f}
		}
		registered := cmd.Flags().VarPF(value, field.Flag, form.Shorthand, form.Usage)
		if f.Type() == "bool" {
			registered.NoOptDefVal = "true"
		}
		section, _, _ := strings.Cut(strings.ReplaceAll(field.Path, "[]", ""), ".")
		registered.Annotations = map[string][]string{sectionOf: {section}}
		if words := cmp.Or(strings.Join(form.Words, ","), strings.Join(field.Values, ",")); words != "" && field.Fields == nil {
			terminal.CompleteFlag(cmd, field.Flag, strings.Split(words, ","))
		}
		s.flags = append(s.flags, f)
	}
}

// Put puts the flags that were given into an input, over what is there: what is absent stays absent and gets the worker's default.
func (s *FieldFlags) Put(input map[string]any) error {
	s.given = map[string]string{}
	for _, f := range s.flags {
		if !f.given {
			continue
		}
		value, err := f.value()
		if err == nil {
			err = SetField(input, f.field.Path, value)
		}
		if err != nil {
			return exit.UsageError("--%s: %w", f.field.Flag, err)
		}
		for _, path := range paths(f.field.Path, value) {
			s.given[path] = f.field.Flag
		}
	}
	return nil
}

// ReadFile has what a file writes as flags take it, such as "sla: 30m", become what the fields hold. What cannot be read is left as it
// is: the decoder says what is wrong with it, and with the rest.
func (s *FieldFlags) ReadFile(file map[string]any) {
	for _, f := range s.flags {
		texts := textsAt(file, f.field.Path)
		if len(texts) == 0 || f.form.Read == nil || f.field.Type == "boolean" {
			continue
		}
		if value, err := f.form.Read(texts); err == nil {
			_ = SetField(file, f.field.Path, value) // the objects on the way are there
		}
	}
}

// textsAt are the text at a path, or the list of texts; nil if something else is there.
func textsAt(input map[string]any, path string) (texts []string) {
	parent, rest, nested := strings.Cut(path, ".")
	if nested {
		object, _ := input[parent].(map[string]any)
		return textsAt(object, rest)
	}
	if text, ok := input[path].(string); ok {
		return []string{text}
	}
	list, _ := input[path].([]any)
	for _, item := range list {
		text, ok := item.(string)
		if !ok {
			return nil
		}
		texts = append(texts, text)
	}
	return texts
}

// Given is the flag that has set a field; empty if none has.
func (s *FieldFlags) Given(path string) string { return s.given[path] }

// paths are those of the values of an object; of anything else its own.
func paths(path string, value any) []string {
	object, ok := value.(map[string]any)
	if !ok || len(object) == 0 {
		return []string{path}
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		all = append(all, paths(path+"."+name, object[name])...)
	}
	return all
}

// InFlags has an error of the input speak of the flags that were given, and of fields only where those are in a file.
func (s *FieldFlags) InFlags(err error) error {
	if err == nil || len(s.given) == 0 {
		return err
	}
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		field, what, ok := strings.Cut(line, ": ")
		if flag := s.flagOf(field); ok && flag != "" {
			lines[i] = "--" + flag + ": " + what
		}
	}
	return exit.WithCode(exit.CodeOf(err), exit.InWords(strings.Join(lines, "\n"), err))
}

// flagOf is the flag that has set a field, or a part of it such as sla.after or hooks.beforeCordon[0].
func (s *FieldFlags) flagOf(field string) string {
	for _, path := range slices.Sorted(maps.Keys(s.given)) {
		if rest, ok := strings.CutPrefix(field, path); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return s.given[path]
		}
	}
	return ""
}

type fieldFlag struct {
	field schemas.Field
	form  Form
	given bool
	texts []string
}

var _ pflag.Value = &fieldFlag{}

func (f *fieldFlag) String() string { return strings.Join(f.texts, ",") }

// Type is shown in the help; of a bool pflag wants no value.
func (f *fieldFlag) Type() string {
	switch {
	case f.field.Type == "boolean":
		return "bool"
	case f.field.Type == "integer":
		return "int"
	case f.field.List && f.field.Fields == nil && !f.form.Repeats:
		return "strings"
	case f.form.Read != nil:
		return "string"
	}
	return f.field.Type
}

// Set takes what was given, and refuses what cannot be read.
func (f *fieldFlag) Set(text string) error {
	f.given = true
	switch {
	case f.Type() == "strings" && text != "":
		words, err := csv.NewReader(strings.NewReader(text)).Read()
		f.texts = append(f.texts, words...)
		return err
	case f.Type() == "strings":
		return nil // an empty list
	case f.form.Repeats:
		f.texts = append(f.texts, text)
	default:
		f.texts = []string{text} // the last one counts
	}
	if f.form.Read != nil {
		return nil // Put says what is wrong with it
	}
	_, err := f.value()
	return err
}

func (f *fieldFlag) value() (any, error) {
	switch {
	case f.form.Read != nil:
		return f.form.Read(f.texts)
	case f.Type() == "strings":
		return append([]string{}, f.texts...), nil
	case f.field.Type == "boolean":
		return strconv.ParseBool(f.texts[0])
	case f.field.Type == "integer":
		return strconv.ParseInt(f.texts[0], 10, 64)
	}
	return f.texts[0], nil
}

// listFlag is the flag of a list: it is offered again once it was given.
type listFlag struct{ *fieldFlag }

var _ pflag.SliceValue = listFlag{}

func (f listFlag) Append(text string) error { return f.Set(text) }

func (f listFlag) Replace(texts []string) error { f.texts = texts; return nil }

func (f listFlag) GetSlice() []string { return f.texts }
