// Package email sends plain text by SMTP.
package email

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

	"drydock/notify"
	"drydock/outbound"
)

// messageID is what the sender's own message IDs look like, without the angle brackets.
var messageID = regexp.MustCompile(`^[0-9a-f]{32}@[^\s<>@]+$`)

type sender struct {
	config Config
	agent  string
	partly partly
}

func (s *sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	message, id, err := s.message(d)
	if err != nil {
		return notify.Receipt{}, err
	}
	client, err := s.client(d)
	if err != nil {
		return notify.Receipt{}, err
	}
	receipt := notify.Receipt{Thread: id}
	if d.Thread != "" {
		receipt.Thread = d.Thread
	}
	if !s.partly.has(d.Key) {
		err = client.DialAndSendWithContext(ctx, message)
		// What goes wrong after the server has taken the message is no reason to send it again.
		if err == nil || message.IsDelivered() {
			return receipt, nil
		}
		if len(s.config.To) == 1 || !refusesRecipient(err) {
			return notify.Receipt{}, classified(err)
		}
	}
	receipt.Refused, err = s.sendEach(ctx, client, d)
	return receipt, err
}

// message makes the mail. Its ID is the key's, so that mailboxes can drop a repetition.
func (s *sender) message(d *notify.Delivery) (*gomail.Msg, string, error) {
	subject, text, err := d.Words(nil)
	if err != nil {
		return nil, "", err
	}
	from, err := mail.ParseAddress(s.config.From)
	if err != nil {
		return nil, "", notify.AsPermanent(fmt.Errorf("email.from: %w", err))
	}
	to, err := mail.ParseAddressList(strings.Join(s.config.To, ", "))
	if err != nil {
		return nil, "", notify.AsPermanent(fmt.Errorf("email.to: %w", err))
	}
	domain := from.Address[strings.LastIndex(from.Address, "@")+1:]
	id := notify.Hash(d.Key)[:32] + "@" + domain
	m := gomail.NewMsg()
	m.FromMailAddress(from)
	m.ToMailAddress(to...)
	m.SetMessageIDWithValue(id)
	m.SetDate()
	m.SetUserAgent(s.agent)
	m.Subject(subject)
	// No out-of-office replies (RFC 3834).
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	if d.Thread != "" {
		if !messageID.MatchString(d.Thread) {
			return nil, "", notify.AsPermanent(fmt.Errorf("thread %q is not of a mail that was sent here", d.Thread))
		}
		m.SetGenHeader(gomail.HeaderInReplyTo, "<"+d.Thread+">")
		m.SetGenHeader(gomail.HeaderReferences, "<"+d.Thread+">")
	}
	m.SetBodyString(gomail.TypeTextPlain, text+"\n")
	return m, id, nil
}

func (s *sender) client(d *notify.Delivery) (*gomail.Client, error) {
	pool, err := outbound.Authorities(s.config.CAFile)
	if err != nil {
		return nil, err
	}
	options := []gomail.Option{
		gomail.WithPort(s.config.port()), gomail.WithTimeout(outbound.DefaultTimeout),
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
		password, err := d.Secret("email.password", s.config.Password)
		if err != nil {
			return nil, err
		}
		// What AUTH PLAIN sends, which a server may quote.
		d.Secrets.Add(base64.StdEncoding.EncodeToString([]byte("\x00" + s.config.Username + "\x00" + password)))
		options = append(options, gomail.WithSMTPAuth(gomail.SMTPAuthPlain),
			gomail.WithUsername(s.config.Username), gomail.WithPassword(password))
	}
	client, err := gomail.NewClient(s.config.Host, options...)
	if err != nil {
		return nil, notify.AsPermanent(fmt.Errorf("email: %w", err))
	}
	return client, nil
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
