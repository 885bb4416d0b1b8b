// Package notice sends the notifications of profiles, as rules/profile/notice describes them.
package notice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"drydock.dev/drydock/k8s/kube"
	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/email"
	"drydock.dev/drydock/notify/slack"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/rules/profile/notice"
	"drydock.dev/drydock/secret"
)

// Sender sends notifications. It is safe for concurrent use, and not to be copied.
type Sender struct {
	// Client has the Leases that remember threads.
	Client kube.Interface
	// Agent identifies the sender to receivers.
	Agent string
	// CAFile has certificates that are trusted besides the system's.
	CAFile string
	// SlackURL replaces https://slack.com/api/ for threads.
	SlackURL string

	mailer email.Mailer
	// opening are threads that are being begun, by their Lease.
	opening singleflight.Group
}

// Send sends a notification once, without retries. The key is the same whenever it is sent again: a mail then has the same ID. The
// error holds no secret; notify.Permanent and notify.RetryAfter tell what to do about it.
func (s *Sender) Send(ctx context.Context, n notice.Notice, m notice.Message, key string) error {
	var known secret.Redactor
	var wait time.Duration
	name, err := s.send(outbound.NoteRetryAfter(ctx, &wait), n, m, key, &known)
	if err != nil {
		return notify.Reported(ctx, name, &known, err, wait)
	}
	return nil
}

// send also returns what kind the notification is.
func (s *Sender) send(ctx context.Context, n notice.Notice, m notice.Message, key string, known *secret.Redactor) (string, error) {
	switch n := n.(type) {
	case notice.Mail:
		return "mail", s.mail(ctx, n, m, key, known)
	case notice.Slack:
		return "slack", s.post(ctx, n, m, known)
	case notice.SlackThread:
		return "slackThread", s.reply(ctx, n, m, known)
	default:
		return "notification", notify.AsPermanent(fmt.Errorf("nobody here sends a %T", n))
	}
}

// implicitTLS is the port on which a connection is encrypted from the first byte.
const implicitTLS = 465

func (s *Sender) mail(ctx context.Context, n notice.Mail, m notice.Message, key string, known *secret.Redactor) error {
	host, port, err := net.SplitHostPort(n.Address)
	if err != nil {
		return notify.AsPermanent(fmt.Errorf("address: %q is not host:port", n.Address))
	}
	server := email.Server{Host: host, StartTLS: email.StartTLSOffered, CAFile: s.CAFile}
	if server.Port, err = net.DefaultResolver.LookupPort(ctx, "tcp", port); err != nil {
		return notify.AsPermanent(fmt.Errorf("address: %q has no port that there is", n.Address))
	}
	if server.Port == implicitTLS {
		server.StartTLS = email.ImplicitTLS
	}
	if n.Auth {
		if n.User == "" {
			return notify.AsPermanent(errors.New("user: required where auth is true"))
		}
		server.Identity, server.Username, server.Password = n.Identity, n.User, n.Password
	}
	sent, err := s.mailer.Deliver(ctx, server, email.Mail{
		From: n.From, To: n.To, Key: key, Subject: m.Title, Text: m.Text, Agent: s.Agent,
	}, known)
	if err == nil && len(sent.Refused) > 0 {
		return notify.AsPermanent(fmt.Errorf("to: the others have got it: %s", strings.Join(sent.Refused, "; ")))
	}
	return err
}

// post posts a text as it is, as maintenance-controller does.
func (s *Sender) post(ctx context.Context, n notice.Slack, m notice.Message, known *secret.Redactor) error {
	known.Add(n.Hook)
	// An invalid URL is refused here: an error of the client would quote it.
	if u, err := url.Parse(n.Hook); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return notify.AsPermanent(errors.New("hook: is not an http or https URL"))
	}
	return slack.Post{Channel: n.Channel, Text: m.Text, CAFile: s.CAFile}.ToWebhook(ctx, n.Hook)
}
