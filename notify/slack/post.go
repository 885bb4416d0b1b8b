package slack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
)

// temporaryErrors are errors of Slack's Web API after which the same message may get through: Slack is busy, or the token is
// rotated and the new one is not here yet.
var temporaryErrors = []string{
	"ratelimited", "rate_limited", "message_limit_exceeded", "internal_error", "fatal_error", "service_unavailable",
	"request_timeout", "team_added_to_org", "accesslimited",
	"invalid_auth", "not_authed", "token_expired", "token_revoked", "account_inactive",
}

// goneErrors are errors of Slack's Web API for a thread whose first message was deleted.
var goneErrors = []string{"thread_not_found", "message_not_found"}

// IsThreadGone reports whether Slack knows no thread to reply in: its first message was deleted.
func IsThreadGone(err error) bool {
	var answer slack.SlackErrorResponse
	return errors.As(err, &answer) && slices.Contains(goneErrors, answer.Err)
}

// refused begins with a name, and so with a capital letter.
const refused = "Slack refuses the message"

// Post is a message on its way to Slack, once.
type Post struct {
	// Channel may be empty for a webhook, which has one of its own.
	Channel string
	// Thread is the timestamp of the message to answer to; empty begins a thread. A webhook has none.
	Thread string
	Text   string
	// CAFile has certificates that are trusted besides the system's.
	CAFile string
}

// ToWebhook posts to an incoming webhook. The error may hold the URL, which is secret.
func (p Post) ToWebhook(ctx context.Context, url string) error {
	client, err := outbound.NewClient(outbound.Options{CAFile: p.CAFile})
	if err != nil {
		return err
	}
	return classified(slack.PostWebhookCustomHTTPContext(ctx, url, client, &slack.WebhookMessage{Channel: p.Channel, Text: p.Text}))
}

// AsBot posts with a bot's token, and returns the timestamp of the message. An empty URL of the API is Slack's own.
func (p Post) AsBot(ctx context.Context, token, apiURL string) (timestamp string, err error) {
	client, err := outbound.NewClient(outbound.Options{CAFile: p.CAFile})
	if err != nil {
		return "", err
	}
	options := []slack.Option{slack.OptionHTTPClient(client)}
	if apiURL != "" {
		options = append(options, slack.OptionAPIURL(strings.TrimSuffix(apiURL, "/")+"/"))
	}
	message := []slack.MsgOption{slack.MsgOptionText(p.Text, false), slack.MsgOptionDisableLinkUnfurl()}
	if p.Thread != "" {
		message = append(message, slack.MsgOptionTS(p.Thread))
	}
	_, timestamp, err = slack.New(token, options...).PostMessageContext(ctx, p.Channel, message...)
	return timestamp, classified(err)
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
