package sns

import (
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of channel that publishes to a topic.
var Kind = sections.Kind[notify.Receiver]{Name: "sns", Config: &Config{}}

// Config publishes messages to a topic of Amazon SNS.
type Config struct {
	// TopicARN is the ARN of the topic, such as `arn:aws:sns:eu-central-1:123456789012:maintenance`.
	TopicARN string `json:"topicARN" jsonschema:"required"`
	// Region is the region to publish in; if absent, the topic's.
	Region string `json:"region,omitempty"`
	// Endpoint is the address of the service; if absent, AWS's own.
	Endpoint string `json:"endpoint,omitempty"`
	// AccessKeyID is a key of AWS, a [secret](#secrets), given with `secretAccessKey`; if absent, keys are where AWS tools look.
	AccessKeyID secret.Value `json:"accessKeyID,omitzero"`
	// SecretAccessKey is the secret of that key, a [secret](#secrets).
	SecretAccessKey secret.Value `json:"secretAccessKey,omitzero"`
	// AllowPlaintext lets requests go by http, which are signed with the keys and have a session's token.
	AllowPlaintext bool `json:"allowPlaintext,omitempty"`
}

// region is the topic's own unless another one is configured.
func (c *Config) region() string {
	if c.Region != "" {
		return c.Region
	}
	topic, err := arn.Parse(c.TopicARN)
	if err != nil {
		return "" // Validate refuses such a topic
	}
	return topic.Region
}

var regionName = regexp.MustCompile(`^[a-z0-9-]+$`)

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) {
	if topic, err := arn.Parse(c.TopicARN); err != nil || topic.Service != "sns" || topic.Resource == "" {
		p.Add(field+".topicARN", "%q is not the ARN of a topic, like \"arn:aws:sns:eu-central-1:123456789012:maintenance\"", c.TopicARN)
	} else if !regionName.MatchString(c.region()) {
		p.Add(field+".region", "%q: want a region like \"eu-central-1\"", c.region())
	}
	if c.Endpoint != "" {
		p.Check(field+".endpoint", outbound.CheckPlainURL(c.Endpoint))
		if u, err := outbound.ParseURL(c.Endpoint); err == nil {
			p.Check(field+".endpoint", outbound.CheckPlaintext(u, true, c.AllowPlaintext))
		}
	}
	if c.AccessKeyID.IsZero() != c.SecretAccessKey.IsZero() {
		p.Add(field+".secretAccessKey", "accessKeyID and secretAccessKey go together; set both or none")
	}
	if !c.AccessKeyID.IsZero() {
		p.Check(field+".accessKeyID", c.AccessKeyID.Validate())
	}
	if !c.SecretAccessKey.IsZero() {
		p.Check(field+".secretAccessKey", c.SecretAccessKey.Validate())
	}
}

// Secrets are the two keys.
func (c *Config) Secrets() map[string]secret.Value {
	return map[string]secret.Value{"accessKeyID": c.AccessKeyID, "secretAccessKey": c.SecretAccessKey}
}

// Abilities are those of most kinds.
func (*Config) Abilities() notify.Abilities { return notify.Abilities{} }

// Sender makes the sender.
func (c *Config) Sender(e notify.Environment) (notify.Sender, error) {
	return &sender{config: *c, agent: e.Agent}, nil
}
