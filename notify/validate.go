package notify

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/mail"
	"net/textproto"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"drydock/config/named"
	"drydock/config/secret"
	"drydock/rules/notices"
)

var (
	channelName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	hostName    = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,252}[a-zA-Z0-9])?$`)
	headerName  = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	awsRegion   = regexp.MustCompile(`^[a-z0-9-]+$`)
)

// wrongs collects one error per wrong field.
type wrongs []error

func (w *wrongs) add(field, format string, args ...any) {
	*w = append(*w, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
}

// check adds what is wrong with one field.
func (w *wrongs) check(field string, err error) {
	if err != nil {
		w.add(field, "%s", err)
	}
}

// optional checks a secret that may be absent.
func (w *wrongs) optional(field string, s secret.Value) {
	if !s.IsZero() {
		w.check(field, s.Validate())
	}
}

// Validate checks all channels without reading a secret; the error joins one line per wrong field.
func (c Config) Validate() error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(c)) {
		section := "channels." + name
		if !channelName.MatchString(name) {
			problems = append(problems, fmt.Errorf("channels: %q: want a name of lower-case letters, digits and '-', at most 63", name))
		}
		problems = append(problems, named.Under(section, errors.Join(c[name].problems()...))...)
		problems = append(problems, named.Under(section, c[name].plan(name).Validate())...)
	}
	return errors.Join(problems...)
}

func (c Channel) problems() []error {
	var w wrongs
	kinds := c.kinds()
	if len(kinds) != 1 {
		had := "none"
		if len(kinds) > 0 {
			had = strings.Join(kinds, " and ")
		}
		return []error{fmt.Errorf("has %s: want exactly one of slack, email, webhook, sns, kubernetes, url", had)}
	}
	switch {
	case c.Slack != nil:
		w = append(w, named.Under("slack", errors.Join(c.Slack.problems()...))...)
	case c.Email != nil:
		w = append(w, named.Under("email", errors.Join(c.Email.problems()...))...)
	case c.Webhook != nil:
		w = append(w, named.Under("webhook", errors.Join(c.Webhook.problems()...))...)
	case c.SNS != nil:
		w = append(w, named.Under("sns", errors.Join(c.SNS.problems()...))...)
	default:
		w.optional("url", c.URL)
	}
	if c.Thread != notices.ThreadNone && !c.threads() {
		w.add("thread", "only e-mail and a Slack bot (token and channel) answer in threads")
	}
	if c.Webhook != nil && c.Template != (Template{}) {
		w.add("template", "a webhook gets the events themselves; leave it out")
	}
	if c.Kubernetes != nil && c.Template.Subject != "" {
		w.add("template.subject", "a Kubernetes Event has no subject; leave it out")
	}
	w = append(w, c.Template.problems()...)
	return w
}

func (c Channel) kinds() []string {
	var kinds []string
	for _, kind := range []struct {
		name string
		set  bool
	}{
		{"slack", c.Slack != nil}, {"email", c.Email != nil}, {"webhook", c.Webhook != nil},
		{"sns", c.SNS != nil}, {"kubernetes", c.Kubernetes != nil}, {"url", !c.URL.IsZero()},
	} {
		if kind.set {
			kinds = append(kinds, kind.name)
		}
	}
	return kinds
}

func (c Channel) threads() bool {
	return c.Email != nil || c.Slack != nil && c.Slack.Webhook.IsZero()
}

func (s Slack) problems() []error {
	var w wrongs
	switch {
	case !s.Webhook.IsZero() && (!s.Token.IsZero() || s.Channel != "" || s.APIURL != ""):
		w.add("webhook", "has no meaning beside token, channel and apiURL; keep one way to post")
	case !s.Webhook.IsZero():
		w.check("webhook", s.Webhook.Validate())
	case s.Token.IsZero():
		w.add("token", "is missing: want a bot's token and a channel, or a webhook")
	default:
		w.check("token", s.Token.Validate())
		if strings.TrimSpace(s.Channel) == "" {
			w.add("channel", "is missing: want the ID or the name of a channel that the bot is in")
		}
		if s.APIURL != "" {
			w.check("apiURL", checkURL(s.APIURL))
		}
	}
	return w
}

func (e Email) problems() []error {
	var w wrongs
	if !hostName.MatchString(e.Host) && net.ParseIP(e.Host) == nil {
		w.add("host", "%q: want the name of an SMTP server, the port goes into port", e.Host)
	}
	if e.Port < 0 || e.Port > 65535 {
		w.add("port", "%d: want 1 to 65535, or 0 for the usual one", e.Port)
	}
	if policy := e.policy(); policy != StartTLSRequired && policy != StartTLSNone && policy != ImplicitTLS {
		w.add("startTLS", "%q is not one of %s, %s, %s", e.StartTLS, StartTLSRequired, StartTLSNone, ImplicitTLS)
	}
	switch {
	case (e.Username == "") != e.Password.IsZero():
		w.add("password", "username and password go together; set both or none")
	case e.Username != "" && e.policy() == StartTLSNone:
		w.add("password", "would be sent unencrypted; want startTLS: %s", StartTLSRequired)
	default:
		w.optional("password", e.Password)
	}
	if _, err := mail.ParseAddress(e.From); err != nil {
		w.add("from", "%q is not a mail address", e.From)
	}
	if len(e.To) == 0 {
		w.add("to", "is empty: want at least one mail address")
	}
	for i, to := range e.To {
		if _, err := mail.ParseAddress(to); err != nil {
			w.add(fmt.Sprintf("to[%d]", i), "%q is not a mail address", to)
		}
	}
	return w
}

// ownHeaders are set by the webhook itself.
var ownHeaders = []string{
	"Content-Type", "Content-Length", "Host", "Idempotency-Key", "Transfer-Encoding",
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature",
}

func (h Webhook) problems() []error {
	var w wrongs
	if h.URL.IsZero() {
		w.add("url", "is missing")
	} else {
		w.check("url", h.URL.validate())
	}
	w.optional("secret", h.Secret)
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		switch {
		case !headerName.MatchString(name):
			w.add("headers", "%q is not the name of a header", name)
		case slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(name)):
			w.add("headers."+name, "is set by Drydock itself; leave it out")
		default:
			w.check("headers."+name, h.Headers[name].Validate())
		}
	}
	return w
}

func (s SNS) problems() []error {
	var w wrongs
	if topic, err := arn.Parse(s.TopicARN); err != nil || topic.Service != "sns" || topic.Resource == "" {
		w.add("topicARN", "%q is not the ARN of a topic, like \"arn:aws:sns:eu-central-1:123456789012:maintenance\"", s.TopicARN)
	} else if !awsRegion.MatchString(s.region()) {
		w.add("region", "%q: want a region like \"eu-central-1\"", s.region())
	}
	if s.Endpoint != "" {
		w.check("endpoint", checkURL(s.Endpoint))
	}
	if s.AccessKeyID.IsZero() != s.SecretAccessKey.IsZero() {
		w.add("secretAccessKey", "accessKeyID and secretAccessKey go together; set both or none")
	}
	w.optional("accessKeyID", s.AccessKeyID)
	w.optional("secretAccessKey", s.SecretAccessKey)
	return w
}
