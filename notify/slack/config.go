package slack

import (
	"net/url"
	"strings"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of channel that posts to Slack.
var Kind = sections.Kind[notify.Receiver]{Name: "slack", Config: &Config{}}

// Config posts messages to Slack, by an incoming webhook or by a bot (`token` and `channel`); only a bot answers in threads.
type Config struct {
	// Webhook is the URL of an incoming webhook, a [secret](#secrets). It stands in place of `token`, `channel` and `apiURL`.
	Webhook secret.Value `json:"webhook,omitzero"`
	// Token is that of a bot with the scope chat:write, a [secret](#secrets).
	Token secret.Value `json:"token,omitzero"`
	// Channel is the ID or the name of a channel that the bot is in. It is required with `token`.
	Channel string `json:"channel,omitempty"`
	// APIURL is the address of the API, as GovSlack needs another one.
	APIURL string `json:"apiURL,omitempty" jsonschema:"default=https://slack.com/api/"`
	// AllowPlaintext lets the token, or the webhook's URL, go by http.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// checkPlaintext refuses to send the token, or the webhook's URL, for all to read.
func (c *Config) checkPlaintext(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return nil //nolint:nilerr // it is refused for that
	}
	return outbound.CheckPlaintext(u, true, c.AllowPlaintext)
}

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) {
	switch {
	case !c.Webhook.IsZero() && (!c.Token.IsZero() || c.Channel != "" || c.APIURL != ""):
		p.Add(field+".webhook", "has no meaning beside token, channel and apiURL; keep one way to post")
	case !c.Webhook.IsZero():
		p.Check(field+".webhook", c.Webhook.Validate())
	case c.Token.IsZero():
		p.Add(field+".token", "is missing: want a bot's token and a channel, or a webhook")
	default:
		p.Check(field+".token", c.Token.Validate())
		if strings.TrimSpace(c.Channel) == "" {
			p.Add(field+".channel", "is missing: want the ID or the name of a channel that the bot is in")
		}
		if c.APIURL != "" {
			p.Check(field+".apiURL", outbound.CheckPlainURL(c.APIURL))
			p.Check(field+".apiURL", c.checkPlaintext(c.APIURL))
		}
	}
}

// Secrets are the webhook's URL and the token.
func (c *Config) Secrets() map[string]secret.Value {
	return map[string]secret.Value{"webhook": c.Webhook, "token": c.Token}
}

// Abilities are threads, for a bot.
func (c *Config) Abilities() notify.Abilities { return notify.Abilities{Threads: c.Webhook.IsZero()} }

// Sender makes the sender.
func (c *Config) Sender(notify.Environment) (notify.Sender, error) { return sender{*c}, nil }
