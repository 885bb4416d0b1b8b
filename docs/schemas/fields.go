package schemas

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The schemas of inputs are made of the types that the workflows read and the comments of their fields.
//
//go:embed inputs/*.json
var inputs embed.FS

// OfInput is the JSON schema of an input, such as "maintenance".
func OfInput(name string) ([]byte, error) { return inputs.ReadFile("inputs/" + name + ".schema.json") }

// Inputs are the names of all inputs.
func Inputs() []string {
	files, err := inputs.ReadDir("inputs")
	if err != nil {
		panic(err) // it is embedded
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i], _, _ = strings.Cut(f.Name(), ".")
	}
	return names
}

// Field is a field of an input.
type Field struct {
	// Name is that of the field, Path where it is in its input, such as "drain.escalation[].after" or "channels.<name>.digest".
	Name, Path string
	// Flag is that of the command line which sets it, of drydock-worker for a field of its configuration; Env is a variable of the environment
	// that does. Both are empty if none does.
	Flag, Env string
	// Description is the comment of the field. It is Markdown, and its links name sections of docs/reference.
	Description string
	// Default is what an input without the field has, as JSON; nil if that is nothing.
	Default json.RawMessage
	// Values are all that it takes; nil if it takes others.
	Values []string
	// Required: an input, or an object that it is a field of, is refused without it. A file may leave to the command line what a workflow
	// requires: its schema has the keyword x-required for that.
	Required bool
	// Type is a type of JSON, or one of Drydock's own: "duration" and "time", which are strings, "amount", "secret", "address". List says that
	// the field is a list of them, Map that it has them by name.
	Type      string
	List, Map bool
	// Fields are those of an object, or of the objects in a list or a map. Shared says that they are described elsewhere too: they are fields of
	// another input, or of another section of this one.
	Fields []Field
	Shared bool
}

// InputOf is one of Inputs as a field of no other, with its fields in the order of their declarations.
func InputOf(name string) Field {
	text, err := OfInput(name)
	if err != nil {
		panic(err) // the schemas are part of the program
	}
	input, err := Read(name, text)
	if err != nil {
		panic(err)
	}
	return input
}

// Read is the input that a schema describes.
func Read(name string, text []byte) (Field, error) {
	var root schema
	if err := json.Unmarshal(text, &root); err != nil {
		return Field{}, fmt.Errorf("the schema of %s: %w", name, err)
	}
	return Field{Name: name, Type: root.Type, Description: root.Title, Fields: root.fields("")}, nil
}

// Within is the path of a field below this one, from here on.
func (f Field) Within(below Field) string {
	path := strings.TrimPrefix(below.Path, f.Path)
	for _, inside := range []string{"[]", "." + AnyName, "."} {
		path = strings.TrimPrefix(path, inside)
	}
	return path
}

// Below are the fields below a field, each before its own, without those that are described elsewhere.
func (f Field) Below() []Field {
	var all []Field
	for _, own := range f.Fields {
		if all = append(all, own); !own.Shared {
			all = append(all, own.Below()...)
		}
	}
	return all
}

// AnyName stands in a path for the names in a map.
const AnyName = "<name>"

// schema is what a schema of an input has of JSON Schema.
type schema struct {
	Title       string          `json:"title"`
	Type        string          `json:"type"`
	OwnType     string          `json:"x-type"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Values      []string        `json:"enum"`
	Flag        string          `json:"x-flag"`
	Env         string          `json:"x-env"`
	Shared      bool            `json:"x-shared"`
	Items       *schema         `json:"items"`
	Required    []string        `json:"required"`
	IsRequired  bool            `json:"x-required"`
	Properties  properties      `json:"properties"`
	Others      others          `json:"additionalProperties"`
}

// others is the schema of the values of a map; absent if an object has no fields but its properties.
type others struct{ *schema }

func (o *others) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return nil
	}
	return json.Unmarshal(data, &o.schema)
}

// properties are in the order in which they are written, which a map would lose.
type properties []property

type property struct {
	name string
	schema
}

func (p *properties) UnmarshalJSON(data []byte) error {
	var each map[string]schema
	if err := json.Unmarshal(data, &each); err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if _, err := decoder.Token(); err != nil { // the brace
		return err
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return err
		}
		var skipped json.RawMessage
		if err := decoder.Decode(&skipped); err != nil {
			return err
		}
		text, _ := name.(string)
		*p = append(*p, property{name: text, schema: each[text]})
	}
	return nil
}

func (s schema) fields(prefix string) []Field {
	var all []Field
	for _, p := range s.Properties {
		f := Field{
			Name: p.name, Path: prefix + p.name, Flag: p.Flag, Env: p.Env, Description: p.Description, Default: p.Default, Values: p.Values,
			Required: p.IsRequired || slices.Contains(s.Required, p.name), Type: p.typeName(), Shared: p.Shared,
		}
		below, inside := p.schema, f.Path+"."
		switch {
		case p.Items != nil:
			below, inside, f.List, f.Type = *p.Items, f.Path+"[].", true, p.Items.typeName()
			f.Values = append(f.Values, p.Items.Values...)
		case p.Others.schema != nil:
			below, inside, f.Map, f.Type = *p.Others.schema, f.Path+"."+AnyName+".", true, p.Others.typeName()
			f.Shared = f.Shared || p.Others.Shared
		}
		f.Fields = below.fields(inside)
		all = append(all, f)
	}
	return all
}

func (s schema) typeName() string {
	switch {
	case s.OwnType != "":
		return s.OwnType
	case s.Type == "" && len(s.Properties) > 0:
		return "object" // or what stands for one
	case s.Type == "":
		return "string" // or what stands for one
	}
	return s.Type
}

// Meaning is the description without the field's name in front: what a row of a table, or the help of a flag, says.
func (f Field) Meaning() string {
	first, rest, _ := strings.Cut(f.Description, " ")
	if !strings.EqualFold(first, f.Name) {
		return f.Description
	}
	for _, verb := range []string{"is ", "are ", "is, ", "are, "} {
		if meaning, ok := strings.CutPrefix(rest, verb); ok {
			return meaning
		}
	}
	return rest
}

// link is one of Markdown.
var link = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)

// Usage is the summary as the help of a flag has it.
func (f Field) Usage() string {
	usage := f.Summary()
	if f.Type == "boolean" {
		usage = imperative(usage)
	}
	if f.List {
		usage += " (repeatable)"
	}
	if text := f.DefaultText(); text != "" && text != "false" && !f.List && f.Fields == nil {
		usage += " (default " + text + ")"
	}
	return usage
}

// Summary is the meaning up to its first full stop, with the values.
func (f Field) Summary() string {
	summary, _, _ := strings.Cut(f.Row()+" ", ". ")
	// Back quotes would name the value of a flag.
	return strings.TrimSuffix(strings.TrimSpace(strings.ReplaceAll(Plain(summary), "`", "'")), ".")
}

// Row is the meaning with the values, where it does not name them itself.
func (f Field) Row() string {
	first, rest, more := strings.Cut(strings.TrimSuffix(f.Meaning(), "."), ". ")
	if len(f.Values) > 0 && slices.ContainsFunc(f.Values, func(value string) bool { return !strings.Contains(first, "`"+value+"`") }) {
		first += ": `" + strings.Join(f.Values, "`, `") + "`"
	}
	if more {
		first += ". " + rest
	}
	return first
}

// imperative turns "waits for somebody" into what a flag does, "wait for somebody".
func imperative(text string) string {
	verb, rest, _ := strings.Cut(text, " ")
	verb, comma := strings.CutSuffix(verb, ",")
	if verb = strings.TrimSuffix(verb, "s"); verb == "ha" {
		verb = "have"
	}
	if comma {
		verb += ","
	}
	return verb + " " + rest
}

// DefaultText is the default as one would write it; empty if there is none.
func (f Field) DefaultText() string {
	if text := ""; len(f.Default) > 0 && json.Unmarshal(f.Default, &text) == nil {
		return text
	}
	var compact bytes.Buffer
	if json.Compact(&compact, f.Default) != nil {
		return "" // there is none
	}
	return compact.String()
}

// pointer says nothing but where to read on, which a terminal cannot follow.
var pointer = regexp.MustCompile(`[:;,] see \[[^\]]*\]\([^)]*\)`)

// Plain is Markdown without links, as a terminal shows it.
func Plain(markdown string) string {
	return link.ReplaceAllString(pointer.ReplaceAllString(markdown, ""), "$1")
}

// Links are the pages that the description names, with their sections.
func (f Field) Links() []string {
	var all []string
	for _, found := range link.FindAllStringSubmatch(f.Description, -1) {
		if page := pageOf(found[2]); !slices.Contains(all, page) {
			all = append(all, page)
		}
	}
	return all
}
