// Package notify delivers the events of maintenances to chat, mail, webhooks, topics and the Kubernetes Events of a node.
// Each kind of receiver is a package below this one, which none of them is imported by: package kinds lists them.
package notify

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/rules/spec"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Config are the channels by name.
type Config map[string]Channel

// Channel is somewhere to deliver to.
type Channel struct {
	Settings
	// Receivers are the kinds that it has, with their configuration: exactly one in a valid channel.
	Receivers []sections.Chosen[Receiver]
	// Undecoded is what was read, until Config.Decode.
	Undecoded sections.Raw

	// kinds are those that it may have, for an error.
	kinds Kinds
}

// Settings are what channels of every kind have.
type Settings struct {
	// Default makes it a channel of every maintenance that names none.
	Default bool `json:"default,omitempty"`
	// Filter chooses the events that are delivered: those that pass every filter.
	Filter notices.Filter `json:"filter,omitzero"`
	// Schedule says when an event is delivered, while its state lasts: one of `oneshot`, `periodic` and `scheduled`. If absent, at once.
	Schedule notices.Schedule `json:"schedule,omitzero"`
	// Digest is how long the events of all maintenances are collected, which are then sent as one message. It is refused beside `schedule`.
	Digest spec.Duration `json:"digest,omitempty"`
	// Thread is whose messages are answers in one thread: those of each `maintenance`, or those of each `period` of `threadPeriod`. If absent,
	// every message is one by itself. E-mail and Slack bots have threads. A digest has them by `period` only.
	Thread string `json:"thread,omitempty" jsonschema:"enum=maintenance,enum=period"`
	// ThreadPeriod is how long one thread is used, such as `24h`. It is required with `thread: period`.
	ThreadPeriod spec.Duration `json:"threadPeriod,omitempty"`
	// RetryFor is how long a failed delivery is tried again, counted from when it was due: events that wait behind a dead receiver have the
	// same day, and at least three tries each. A receiver's `Retry-After` is followed within that time.
	RetryFor spec.Duration `json:"retryFor,omitempty" jsonschema:"default=24h"`
	// Template words the messages by Go templates over the latest event. They have `.Node`, `.Plan`, `.Subject` (the node or the plan), `.State`
	// (`.State.Phrase` in words), `.At`, `.Requestor`, `.Owner`, `.Cluster`, `.Groups`, `.Reason`, `.Ticket`, `.Type`, `.Phase`, `.Message`,
	// `.Blockers`, `.MoreBlockers`, `.WorkflowID`, `.RunID`; `.Events` are all of a digest, `.Nodes` and `.Channel` what they say. Functions
	// are `join`, `upper`, `lower`, `date`. A webhook has no template.
	Template Template `json:"template,omitzero"`
}

// Receiver is the configuration of one kind of receiver.
type Receiver interface {
	// Validate adds what is wrong, below the field, without reading a secret.
	Validate(field string, p *sections.Problems)
	// Secrets are all its secrets by field; the receiver itself is the field "".
	Secrets() map[string]secret.Value
	Abilities() Abilities
	// Sender makes the sender. It reads no secret yet.
	Sender(Environment) (Sender, error)
}

// Abilities are what a receiver can do with a message. The zero value is one without threads.
type Abilities struct {
	// Threads: it can answer to an earlier message.
	Threads bool
	// NoText and NoSubject say why it does not show a text, or a subject, and so needs no template for it.
	NoText, NoSubject string
	// Text is the default template of its text; empty is that of most kinds.
	Text string
}

// Kinds are the kinds of receivers that a channel may have, in the order in which errors list them.
type Kinds []sections.Kind[Receiver]

// UnmarshalJSON reads the channels' names; Decode reads the channels themselves.
func (c *Config) UnmarshalJSON(data []byte) error {
	channels, err := sections.Decode[Channel]("channels", data)
	*c = channels
	return err
}

// Decode reads what is undecoded strictly; the error begins every line with the field.
func (c Config) Decode(kinds Kinds) error {
	return sections.DecodeEach("channels", c, func(channel *Channel) (err error) {
		if channel.Undecoded == nil {
			return nil
		}
		channel.Receivers, err = sections.DecodeKinds(channel.Undecoded, &channel.Settings, kinds)
		channel.Undecoded, channel.kinds = nil, kinds
		return err
	})
}

// KindsByName are the kinds of the channels of a valid configuration.
func (c Config) KindsByName() map[string]string {
	kinds := make(map[string]string, len(c))
	for name, channel := range c {
		for _, receiver := range channel.Receivers {
			kinds[name] = receiver.Kind
		}
	}
	return kinds
}

// UnmarshalJSON keeps the channel undecoded.
func (c *Channel) UnmarshalJSON(data []byte) error { return c.Undecoded.UnmarshalJSON(data) }

// MarshalJSON writes the channel without its secrets.
func (c Channel) MarshalJSON() ([]byte, error) {
	if c.Undecoded != nil {
		return c.Undecoded.MarshalJSON()
	}
	return sections.EncodeKinds(c.Settings, c.Receivers)
}

// Plans are what workflows have to know of the channels, sorted by name.
func (c Config) Plans() []notices.Channel {
	var plans []notices.Channel
	for _, name := range slices.Sorted(maps.Keys(c)) {
		plans = append(plans, c[name].plan(name))
	}
	return plans
}

func (s Settings) plan(name string) notices.Channel {
	plan := notices.Channel{
		Name: name, Filter: s.Filter, Schedule: s.Schedule, Digest: s.Digest,
		Thread: s.Thread, ThreadPeriod: s.ThreadPeriod, RetryFor: s.RetryFor,
	}
	if plan.RetryFor == 0 {
		plan.RetryFor = notices.DefaultRetryFor
	}
	return plan
}

// Defaults are the channels of maintenances that name none, sorted.
func (c Config) Defaults() []string {
	var names []string
	for name, channel := range c {
		if channel.Default {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// names are the channels in words, for an error about one that there is not.
func (c Config) names() string {
	if len(c) == 0 {
		return "none is configured"
	}
	return fmt.Sprintf("want one of %s", strings.Join(slices.Sorted(maps.Keys(c)), ", "))
}

var channelName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// Validate checks all channels without reading a secret; the error joins one line per wrong field. What is undecoded is
// not looked at.
func (c Config) Validate() error {
	var p sections.Problems
	for _, name := range slices.Sorted(maps.Keys(c)) {
		section := "channels." + name
		if !channelName.MatchString(name) {
			p = append(p, fmt.Errorf("channels: %q: want a name of lower-case letters, digits and '-', at most 63", name))
		}
		if channel := c[name]; channel.Undecoded == nil {
			channel.validate(section, &p)
			p.Under(section, channel.plan(name).Validate())
		}
	}
	return p.Join()
}

func (c Channel) validate(section string, p *sections.Problems) {
	if err := sections.One(c.Receivers, c.kinds); err != nil {
		p.Check(section, err)
		return
	}
	receiver := c.Receivers[0]
	receiver.Config.Validate(section+"."+receiver.Kind, p)
	can := receiver.Config.Abilities()
	if c.Thread != notices.ThreadNone && !can.Threads {
		p.Add(section+".thread", "only e-mail and a Slack bot (token and channel) answer in threads")
	}
	if can.NoText != "" && c.Template != (Template{}) {
		p.Add(section+".template", "%s; leave it out", can.NoText)
	}
	if can.NoSubject != "" && c.Template.Subject != "" {
		p.Add(section+".template.subject", "%s; leave it out", can.NoSubject)
	}
	p.Under(section, errors.Join(c.Template.problems()...))
}
