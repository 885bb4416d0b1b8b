package email

import (
	"fmt"
	"net"
	"net/mail"
	"regexp"

	"drydock.dev/drydock/config/named"
	"drydock.dev/drydock/config/secret"
	"drydock.dev/drydock/notify"
)

// Kind is the kind of channel that sends mail.
var Kind = named.Kind[notify.Receiver]{Name: "email", Config: &Config{}}

// What Config asks of the connection.
const (
	// StartTLSRequired upgrades the connection before anything is sent, StartTLSNone sends in the clear, ImplicitTLS
	// is encrypted from the first byte.
	StartTLSRequired = "required"
	StartTLSNone     = "none"
	ImplicitTLS      = "implicit"
)

// Config is the mail server, and whose mail goes to whom.
type Config struct {
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
func (c *Config) Validate(field string, p *named.Problems) {
	if !hostName.MatchString(c.Host) && net.ParseIP(c.Host) == nil {
		p.Add(field+".host", "%q: want the name of an SMTP server, the port goes into port", c.Host)
	}
	if c.Port < 0 || c.Port > 65535 {
		p.Add(field+".port", "%d: want 1 to 65535, or 0 for the usual one", c.Port)
	}
	if policy := c.policy(); policy != StartTLSRequired && policy != StartTLSNone && policy != ImplicitTLS {
		p.Add(field+".startTLS", "%q is not one of %s, %s, %s", c.StartTLS, StartTLSRequired, StartTLSNone, ImplicitTLS)
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
