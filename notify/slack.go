package notify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackutilsx"
)

// passing are errors of Slack's Web API after which the same message may get through: Slack is busy, or the token is
// rotated and the new one is not here yet.
var passing = []string{
	"ratelimited", "rate_limited", "message_limit_exceeded", "internal_error", "fatal_error", "service_unavailable",
	"request_timeout", "team_added_to_org", "accesslimited",
	"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive",
}

type slackSender struct {
	config Slack
	client *http.Client
}

func (s *slackSender) send(ctx context.Context, d *delivery) (Receipt, error) {
	// People's words must not ping a channel or make links.
	subject, text, err := d.words(slackutilsx.EscapeMessage)
	if err != nil {
		return Receipt{}, err
	}
	text = strings.TrimSpace("*" + subject + "*\n" + text)
	if !s.config.Webhook.IsZero() {
		return Receipt{}, s.post(ctx, d, text)
	}
	return s.postAsBot(ctx, d, text)
}

func (s *slackSender) post(ctx context.Context, d *delivery, text string) error {
	url, err := d.secrets.read("slack.webhook", s.config.Webhook)
	if err != nil {
		return err
	}
	return slackError(slack.PostWebhookCustomHTTPContext(ctx, url, s.client, &slack.WebhookMessage{Text: text}))
}

func (s *slackSender) postAsBot(ctx context.Context, d *delivery, text string) (Receipt, error) {
	token, err := d.secrets.read("slack.token", s.config.Token)
	if err != nil {
		return Receipt{}, err
	}
	options := []slack.Option{slack.OptionHTTPClient(s.client)}
	if s.config.APIURL != "" {
		options = append(options, slack.OptionAPIURL(strings.TrimSuffix(s.config.APIURL, "/")+"/"))
	}
	message := []slack.MsgOption{slack.MsgOptionText(text, false), slack.MsgOptionDisableLinkUnfurl()}
	if d.Thread != "" {
		message = append(message, slack.MsgOptionTS(d.Thread))
	}
	_, timestamp, err := slack.New(token, options...).PostMessageContext(ctx, s.config.Channel, message...)
	if err != nil {
		return Receipt{}, slackError(err)
	}
	if d.Thread != "" {
		timestamp = d.Thread
	}
	return Receipt{Thread: timestamp}, nil
}

// slackError says which of Slack's errors another try does not help with.
func slackError(err error) error {
	var status slack.StatusCodeError
	var answer slack.SlackErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.As(err, &status):
		return byStatus(status.Code, fmt.Errorf("posting to Slack: %w", err))
	case errors.As(err, &answer) && !slices.Contains(passing, answer.Err):
		return permanent(fmt.Errorf("Slack refuses the message: %w", err))
	default:
		return fmt.Errorf("posting to Slack: %w", err)
	}
}
