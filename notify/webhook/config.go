package webhook

import (
	"maps"
	"net/url"
	"slices"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of channel that posts CloudEvents.
var Kind = sections.Kind[notify.Receiver]{Name: "webhook", Config: &Config{}}

// Config posts CloudEvents 1.0: one, or with `digest` a batch. The same message has the same Idempotency-Key.
type Config struct {
	// URL is where they are posted. One that has a user or a query is a [secret](#secrets).
	URL Address `json:"url" jsonschema:"required"`
	// Secret is the key by which requests are signed as Standard Webhooks has it, `whsec_` and base64: a [secret](#secrets).
	Secret secret.Value `json:"secret,omitzero"`
	// Headers are headers of each request, such as Authorization. Their values are [secrets](#secrets).
	Headers map[string]secret.Value `json:"headers,omitempty"`
	// CAFile is a file with [authorities](#authorities) that are trusted besides the system's.
	CAFile string `json:"caFile,omitempty"`
	// AllowPlaintext lets secrets go by http.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// checkPlaintext refuses to send a secret, of which the address may be one, for all to read.
func (c *Config) checkPlaintext(address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return nil //nolint:nilerr // it is refused for that
	}
	return outbound.CheckPlaintext(u, !c.URL.Secret.IsZero() || !c.Secret.IsZero() || len(c.Headers) > 0, c.AllowPlaintext)
}

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) {
	if c.URL.IsZero() {
		p.Add(field+".url", "is missing")
	} else {
		p.Check(field+".url", c.URL.validate())
		p.Check(field+".url", c.checkPlaintext(c.URL.URL))
	}
	if !c.Secret.IsZero() {
		p.Check(field+".secret", c.Secret.Validate())
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		switch {
		case !outbound.IsHeaderName(name):
			p.Add(field+".headers", "%q is not the name of a header", name)
		case outbound.IsOwnHeader(name):
			p.Add(field+".headers."+name, "is set by Drydock itself; leave it out")
		default:
			p.Check(field+".headers."+name, c.Headers[name].Validate())
		}
	}
}

// Secrets are the URL where it is one, the signing key and the headers.
func (c *Config) Secrets() map[string]secret.Value {
	all := map[string]secret.Value{"url": c.URL.Secret, "secret": c.Secret}
	for name, value := range c.Headers {
		all["headers."+name] = value
	}
	return all
}

// Abilities are those of what words nothing.
func (*Config) Abilities() notify.Abilities {
	return notify.Abilities{NoText: "a webhook gets the events themselves"}
}

// Sender makes the sender.
func (c *Config) Sender(e notify.Environment) (notify.Sender, error) {
	return sender{config: *c, batch: e.Digests, agent: e.Agent}, nil
}
