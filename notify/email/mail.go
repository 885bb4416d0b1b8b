package email

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net/mail"
	"strings"

	gomail "github.com/wneessen/go-mail"
	"github.com/wneessen/go-mail/smtp"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/secret"
)

// StartTLSOffered upgrades the connection where the server offers that. It is only for configurations that Drydock reads from other
// programs: an attacker on the path can remove the offer.
const StartTLSOffered = "offered"

// Server is a mail server, and how it is spoken to.
type Server struct {
	Host string
	Port int
	// StartTLS is one of StartTLSRequired, StartTLSOffered, StartTLSNone and ImplicitTLS.
	StartTLS string
	// Username and Password authenticate by AUTH PLAIN, as Identity where it is set; without a username nobody does. They are sent
	// unencrypted to this machine only.
	Identity, Username, Password string
	// CAFile has certificates that are trusted besides the system's.
	CAFile string
}

// Mail is a mail in plain text.
type Mail struct {
	From string
	To   []string
	// Key is the same whenever the mail is sent again, and Thread the ID of the mail that it answers, if any.
	Key, Thread   string
	Subject, Text string
	Agent         string
}

// Mailer delivers mails, and remembers who has got one that others have not got yet. Its zero value is ready.
type Mailer struct{ partly partly }

// Sent is what is known of a mail that was delivered.
type Sent struct {
	// ID is the mail's, without angle brackets.
	ID string
	// Refused says whom the server refuses for good; the others have got the mail.
	Refused []string
}

// Deliver sends a mail. The error may hold secrets, which known then knows.
func (m *Mailer) Deliver(ctx context.Context, server Server, mail Mail, known *secret.Redactor) (Sent, error) {
	message, id, err := mail.message()
	if err != nil {
		return Sent{}, err
	}
	client, err := server.client(known)
	if err != nil {
		return Sent{}, err
	}
	sent := Sent{ID: id}
	if !m.partly.has(mail.Key) {
		err = client.DialAndSendWithContext(ctx, message)
		// What goes wrong after the server has taken the message is no reason to send it again.
		if err == nil || message.IsDelivered() {
			return sent, nil
		}
		if len(mail.To) == 1 || !refusesRecipient(err) {
			return Sent{}, classified(err)
		}
	}
	sent.Refused, err = m.sendEach(ctx, client, mail)
	return sent, err
}

// message makes the mail. Its ID is the key's, so that mailboxes can drop a repetition.
func (m Mail) message() (*gomail.Msg, string, error) {
	from, err := mail.ParseAddress(m.From)
	if err != nil {
		return nil, "", notify.AsPermanent(fmt.Errorf("email.from: %w", err))
	}
	to, err := mail.ParseAddressList(strings.Join(m.To, ", "))
	if err != nil {
		return nil, "", notify.AsPermanent(fmt.Errorf("email.to: %w", err))
	}
	domain := from.Address[strings.LastIndex(from.Address, "@")+1:]
	id := notify.Hash(m.Key)[:32] + "@" + domain
	message := gomail.NewMsg()
	message.FromMailAddress(from)
	message.ToMailAddress(to...)
	message.SetMessageIDWithValue(id)
	message.SetDate()
	message.SetUserAgent(m.Agent)
	message.Subject(m.Subject)
	// No out-of-office replies (RFC 3834).
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	if m.Thread != "" {
		if !messageID.MatchString(m.Thread) {
			return nil, "", notify.AsPermanent(fmt.Errorf("thread %q is not of a mail that was sent here", m.Thread))
		}
		message.SetGenHeader(gomail.HeaderInReplyTo, "<"+m.Thread+">")
		message.SetGenHeader(gomail.HeaderReferences, "<"+m.Thread+">")
	}
	message.SetBodyString(gomail.TypeTextPlain, m.Text+"\n")
	return message, id, nil
}

func (s Server) client(known *secret.Redactor) (*gomail.Client, error) {
	pool, err := outbound.Authorities(s.CAFile)
	if err != nil {
		return nil, err
	}
	options := []gomail.Option{
		gomail.WithPort(s.Port), gomail.WithTimeout(outbound.DefaultTimeout),
		gomail.WithTLSConfig(&tls.Config{ServerName: s.Host, RootCAs: pool, MinVersion: tls.VersionTLS12}),
	}
	switch s.StartTLS {
	case StartTLSNone:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS))
	case StartTLSOffered:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSOpportunistic))
	case ImplicitTLS:
		options = append(options, gomail.WithSSL())
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if s.Username != "" {
		// What AUTH PLAIN sends, which a server may quote.
		known.Add(s.Password, base64.StdEncoding.EncodeToString([]byte(s.Identity+"\x00"+s.Username+"\x00"+s.Password)))
		options = append(options, s.auth()...)
	}
	client, err := gomail.NewClient(s.Host, options...)
	if err != nil {
		return nil, notify.AsPermanent(fmt.Errorf("email: %w", err))
	}
	return client, nil
}

// auth is AUTH PLAIN, which the library knows without an identity alone.
func (s Server) auth() []gomail.Option {
	if s.Identity != "" {
		return []gomail.Option{gomail.WithSMTPAuthCustom(smtp.PlainAuth(s.Identity, s.Username, s.Password, s.Host, false))}
	}
	return []gomail.Option{gomail.WithSMTPAuth(gomail.SMTPAuthPlain), gomail.WithUsername(s.Username), gomail.WithPassword(s.Password)}
}

// classified makes permanent what the server refuses for good: the message or an address. Refused credentials are read again
// for the next try.
func classified(err error) error {
	if isFinal(err) {
		return notify.AsPermanent(fmt.Errorf("the mail server refuses: %w", err))
	}
	return fmt.Errorf("sending mail: %w", err)
}

func isFinal(err error) bool {
	var refused *gomail.SendError
	return errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500 && refused.ErrorCode() != 530
}
