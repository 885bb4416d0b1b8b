package url

import (
	"net/url"
	"testing"
)

func TestWhatPeopleWriteMeansNothingToAService(t *testing.T) {
	const text = "<b>a_b & c.d</b>"
	for address, want := range map[string]string{
		"discord://token@id":                                     "<\u200bb>a_\u200bb & c.d<\u200b/b>",
		"telegram://1:token@telegram?chats=1":                    "<\u200bb>a_\u200bb & c.d<\u200b/b>",
		"telegram://1:token@telegram?chats=1&ParseMode=HTML":     "&lt;b&gt;a_b &amp; c.d&lt;/b&gt;",
		"telegram://1:token@telegram?chats=1&parsemode=Markdown": `<b>a\_b & c.d</b>`,
		"telegram://1:token@telegram?parsemode=markdownv2":       `<b\>a\_b & c\.d</b\>`,
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := escape(u)(text); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
