package audit

import (
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Settings are those of all sinks.
type Settings struct {
	// Key is the key by which each record proves its writer, a [secret](#secrets); `audit verify --key-file` takes the same file. It has no
	// meaning without a sink.
	Key secret.Value `json:"key,omitzero"`
}

// Config says where audit records go; a record goes to every sink that is configured.
type Config struct {
	Settings
	// Sinks are those that are written, with their configuration.
	Sinks []sections.Chosen[SinkConfig]
	// Undecoded is what was read, until Decode.
	Undecoded sections.Raw
}

// SinkConfig is the configuration of one kind of sink.
type SinkConfig interface {
	// Validate adds what is wrong, below the field.
	Validate(field string, p *sections.Problems)
	// Sink makes the sink, or nil if it is turned off. It opens nothing yet.
	Sink(Environment) Sink
}

// Tryable is a SinkConfig that can find out whether its sink would take a record, and leaves nothing behind.
type Tryable interface{ Try() error }

// Try looks whether the sinks would take a record, where that can be known; the error begins every line with the field.
func (c Config) Try() error {
	var p sections.Problems
	for _, sink := range c.Sinks {
		if t, ok := sink.Config.(Tryable); ok {
			p.Check("audit."+sink.Kind, t.Try())
		}
	}
	return p.Join()
}

// Kinds are the kinds of sinks that there may be, in the order in which records go to them.
type Kinds []sections.Kind[SinkConfig]

// IsZero says that no sink is configured.
func (c Config) IsZero() bool { return c.Sinks == nil && c.Key.IsZero() && c.Undecoded == nil }

// UnmarshalJSON keeps the sinks undecoded.
func (c *Config) UnmarshalJSON(data []byte) error { return c.Undecoded.UnmarshalJSON(data) }

// Decode reads what is undecoded strictly; the error begins every line with the field.
func (c *Config) Decode(kinds Kinds) error {
	if c.Undecoded == nil {
		return nil
	}
	return sections.DecodeObject("audit", c.Undecoded, func(data []byte) (err error) {
		c.Sinks, err = sections.DecodeKinds(data, &c.Settings, kinds)
		c.Undecoded = nil
		return err
	})
}

// MarshalJSON writes the sinks without their secrets.
func (c Config) MarshalJSON() ([]byte, error) {
	if c.Undecoded != nil {
		return c.Undecoded.MarshalJSON()
	}
	return sections.EncodeKinds(c.Settings, c.Sinks)
}

// Validate checks the configuration; the error joins one line per wrong field. What is undecoded is not looked at.
func (c Config) Validate() error {
	var p sections.Problems
	if !c.Key.IsZero() {
		p.Check("key", c.Key.Validate())
		if c.Undecoded == nil && len(c.Sinks) == 0 {
			p.Add("key", "has no meaning without a sink; configure one, or leave it out")
		}
	}
	for _, sink := range c.Sinks {
		sink.Config.Validate(sink.Kind, &p)
	}
	return p.Join()
}
