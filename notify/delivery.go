package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/visible"
	"drydock.dev/drydock/secret"
)

// Message is one delivery: an event, or the events of a digest in the order in which they happened.
type Message struct {
	Events []notices.Event `json:"events"`
	// Key is the same whenever the message is sent again, so that receivers can tell a repetition.
	Key string `json:"key"`
	// Thread is the Receipt's of the message to answer to; empty begins a thread.
	Thread string `json:"thread,omitempty"`
}

// Receipt is what is known of a delivered message.
type Receipt struct {
	// Thread is what later messages of the same thread give; empty if the channel has no threads.
	Thread string `json:"thread,omitempty"`
	// Refused says which of several recipients are not to be reached, and why; the others have got the message.
	Refused []string `json:"refused,omitempty"`
}

// Sender delivers to one receiver. Its error may hold secrets that the delivery knows.
type Sender interface {
	Send(ctx context.Context, d *Delivery) (Receipt, error)
}

// Delivery is a message on its way, with the secrets that were read for it, so that they can be taken out of what is
// reported of it.
type Delivery struct {
	Message
	Channel string
	Secrets secret.Redactor
	wording wording
}

// Words renders the message for a format that needs some characters escaped; nil escapes none.
func (d *Delivery) Words(escape func(string) string) (subject, text string, err error) {
	return d.words(d.Events, escape)
}

// WordsOf renders some events as the message is rendered.
func (d *Delivery) WordsOf(events []notices.Event) (subject, text string, err error) {
	return d.words(events, nil)
}

// words renders events. What people have written is one line: with more they could write lines of the message themselves.
func (d *Delivery) words(events []notices.Event, escape func(string) string) (subject, text string, err error) {
	events = quoted(events, func(text string) string {
		if text = OneLine(visible.Line(text)); escape != nil {
			text = escape(text)
		}
		return text
	})
	if subject, text, err = d.wording.render(d.Channel, events); err != nil {
		return "", "", AsPermanent(err)
	}
	return subject, text, nil
}

// Secret reads a secret and remembers it. The error says which field it is of.
func (d *Delivery) Secret(field string, s secret.Value) (string, error) {
	value, err := d.Secrets.Read(s)
	if err != nil {
		return "", &failure{err: err, doing: field}
	}
	return value, nil
}

// Hash is a text as a fixed number of hexadecimal digits, for receivers that take only some characters, or only some of
// them.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
