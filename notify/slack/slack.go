// Package slack posts to Slack: to an incoming webhook, or to a channel as a bot. Only a bot can answer in threads.
package slack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"

	"drydock/notify"
	"drydock/outbound"
)

// temporaryErrors are errors of Slack's Web API after which the same message may get through: Slack is busy, or the token is
// rotated and the new one is not here yet.
var temporaryErrors = []string{
	"ratelimited", "rate_limited", "message_limit_exceeded", "internal_error", "fatal_error", "service_unavailable",
	"request_timeout", "team_added_to_org", "accesslimited",
	"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive",
}

// refused begins with a name, and so with a capital letter.
const refused = "Slack refuses the message"

type sender struct{ config Config }

func (s sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	// People's words must not ping a channel, make links or look like Drydock's own.
	subject, text, err := d.Words(func(text string) string { return notify.Unmarked(slackutilsx.EscapeMessage(text)) })
	if err != nil {
		return notify.Receipt{}, err
	}
	text = strings.TrimSpace("*" + subject + "*\n" + text)
	client, err := outbound.NewClient(outbound.Options{})
	if err != nil {
		return notify.Receipt{}, err
	}
	if !s.config.Webhook.IsZero() {
		return notify.Receipt{}, s.post(ctx, client, d, text)
	}
	return s.postAsBot(ctx, client, d, text)
}

func (s sender) post(ctx context.Context, client *http.Client, d *notify.Delivery, text string) error {
	url, err := d.Secret("slack.webhook", s.config.Webhook)
	if err != nil {
		return err
	}
	if err := s.config.checkPlaintext(url); err != nil {
		return notify.AsPermanent(fmt.Errorf("slack.webhook: %w", err))
	}
	return classified(slack.PostWebhookCustomHTTPContext(ctx, url, client, &slack.WebhookMessage{Text: text}))
}

func (s sender) postAsBot(ctx context.Context, client *http.Client, d *notify.Delivery, text string) (notify.Receipt, error) {
	token, err := d.Secret("slack.token", s.config.Token)
	if err != nil {
		return notify.Receipt{}, err
	}
	options := []slack.Option{slack.OptionHTTPClient(client)}
	if s.config.APIURL != "" {
		options = append(options, slack.OptionAPIURL(strings.TrimSuffix(s.config.APIURL, "/")+"/"))
	}
	message := []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionDisableLinkUnfurl()}
	if d.Thread != "" {
		message = append(message, slack.MsgOptionTS(d.Thread))
	}
	_, timestamp, err := slack.New(token, options...).PostMessageContext(ctx, s.config.Channel, message...)
	if err != nil {
		return notify.Receipt{}, classified(err)
	}
	if d.Thread != "" {
		timestamp = d.Thread
	}
	return notify.Receipt{Thread: timestamp}, nil
}

// classified says which of Slack's errors another try does not help with.
func classified(err error) error {
	var status slack.StatusCodeError
	var answer slack.SlackErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status):
		return notify.ByStatus(status.Code, fmt.Errorf("posting to Slack: %w", err))
	case errors.As(err, &answer) && !slices.Contains(temporaryErrors, answer.Err):
		return notify.AsPermanent(fmt.Errorf("%s: %w", refused, err))
	default:
		return fmt.Errorf("posting to Slack: %w", err)
	}
}
