package email

import (
	"fmt"
	"net"
	"net/mail"
	"regexp"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// Kind is the kind of channel that sends mail.
var Kind = sections.Kind[notify.Receiver]{Name: "email", Config: &Config{}}

// What Config asks of the connection.
const (
	// StartTLSRequired upgrades the connection before anything is sent, StartTLSNone sends in the clear, ImplicitTLS
	// is encrypted from the first byte.
	StartTLSRequired = "required"
	StartTLSNone     = "none"
	ImplicitTLS      = "implicit"
)

// Config sends messages as plain text by SMTP. An address that the server refuses keeps the mail from nobody else, and is logged.
type Config struct {
	// Host is the name or the address of the server, without a port.
	Host string `json:"host" jsonschema:"required"`
	// Port is the server's port: 587 with `startTLS: required`, 465 with `implicit`, 25 with `none`, where another one is not given.
	Port int `json:"port,omitempty" jsonschema:"minimum=0,maximum=65535"`
	// StartTLS is how the connection is encrypted: `required` upgrades it before anything is sent, `implicit` encrypts from the first byte,
	// `none` sends in the clear and takes no password.
	StartTLS string `json:"startTLS,omitempty" jsonschema:"enum=required,enum=implicit,enum=none,default=required"`
	// Username is the user of AUTH PLAIN; if absent, mail is sent without authentication.
	Username string `json:"username,omitempty"`
	// Password is the password of that user, a [secret](#secrets). It is given with `username`, and never without.
	Password secret.Value `json:"password,omitzero"`
	// From is the mail address of the sender.
	From string `json:"from" jsonschema:"required"`
	// To are the mail addresses of the receivers.
	To []string `json:"to" jsonschema:"required"`
	// CAFile is a file with [authorities](#authorities) that are trusted besides the system's.
	CAFile string `json:"caFile,omitempty"`
}

func (c *Config) policy() string {
	if c.StartTLS == "" {
		return StartTLSRequired
	}
	return c.StartTLS
}

func (c *Config) port() int {
	switch {
	case c.Port != 0:
		return c.Port
	case c.policy() == StartTLSNone:
		return 25
	case c.policy() == ImplicitTLS:
		return 465
	default:
		return 587
	}
}

var hostName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9.-]{0,252}[a-zA-Z0-9])?$`)

// Validate adds what is wrong.
func (c *Config) Validate(field string, p *sections.Problems) {
	if !hostName.MatchString(c.Host) && net.ParseIP(c.Host) == nil {
		p.Add(field+".host", "%q: want the name of an SMTP server, the port goes into port", c.Host)
	}
	if c.Port < 0 || c.Port > 65535 {
		p.Add(field+".port", "%d: want 1 to 65535, or 0 for the usual one", c.Port)
	}
	if policy := c.policy(); policy != StartTLSRequired && policy != StartTLSNone && policy != ImplicitTLS {
		p.Add(field+".startTLS", "%q is not one of %s, %s, %s", c.StartTLS, StartTLSRequired, ImplicitTLS, StartTLSNone)
	}
	switch {
	case (c.Username == "") != c.Password.IsZero():
		p.Add(field+".password", "username and password go together; set both or none")
	case c.Username != "" && c.policy() == StartTLSNone:
		p.Add(field+".password", "would be sent unencrypted; want startTLS: %s", StartTLSRequired)
	case !c.Password.IsZero():
		p.Check(field+".password", c.Password.Validate())
	}
	if _, err := mail.ParseAddress(c.From); err != nil {
		p.Add(field+".from", "%q is not a mail address", c.From)
	}
	if len(c.To) == 0 {
		p.Add(field+".to", "is empty: want at least one mail address")
	}
	for i, to := range c.To {
		if _, err := mail.ParseAddress(to); err != nil {
			p.Add(fmt.Sprintf("%s.to[%d]", field, i), "%q is not a mail address", to)
		}
	}
}

// Secrets are the password.
func (c *Config) Secrets() map[string]secret.Value {
	return map[string]secret.Value{"password": c.Password}
}

// Abilities are threads: a mail answers another one.
func (*Config) Abilities() notify.Abilities { return notify.Abilities{Threads: true} }

// Sender makes the sender.
func (c *Config) Sender(e notify.Environment) (notify.Sender, error) {
	return &sender{config: *c, agent: e.Agent}, nil
}
