package notify

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/mail"
	"regexp"
	"strings"

	gomail "github.com/wneessen/go-mail"
)

// messageID is what the sender's own message IDs look like, without the angle brackets.
var messageID = regexp.MustCompile(`^[0-9a-f]{32}@[^\s<>@]+$`)

type emailSender struct {
	config    Email
	authority authority
	agent     string
}

func (e Email) policy() string {
	if e.StartTLS == "" {
		return StartTLSRequired
	}
	return e.StartTLS
}

func (e Email) port() int {
	switch {
	case e.Port != 0:
		return e.Port
	case e.policy() == StartTLSNone:
		return 25
	case e.policy() == ImplicitTLS:
		return 465
	default:
		return 587
	}
}

func (s *emailSender) send(ctx context.Context, d *delivery) (Receipt, error) {
	message, id, err := s.message(d)
	if err != nil {
		return Receipt{}, err
	}
	client, err := s.client(d)
	if err != nil {
		return Receipt{}, err
	}
	// What goes wrong after the server has taken the message is no reason to send it again.
	if err := client.DialAndSendWithContext(ctx, message); err != nil && !message.IsDelivered() {
		return Receipt{}, mailError(err)
	}
	if d.Thread != "" {
		id = d.Thread
	}
	return Receipt{Thread: id}, nil
}

// message makes the mail. Its ID is the key's, so that mailboxes can drop a repetition.
func (s *emailSender) message(d *delivery) (*gomail.Msg, string, error) {
	subject, text, err := d.words(nil)
	if err != nil {
		return nil, "", err
	}
	from, err := mail.ParseAddress(s.config.From)
	if err != nil {
		return nil, "", permanent(fmt.Errorf("email.from: %w", err))
	}
	domain := from.Address[strings.LastIndex(from.Address, "@")+1:]
	id := hashed(d.Key)[:32] + "@" + domain
	m := gomail.NewMsg()
	m.FromMailAddress(from)
	if err := m.To(s.config.To...); err != nil {
		return nil, "", permanent(fmt.Errorf("email.to: %w", err))
	}
	m.SetMessageIDWithValue(id)
	m.SetDate()
	m.SetUserAgent(s.agent)
	m.Subject(subject)
	// No out-of-office replies (RFC 3834).
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	if d.Thread != "" {
		if !messageID.MatchString(d.Thread) {
			return nil, "", permanent(fmt.Errorf("thread %q is not of a mail that was sent here", d.Thread))
		}
		m.SetGenHeader(gomail.HeaderInReplyTo, "<"+d.Thread+">")
		m.SetGenHeader(gomail.HeaderReferences, "<"+d.Thread+">")
	}
	m.SetBodyString(gomail.TypeTextPlain, text+"\n")
	return m, id, nil
}

func (s *emailSender) client(d *delivery) (*gomail.Client, error) {
	pool, _, err := s.authority.pool()
	if err != nil {
		return nil, err
	}
	options := []gomail.Option{
		gomail.WithPort(s.config.port()), gomail.WithTimeout(requestTimeout),
		gomail.WithTLSConfig(&tls.Config{ServerName: s.config.Host, RootCAs: pool, MinVersion: tls.VersionTLS12}),
	}
	switch s.config.policy() {
	case StartTLSNone:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	case ImplicitTLS:
		options = append(options, gomail.WithSSL())
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.config.Username != "" {
		password, err := d.secrets.read("email.password", s.config.Password)
		if err != nil {
			return nil, err
		}
		// What AUTH PLAIN sends, which a server may quote.
		d.secrets.Add(base64.StdEncoding.EncodeToString([]byte("\x00" + s.config.Username + "\x00" + password)))
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthPlain),
			gomail.WithUsername(s.config.Username), gomail.WithPassword(password))
	}
	client, err := gomail.NewClient(s.config.Host, options...)
	if err != nil {
		return nil, permanent(fmt.Errorf("email: %w", err))
	}
	return client, nil
}

// mailError makes permanent what the server refuses for good: the message or an address. Refused credentials are read anew
// for the next try.
func mailError(err error) error {
	var refused *gomail.SendError
	if errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500 && refused.ErrorCode() != 530 {
		return permanent(fmt.Errorf("the mail server refuses: %w", err))
	}
	return fmt.Errorf("sending mail: %w", err)
}
