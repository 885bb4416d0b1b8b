package record

import (
	"bytes"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	unsafehtml "github.com/yuin/goldmark/renderer/html"
	"pgregory.net/rapid"

	"drydock.dev/drydock/rules/visible"
)

// rendered is Markdown as a tracker shows it that lets HTML through; what got through would be seen.
func rendered(t interface{ Fatal(...any) }, markdown string) string {
	var out bytes.Buffer
	renderer := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList), goldmark.WithRendererOptions(unsafehtml.WithUnsafe()))
	if err := renderer.Convert([]byte(markdown), &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// hostile are the fields of a record that come from outside, all with the same text.
func hostile(text string) Record {
	r := full()
	r.Node, r.NodeUID, r.Cluster, r.Requestor, r.Owner = text, text, text, text, text
	r.Reason, r.Ticket, r.Failure, r.AdditionalRequestors = text, text, text, []string{text}
	r.Approval.By, r.Approval.Principal, r.Approval.Comment = text, text, text
	r.Drain.SkippedPods, r.Drain.Pods[0].Pod = []string{text}, text
	for i := range r.Phases {
		r.Phases[i].Message = text
	}
	for i := range r.Blockers {
		r.Blockers[i].Pod, r.Blockers[i].Owner, r.Blockers[i].Message, r.Blockers[i].Reason = text, text, text, text
	}
	r.Escalations[0].By, r.Escalations[0].Why = text, text
	r.Messages[0].By, r.Messages[0].Comment, r.Messages[0].Effect = text, text, text
	r.Hooks[0].Name, r.Hooks[0].Outcome, r.Hooks[0].By = text, text, text
	r.Validation[0].Name, r.Validation[0].Message = text, text
	r.States[0].Message, r.Notifications[0].Outcome = text, text
	return r
}

var element = regexp.MustCompile(`<[^>]*>`)

// structure is what is left of a page without its text.
func structure(page string) string { return strings.Join(element.FindAllString(page, -1), "") }

// hostileGen are texts of what Markdown and HTML are made of.
var hostileGen = rapid.Map(rapid.SliceOfN(rapid.OneOf(
	rapid.SampledFrom([]string{
		"|", "\n", "\r\n", "\n\n", "`", "```", "~~~", "*", "**", "_", "__", "[", "](", ")", "![", "<", ">", "</td>", "<script>", "<!--", "-->", "&", "&lt;",
		`\`, `\\`, "#", "\n# ", "\n- ", "\n> ", "---", "\n---\n", "~~", "$", ":--", "x", " ", "1. ", "\u2028", "\u0085", "\u202e", "\x00", "\x1b[2J", "\xff",
	}),
	rapid.StringN(0, 6, -1),
), 1, 8), func(parts []string) string { return strings.Join(parts, "") })

func TestNothingBreaksOutOfMarkdown(t *testing.T) {
	const harmless = "xXharmlessXx"
	want := structure(rendered(t, Markdown(hostile(harmless), noon)))
	wantShown := strings.Count(rendered(t, Markdown(hostile(harmless), noon)), harmless)
	wantReport := structure(rendered(t, Summarize([]Record{asFailed(hostile(harmless))}, before(1e15), noon).Markdown(noon)))
	rapid.Check(t, func(t *rapid.T) {
		text := "xX" + hostileGen.Draw(t, "text") + "Xx"
		page := rendered(t, Markdown(hostile(text), noon))
		if got := structure(page); got != want {
			t.Fatalf("%q changes the page to\n%s", text, page)
		}
		shown := collapsed(html.UnescapeString(page))
		if got := strings.Count(shown, collapsed(visible.Line(text))); got != wantShown {
			t.Fatalf("%q is shown as it is %d times of %d:\n%s", text, got, wantShown, shown)
		}
		report := rendered(t, Summarize([]Record{asFailed(hostile(text))}, before(1e15), noon).Markdown(noon))
		if got := structure(report); got != wantReport {
			t.Fatalf("%q changes the report to\n%s", text, report)
		}
	})
}

func asFailed(r Record) Record {
	r.Phase = "Failed"
	return r
}

// collapsed has one space where browsers show one.
func collapsed(text string) string { return strings.Join(strings.Fields(text), " ") }
