package url

import (
	"html"
	"net/url"
	"strings"

	"drydock.dev/drydock/notify"
)

// The signs that Telegram takes for marks, by the mode in which the URL has it read messages: it refuses a message in which a
// mark does not end.
const (
	telegramMarks   = "_*`["
	telegramMarksV2 = telegramMarks + `\]()~>#+-=|{}.!`
)

// escape is how what people have written is kept from meaning anything to the service that a URL names. Most services are chats
// that read marks whatever the URL says.
func escape(address *url.URL) func(string) string {
	if !strings.EqualFold(address.Scheme, "telegram") {
		return notify.Unmarked
	}
	switch modes := switchesOf(address); {
	case modes.has("parsemode", "html"):
		return html.EscapeString
	case modes.has("parsemode", "markdown"):
		return backslashed(telegramMarks)
	case modes.has("parsemode", "markdownv2"):
		return backslashed(telegramMarksV2)
	default:
		return notify.Unmarked
	}
}

// backslashed puts a backslash before some signs.
func backslashed(signs string) func(string) string {
	return func(text string) string {
		var out strings.Builder
		for _, r := range text {
			if strings.ContainsRune(signs, r) {
				out.WriteByte('\\')
			}
			out.WriteRune(r)
		}
		return out.String()
	}
}
