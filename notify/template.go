package notify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"

	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/sections"
)

// Template are the Go templates of messages. They see content.
type Template struct {
	// Subject is the template of the subject, where messages have one; if absent, it is Drydock's own.
	Subject string `json:"subject,omitempty"`
	// Text is the template of the text; if absent, it is Drydock's own.
	Text string `json:"text,omitempty"`
}

const (
	defaultSubject = `{{with .Cluster}}[{{.}}] {{end -}}
{{if gt (len .Events) 1}}{{len .Events}} events of maintenances on {{join ", " .Nodes}}{{else}}{{.Subject}}: {{.State.Phrase}}{{end}}`

	defaultText = `{{if gt (len .Events) 1 -}}
{{range $event := .Events}}{{date "Jan 2 15:04" .At}}  {{.Subject}}: {{.State.Phrase}}
{{- with .Requestor}} (for {{.}}{{with $event.Reason}}: {{.}}{{end}}){{end}}
{{end}}
{{- else -}}
{{with .Message}}{{.}}
{{end -}}
{{if .Plan}}Plan: {{.Plan}}{{else}}Node: {{.Node}}{{end}}{{with .Owner}}, owned by {{.}}{{end}}
{{with .Requestor}}For: {{.}}{{with $.Type}}, {{.}}{{end}}
{{end}}{{with .Reason}}Reason: {{.}}
{{end}}{{with .Ticket}}Ticket: {{.}}
{{end}}{{if .Blockers}}Waiting for:
{{range .Blockers}}- {{.}}
{{end}}{{with .MoreBlockers}}- and {{.}} more
{{end}}{{end}}Since: {{date "2006-01-02 15:04:05 MST" .At}}
{{with .WorkflowID}}Workflow: {{.}}
{{end}}{{end}}`
)

const (
	// maxText bounds a message in bytes. Slack accepts 40000 characters, the others more.
	maxText = 32 << 10
	// maxSubject bounds a subject in bytes.
	maxSubject = 250
)

// content is what a template sees.
type content struct {
	notices.Event
	Events  []notices.Event
	Nodes   []string
	Channel string
}

var functions = template.FuncMap{
	"join":  func(separator string, words []string) string { return strings.Join(words, separator) },
	"upper": strings.ToUpper,
	"lower": strings.ToLower,
	"date":  func(layout string, t time.Time) string { return t.UTC().Format(layout) },
}

// wording are the parsed templates of a channel.
type wording struct{ subject, text *template.Template }

// parse parses the templates, with defaults for what is empty.
func (t Template) parse(subject, text string) (wording, []error) {
	var w wording
	var problems []error
	for _, part := range []struct {
		field, given, otherwise string
		into                    **template.Template
	}{{"subject", t.Subject, subject, &w.subject}, {"text", t.Text, text, &w.text}} {
		given := part.given
		if given == "" {
			given = part.otherwise
		}
		parsed, err := template.New("template." + part.field).Option("missingkey=error").Funcs(functions).Parse(given)
		if err != nil {
			problems = append(problems, fmt.Errorf("template.%s: %w", part.field, sections.TemplateError(err)))
		}
		*part.into = parsed
	}
	return w, problems
}

// samples are events with every field and with the required ones only: a template has to word both.
func samples() [][]notices.Event {
	full := notices.Event{
		ID: "id", Sequence: 1, State: notices.MaintenanceStarted, At: time.Unix(0, 0), Node: "node",
		Requestor: "requestor", Owner: "owner", Cluster: "cluster", Groups: []string{"group"},
		Reason: "reason", Ticket: "ticket", Type: "planned", Phase: "Draining",
		Message: "message", Blockers: []string{"blocker"}, MoreBlockers: 1, WorkflowID: "workflow", RunID: "run",
	}
	bare := notices.Event{ID: "id", State: notices.MaintenanceUnknown, Node: "node"}
	return [][]notices.Event{{full}, {bare}, {full, bare}}
}

func (t Template) problems() []error {
	words, problems := t.parse(defaultSubject, defaultText)
	if len(problems) > 0 {
		return problems
	}
	for _, events := range samples() {
		if _, _, err := words.render("channel", events); err != nil {
			return []error{err}
		}
	}
	return nil
}

// render words events; the latest is the last.
func (w wording) render(channel string, events []notices.Event) (subject, text string, err error) {
	c := content{Event: events[len(events)-1], Events: events, Channel: channel}
	for _, e := range events {
		if e.Node != "" && !slices.Contains(c.Nodes, e.Node) {
			c.Nodes = append(c.Nodes, e.Node)
		}
	}
	if subject, err = execute(w.subject, c); err != nil {
		return "", "", err
	}
	if text, err = execute(w.text, c); err != nil {
		return "", "", err
	}
	return cut(OneLine(subject), maxSubject), strings.TrimSpace(text), nil
}

func execute(t *template.Template, c content) (string, error) {
	var out bounded
	if err := t.Execute(&out, c); err != nil && !errors.Is(err, errFull) {
		return "", fmt.Errorf("%s: %w", t.Name(), sections.TemplateError(err))
	}
	return cut(out.text.String(), maxText), nil
}

var errFull = errors.New("the text is long enough")

// bounded stops a template once there is more than fits.
type bounded struct{ text strings.Builder }

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len() > maxText {
		return 0, errFull
	}
	return b.text.Write(p)
}

// cut shortens text to a number of bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const ellipsis = "…"
	end := limit - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// OneLine makes every run of white space and control characters a single space.
func OneLine(text string) string {
	breaks := func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }
	return strings.Join(strings.FieldsFunc(text, breaks), " ")
}

// quoted applies a format's escaping to what people have written, and not to the template.
func quoted(events []notices.Event, escape func(string) string) []notices.Event {
	each := func(words []string) []string {
		out := make([]string, len(words))
		for i, word := range words {
			out[i] = escape(word)
		}
		return out
	}
	out := slices.Clone(events)
	for i := range out {
		e := &out[i]
		for _, field := range []*string{
			&e.ID, (*string)(&e.State), &e.Node, &e.Plan, &e.Requestor, &e.Owner, &e.Cluster, &e.Reason, &e.Ticket, &e.Type, &e.Phase,
			&e.Message, &e.WorkflowID, &e.RunID,
		} {
			*field = escape(*field)
		}
		e.Groups, e.Blockers = each(e.Groups), each(e.Blockers)
	}
	return out
}

// chatMarks are what chats make something of: emphasis, code, quotes, links, and mentions that call people.
const chatMarks = "*_~`|[]@<"

// Unmarked is a text of which a chat makes nothing: behind each sign that has a meaning there stands a space without width,
// since chats differ in how, and whether, such a sign can be escaped.
func Unmarked(text string) string {
	const nothing = "\u200b"
	var out strings.Builder
	for _, r := range text {
		out.WriteRune(r)
		if strings.ContainsRune(chatMarks, r) {
			out.WriteString(nothing)
		}
	}
	return out.String()
}
