// Package notify delivers the events of maintenances to chat, mail, webhooks, topics and the Kubernetes Events of a node.
package notify

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock/config/named"
	"drydock/config/secret"
	"drydock/rules/notices"
	"drydock/rules/spec"
)

// Config are the channels by name.
type Config map[string]Channel

// Channel is somewhere to deliver to: exactly one of Slack, Email, Webhook, SNS, Kubernetes and URL.
type Channel struct {
	Slack      *Slack      `json:"slack,omitempty"`
	Email      *Email      `json:"email,omitempty"`
	Webhook    *Webhook    `json:"webhook,omitempty"`
	SNS        *SNS        `json:"sns,omitempty"`
	Kubernetes *Kubernetes `json:"kubernetes,omitempty"`
	// URL is a URL of shoutrrr, such as "discord://token@id": any other service. It is secret because it has the token.
	// Unlike the other kinds it follows redirects, since shoutrrr has HTTP clients of its own.
	URL secret.Value `json:"url,omitzero"`

	// Default makes it a channel of every maintenance that names none.
	Default bool `json:"default,omitempty"`
	// The following are those of notices.Plan; RetryFor is notices.DefaultRetryFor where it is absent or 0.
	Filter       notices.Filter   `json:"filter,omitzero"`
	Schedule     notices.Schedule `json:"schedule,omitzero"`
	Digest       spec.Duration    `json:"digest,omitempty"`
	Thread       string           `json:"thread,omitempty"`
	ThreadPeriod spec.Duration    `json:"threadPeriod,omitempty"`
	RetryFor     spec.Duration    `json:"retryFor,omitempty"`
	// Template words the messages; what it leaves empty is worded by default.
	Template Template `json:"template,omitzero"`
}

// Slack posts to an incoming webhook, or to a channel as a bot. Only a bot can answer in threads.
type Slack struct {
	Webhook secret.Value `json:"webhook,omitzero"`
	// Token is a bot's with the scope chat:write; Channel is the ID or the name of a channel that it is in.
	Token   secret.Value `json:"token,omitzero"`
	Channel string       `json:"channel,omitempty"`
	// APIURL replaces https://slack.com/api/, as GovSlack needs it.
	APIURL string `json:"apiURL,omitempty"`
}

// What Email asks of the connection.
const (
	// StartTLSRequired upgrades the connection before anything is sent, StartTLSNone sends in the clear, ImplicitTLS
	// is encrypted from the first byte.
	StartTLSRequired = "required"
	StartTLSNone     = "none"
	ImplicitTLS      = "implicit"
)

// Email sends plain text by SMTP.
type Email struct {
	Host string `json:"host"`
	// Port is 587 by default, 25 with StartTLSNone and 465 with ImplicitTLS.
	Port int `json:"port,omitempty"`
	// StartTLS is StartTLSRequired where it is empty.
	StartTLS string `json:"startTLS,omitempty"`
	// Username and Password authenticate by AUTH PLAIN; both or none.
	Username string       `json:"username,omitempty"`
	Password secret.Value `json:"password,omitzero"`
	From     string       `json:"from"`
	To       []string     `json:"to"`
	// CAFile has certificates that are trusted besides the system's.
	CAFile string `json:"caFile,omitempty"`
}

// Webhook posts CloudEvents 1.0, a single one as application/cloudevents+json and a digest as a batch.
type Webhook struct {
	URL Address `json:"url"`
	// Secret signs the requests by Standard Webhooks: "whsec_" and base64.
	Secret secret.Value `json:"secret,omitzero"`
	// Headers are added to each request, such as Authorization.
	Headers map[string]secret.Value `json:"headers,omitempty"`
	CAFile  string                  `json:"caFile,omitempty"`
}

// SNS publishes to a topic of Amazon SNS.
type SNS struct {
	TopicARN string `json:"topicARN"`
	// Region is the topic's where it is empty.
	Region string `json:"region,omitempty"`
	// Endpoint replaces AWS's own.
	Endpoint string `json:"endpoint,omitempty"`
	// AccessKeyID and SecretAccessKey are both set or both absent: then the SDK looks where it always looks.
	AccessKeyID     secret.Value `json:"accessKeyID,omitzero"`
	SecretAccessKey secret.Value `json:"secretAccessKey,omitzero"`
}

// Kubernetes records an Event on the node.
type Kubernetes struct{}

// UnmarshalJSON reads the channels strictly; the error begins every line with the field.
func (c *Config) UnmarshalJSON(data []byte) error {
	channels, err := named.Decode[Channel]("channels", data)
	*c = channels
	return err
}

// Plans are what workflows have to know of the channels, sorted by name.
func (c Config) Plans() []notices.Plan {
	var plans []notices.Plan
	for _, name := range slices.Sorted(maps.Keys(c)) {
		plans = append(plans, c[name].plan(name))
	}
	return plans
}

func (c Channel) plan(name string) notices.Plan {
	plan := notices.Plan{
		Channel: name, Filter: c.Filter, Schedule: c.Schedule, Digest: c.Digest,
		Thread: c.Thread, ThreadPeriod: c.ThreadPeriod, RetryFor: c.RetryFor,
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
