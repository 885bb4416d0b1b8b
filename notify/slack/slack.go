// Package slack posts to Slack: to an incoming webhook, or to a channel as a bot. Only a bot can answer in threads.
package slack

import (
	"context"
	"fmt"
	"strings"

	"github.com/slack-go/slack/slackutilsx"

	"drydock.dev/drydock/notify"
)

type sender struct{ config Config }

func (s sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	// People's words must not ping a channel, make links or look like Drydock's own.
	subject, text, err := d.Words(func(text string) string { return notify.Unmarked(slackutilsx.EscapeMessage(text)) })
	if err != nil {
		return notify.Receipt{}, err
	}
	p := Post{Text: strings.TrimSpace("*" + subject + "*\n" + text)}
	if !s.config.Webhook.IsZero() {
		return notify.Receipt{}, s.post(ctx, d, p)
	}
	return s.postAsBot(ctx, d, p)
}

func (s sender) post(ctx context.Context, d *notify.Delivery, p Post) error {
	url, err := d.Secret("slack.webhook", s.config.Webhook)
	if err != nil {
		return err
	}
	if err := s.config.checkPlaintext(url); err != nil {
		return notify.AsPermanent(fmt.Errorf("slack.webhook: %w", err))
	}
	return p.ToWebhook(ctx, url)
}

func (s sender) postAsBot(ctx context.Context, d *notify.Delivery, p Post) (notify.Receipt, error) {
	token, err := d.Secret("slack.token", s.config.Token)
	if err != nil {
		return notify.Receipt{}, err
	}
	p.Channel, p.Thread = s.config.Channel, d.Thread
	timestamp, err := p.AsBot(ctx, token, s.config.APIURL)
	if p.Thread != "" && IsThreadGone(err) {
		p.Thread = "" // this message begins another
		timestamp, err = p.AsBot(ctx, token, s.config.APIURL)
	}
	if err != nil {
		return notify.Receipt{}, err
	}
	if p.Thread != "" {
		timestamp = p.Thread
	}
	return notify.Receipt{Thread: timestamp}, nil
}
