package webhook

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of sink that takes records by HTTP.
var Kind = sections.Kind[audit.SinkConfig]{Name: "webhook", Config: &Config{}}

// Config posts each record, with an Idempotency-Key.
type Config struct {
	// URL is where records are posted. It is shown in errors, and so without a password: what proves who sends is in `headers`.
	URL string `json:"url" jsonschema:"required"`
	// Headers are headers of each request. Their values are [secrets](#secrets).
	Headers map[string]secret.Value `json:"headers,omitempty"`
	// Secret is the key by which requests are signed as Standard Webhooks has it, base64 with or without `whsec_` in front: a
	// [secret](#secrets).
	Secret secret.Value `json:"secret,omitzero"`
	// CAFile is a file with [authorities](#authorities) that are trusted besides the system's.
	CAFile string `json:"caFile,omitempty"`
	// AllowPlaintext lets secrets go by http.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) {
	p.Check(field+".url", checkURL(c.URL))
	if u, err := outbound.ParseURL(c.URL); err == nil {
		p.Check(field+".url", outbound.CheckPlaintext(u, !c.Secret.IsZero() || len(c.Headers) > 0, c.AllowPlaintext))
	}
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		at := field + ".headers." + name
		canonical := http.CanonicalHeaderKey(name)
		switch first, twice := seen[canonical]; {
		case !outbound.IsHeaderName(name):
			p.Add(field+".headers", "%q is not a name of a header", name)
		case outbound.IsOwnHeader(name):
			p.Add(at, "is set by Drydock; leave it out")
		case twice:
			p.Add(at, "is the same header as %s; leave one of them out", first)
		}
		seen[canonical] = name
		p.Check(at, c.Headers[name].Validate())
	}
	if !c.Secret.IsZero() {
		p.Check(field+".secret", c.Secret.Validate())
	}
}

// checkURL never repeats the URL: what is wrong with it can be that it has a password in it.
func checkURL(text string) error {
	_, err := outbound.ParseURL(text)
	switch {
	case text == "":
		return errors.New("is missing; name the address that takes the records")
	case errors.Is(err, outbound.ErrCredentials):
		return errors.New("has a user or password in it; put an Authorization header into webhook.headers")
	case err != nil:
		return errors.New("is not an address like https://host/path")
	}
	return nil
}

// Sink makes the sink.
func (c *Config) Sink(e audit.Environment) audit.Sink {
	return sink{Config: *c, chain: audit.NewChain(e.Key)}
}
