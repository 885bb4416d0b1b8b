package visible_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/kubernetes"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/rules/markdown"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/starter/exit"
	"drydock.dev/drydock/starter/terminal"
)

// hostile are all characters that nobody sees and that may not be shown as they are, each behind a letter.
func hostile() (text string, characters []rune) {
	for _, each := range [][2]rune{
		{0, 0x1f}, {0x7f, 0x9f}, {0xad, 0xad}, {0x61c, 0x61c}, {0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff},
		{0xe0000, 0xe007f},
	} {
		for r := each[0]; r <= each[1]; r++ {
			if r != '\n' && r != '\t' && r != '\r' {
				text, characters = text+"a"+string(r), append(characters, r)
			}
		}
	}
	return text, characters
}

// inTerminal is what the parts that draw on a terminal make of a text.
func inTerminal(text string) map[string]string {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	draw := func(with func(out *bytes.Buffer)) string {
		var out bytes.Buffer
		with(&out)
		return out.String()
	}
	display := func(with func(d *terminal.Display)) string {
		return draw(func(out *bytes.Buffer) { with(terminal.NewDisplay(out, func() time.Time { return now })) })
	}
	return map[string]string{
		"a line": draw(func(out *bytes.Buffer) { terminal.Print(out, "Warning: %s\n", text) }),
		"a table": draw(func(out *bytes.Buffer) {
			r := terminal.NewRows(out, "NODE", "REASON")
			r.Add("worker-01", text)
			r.Done()
		}),
		"progress": display(func(d *terminal.Display) { d.Update("a", terminal.Line{Label: "worker-01", Text: text}) }),
		"a label":  display(func(d *terminal.Display) { d.Update("a", terminal.Line{Label: text, Text: "Draining"}) }),
		"a note":   display(func(d *terminal.Display) { d.Note("it fails: %s", text) }),
		"waiting":  display(func(d *terminal.Display) { d.Say("waiting for %s", text) }),
		"an error": exit.Indent(text),
	}
}

// asEvent is the message of an Event on a node, which no format escapes further.
func asEvent(t *testing.T, text string) string {
	t.Helper()
	cfg, err := notifytest.Parse(t, notify.Kinds{kubernetes.Kind}, `{"oncall": {"kubernetes": {}}}`)
	if err != nil {
		t.Fatal(err)
	}
	seen := &notifytest.Recorder{}
	senders, err := notify.New(cfg, seen, "1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	event := notifytest.Event(notices.SLAExpired)
	event.Reason = text
	notifytest.Deliver(t, senders, notifytest.Message(event))
	return strings.Join(seen.Events, "\n")
}

func TestNoViewShowsWhatNobodySees(t *testing.T) {
	text, characters := hostile()
	views := inTerminal(text)
	views["Markdown"] = markdown.Text(text)
	one := record.Record{Node: "worker-01", Requestor: "ops", Reason: text}
	var drawn bytes.Buffer
	terminal.Show(&drawn, record.View(one, time.Now()))
	views["a record's text"] = drawn.String()
	views["a record's Markdown"] = record.Markdown(one, time.Now())
	views["a message"] = asEvent(t, text)
	for view, shown := range views {
		for _, r := range characters {
			if strings.ContainsRune(shown, r) {
				t.Errorf("%s: %q is shown as it is", view, r)
				break
			}
		}
		if !strings.Contains(shown, `u{202e}`) || !strings.Contains(shown, `u{1b}`) {
			t.Errorf("%s does not tell what was there: %q", view, shown)
		}
	}
}
