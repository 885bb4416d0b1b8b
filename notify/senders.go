package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	_ "time/tzdata" // the time zones of schedules, on machines without them

	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/notices"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// EventEmitter records Kubernetes Events on nodes. The same key gives the same Event.
type EventEmitter interface {
	EmitNodeEvent(ctx context.Context, node, key, reason, message string, warning bool) error
}

// Environment is what the senders of a channel get from the worker.
type Environment struct {
	// Agent identifies the sender to receivers.
	Agent string
	// Emitter may be nil.
	Emitter EventEmitter
	// Digests: a message may have many events.
	Digests bool
}

type channel struct {
	sender  Sender
	wording wording
	secrets map[string]secret.Value
}

// Senders deliver to the channels of a configuration. They are safe for concurrent use.
type Senders struct {
	config   Config
	channels map[string]*channel
}

// New makes the senders of a valid configuration. The emitter may be nil if no channel is of kind kubernetes; version
// is sent to receivers. No secret is read before it is needed.
func New(cfg Config, kubernetes EventEmitter, version string) (*Senders, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Senders{config: cfg, channels: map[string]*channel{}}
	for name, c := range cfg {
		if c.Undecoded != nil {
			return nil, fmt.Errorf("channels.%s: its kind is not known here", name)
		}
		receiver := c.Receivers[0]
		environment := Environment{Agent: "drydock/" + version, Emitter: kubernetes, Digests: c.Digest > 0}
		sender, err := receiver.Config.Sender(environment)
		if err != nil {
			return nil, fmt.Errorf("channels.%s.%s: %w", name, receiver.Kind, err)
		}
		text := receiver.Config.Abilities().Text
		if text == "" {
			text = defaultText
		}
		words, problems := c.Template.parse(defaultSubject, text)
		if len(problems) > 0 {
			return nil, errors.Join(problems...)
		}
		s.channels[name] = &channel{sender: sender, wording: words, secrets: secretsOf(receiver)}
	}
	return s, nil
}

// secretsOf are all secrets of a channel by field.
func secretsOf(receiver sections.Chosen[Receiver]) map[string]secret.Value {
	all := map[string]secret.Value{}
	for field, value := range receiver.Config.Secrets() {
		switch {
		case value.IsZero():
		case field == "":
			all[receiver.Kind] = value
		default:
			all[receiver.Kind+"."+field] = value
		}
	}
	return all
}

// CheckSecrets reads every secret once; the error joins one line per field whose secret cannot be read. A worker can tell
// so when it starts, instead of when the first node needs it.
func (s *Senders) CheckSecrets() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(s.channels)) {
		secrets := s.channels[name].secrets
		for _, field := range slices.Sorted(maps.Keys(secrets)) {
			if _, err := secrets[field].Read(); err != nil {
				problems = append(problems, fmt.Errorf("channels.%s.%s: %w", name, field, err))
			}
		}
	}
	return errors.Join(problems...)
}

// Plan is what a workflow has to know of a channel. The error says which channels there are.
func (s *Senders) Plan(name string) (notices.Channel, error) {
	c, ok := s.config[name]
	if !ok {
		return notices.Channel{}, fmt.Errorf("channel %.80q is not configured: %s", name, s.config.names())
	}
	return c.plan(name), nil
}

// Send delivers a message once, without retries. The error holds no secret; Permanent and RetryAfter tell what to do about
// it.
func (s *Senders) Send(ctx context.Context, name string, m Message) (Receipt, error) {
	d := &Delivery{Message: m, Channel: name}
	c, ok := s.channels[name]
	switch {
	case !ok:
		return Receipt{}, d.reported(ctx, AsPermanent(fmt.Errorf("is not configured: %s", s.config.names())), 0)
	case len(m.Events) == 0:
		return Receipt{}, d.reported(ctx, AsPermanent(errors.New("the message has no event")), 0)
	case m.Key == "":
		return Receipt{}, d.reported(ctx, AsPermanent(errors.New("the message has no key")), 0)
	}
	d.wording = c.wording
	var wait time.Duration
	receipt, err := c.sender.Send(outbound.NoteRetryAfter(ctx, &wait), d)
	if err != nil {
		return Receipt{}, d.reported(ctx, err, wait)
	}
	for i, why := range receipt.Refused {
		receipt.Refused[i] = OneLine(d.Secrets.Redact(why))
	}
	return receipt, nil
}
