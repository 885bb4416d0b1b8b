package url

import (
	"encoding/json"
	"errors"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of channel that delivers to a URL of shoutrrr.
var Kind = sections.Kind[notify.Receiver]{Name: "url", Config: &Config{}}

// Config is a URL of shoutrrr, such as `discord://token@id`, for any other service: a [secret](#secrets), with `allowPlaintext` beside its
// place. It follows redirects, which the others do not. What people have written is escaped for the `parsemode` of a Telegram URL; a template
// of one's own has to fit it.
type Config struct {
	secret.Value
	// AllowPlaintext lets the token go unencrypted, where the URL says so.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// UnmarshalJSON reads where the URL is, and allowPlaintext beside it.
func (c *Config) UnmarshalJSON(data []byte) error {
	*c = Config{}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields) // what is no object is no place either
	if allowed, ok := fields["allowPlaintext"]; ok {
		if err := json.Unmarshal(allowed, &c.AllowPlaintext); err != nil {
			return errors.New("allowPlaintext: want true or false")
		}
		delete(fields, "allowPlaintext")
		data, _ = json.Marshal(fields) // it was JSON before
	}
	return c.Value.UnmarshalJSON(data)
}

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) { p.Check(field, c.Value.Validate()) }

// Secrets are the URL.
func (c *Config) Secrets() map[string]secret.Value { return map[string]secret.Value{"": c.Value} }

// Abilities are those of most kinds.
func (*Config) Abilities() notify.Abilities { return notify.Abilities{} }

// Sender makes the sender.
func (c *Config) Sender(notify.Environment) (notify.Sender, error) { return newSender(c), nil }
