// Package email sends plain text by SMTP.
package email

import (
	"context"
	"regexp"

	"drydock.dev/drydock/notify"
)

// messageID is what the sender's own message IDs look like, without the angle brackets.
var messageID = regexp.MustCompile(`^[0-9a-f]{32}@[^\s<>@]+$`)

type sender struct {
	config Config
	agent  string
	mailer Mailer
}

func (s *sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	subject, text, err := d.Words(nil)
	if err != nil {
		return notify.Receipt{}, err
	}
	server, err := s.server(d)
	if err != nil {
		return notify.Receipt{}, err
	}
	sent, err := s.mailer.Deliver(ctx, server, Mail{
		From: s.config.From, To: s.config.To, Key: d.Key, Thread: d.Thread, Subject: subject, Text: text, Agent: s.agent,
	}, &d.Secrets)
	if err != nil {
		return notify.Receipt{}, err
	}
	receipt := notify.Receipt{Thread: sent.ID, Refused: sent.Refused}
	if d.Thread != "" {
		receipt.Thread = d.Thread
	}
	return receipt, nil
}

func (s *sender) server(d *notify.Delivery) (Server, error) {
	c := s.config
	server := Server{Host: c.Host, Port: c.port(), StartTLS: c.policy(), Username: c.Username, CAFile: c.CAFile}
	if c.Username == "" {
		return server, nil
	}
	var err error
	server.Password, err = d.Secret("email.password", c.Password)
	return server, err
}
