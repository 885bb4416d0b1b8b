package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
	_ "time/tzdata" // the time zones of schedules, on machines without them

	"drydock/config/secret"
	"drydock/rules/notices"
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
	// Thread is what later messages of the same thread give; empty where the channel has no threads.
	Thread string `json:"thread,omitempty"`
}

// EventEmitter records Kubernetes Events on nodes. The same key gives the same Event.
type EventEmitter interface {
	EmitNodeEvent(ctx context.Context, node, key, reason, message string, warning bool) error
}

// delivery is a message on its way, with the secrets that were read for it.
type delivery struct {
	Message
	channel string
	wording wording
	secrets disclosed
}

// words renders the message for a format that needs some characters escaped.
func (d *delivery) words(escape func(string) string) (subject, text string, err error) {
	events := d.Events
	if escape != nil {
		events = quoted(events, escape)
	}
	if subject, text, err = d.wording.render(d.channel, events); err != nil {
		return "", "", permanent(err)
	}
	return subject, text, nil
}

// sender delivers to one receiver. Its error may hold secrets that the delivery knows.
type sender interface {
	send(ctx context.Context, d *delivery) (Receipt, error)
}

type channel struct {
	sender  sender
	wording wording
	secrets map[string]secret.Value
}

// Senders deliver to the channels of a configuration. They are safe for concurrent use.
type Senders struct {
	config   Config
	channels map[string]*channel
}

// New makes the senders of a valid configuration. The emitter may be nil where no channel is of kind kubernetes; version
// is told to receivers. No secret is read before it is needed.
func New(cfg Config, kubernetes EventEmitter, version string) (*Senders, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Senders{config: cfg, channels: map[string]*channel{}}
	agent := "drydock/" + version
	for name, c := range cfg {
		if c.Kubernetes != nil && kubernetes == nil {
			return nil, fmt.Errorf("channels.%s.kubernetes: there is no Kubernetes client to record Events with", name)
		}
		text := defaultText
		if c.Kubernetes != nil {
			text = kubernetesText
		}
		words, problems := c.Template.parse(defaultSubject, text)
		if len(problems) > 0 {
			return nil, errors.Join(problems...)
		}
		s.channels[name] = &channel{sender: c.sender(kubernetes, agent), wording: words, secrets: c.secrets()}
	}
	return s, nil
}

func (c Channel) sender(kubernetes EventEmitter, agent string) sender {
	switch {
	case c.Slack != nil:
		return &slackSender{config: *c.Slack, client: newClient(defaultTransport())}
	case c.Email != nil:
		return &emailSender{config: *c.Email, authority: authority{file: c.Email.CAFile}, agent: agent}
	case c.Webhook != nil:
		return &webhookSender{config: *c.Webhook, batch: c.Digest > 0, authority: authority{file: c.Webhook.CAFile}, agent: agent}
	case c.SNS != nil:
		return &snsSender{config: *c.SNS, agent: agent}
	case c.Kubernetes != nil:
		return &kubernetesSender{emitter: kubernetes}
	default:
		return newURLSender(c.URL)
	}
}

// secrets are all secrets of a channel by field.
func (c Channel) secrets() map[string]secret.Value {
	all := map[string]secret.Value{"url": c.URL}
	if c.Slack != nil {
		all["slack.webhook"], all["slack.token"] = c.Slack.Webhook, c.Slack.Token
	}
	if c.Email != nil {
		all["email.password"] = c.Email.Password
	}
	if c.Webhook != nil {
		all["webhook.url"], all["webhook.secret"] = c.Webhook.URL.Secret, c.Webhook.Secret
		for name, value := range c.Webhook.Headers {
			all["webhook.headers."+name] = value
		}
	}
	if c.SNS != nil {
		all["sns.accessKeyID"], all["sns.secretAccessKey"] = c.SNS.AccessKeyID, c.SNS.SecretAccessKey
	}
	maps.DeleteFunc(all, func(_ string, s secret.Value) bool { return s.IsZero() })
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

// Send delivers a message once, without retries. The error holds no secret; Permanent and RetryAfter tell what to do about
// it.
func (s *Senders) Send(ctx context.Context, name string, m Message) (Receipt, error) {
	d := &delivery{Message: m, channel: name}
	c, ok := s.channels[name]
	switch {
	case !ok:
		return Receipt{}, reported(ctx, name, permanent(fmt.Errorf("is not configured: %s", s.config.names())), &d.secrets, 0)
	case len(m.Events) == 0:
		return Receipt{}, reported(ctx, name, permanent(errors.New("the message has no event")), &d.secrets, 0)
	case m.Key == "":
		return Receipt{}, reported(ctx, name, permanent(errors.New("the message has no key")), &d.secrets, 0)
	}
	d.wording = c.wording
	var wait time.Duration
	receipt, err := c.sender.send(noting(ctx, &wait), d)
	if err != nil {
		return Receipt{}, reported(ctx, name, err, &d.secrets, wait)
	}
	return receipt, nil
}
