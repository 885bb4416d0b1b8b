package notify

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock/rules/notices"
)

// eventType begins the CloudEvents types; a State follows.
const eventType = "dev.drydock.maintenance."

type webhookSender struct {
	config    Webhook
	batch     bool
	authority authority
	agent     string
}

func (s *webhookSender) send(ctx context.Context, d *delivery) (Receipt, error) {
	client, err := s.authority.http()
	if err != nil {
		return Receipt{}, err
	}
	request, err := s.request(ctx, d)
	if err != nil {
		return Receipt{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return Receipt{}, fmt.Errorf("posting to the webhook: %w", err)
	}
	defer response.Body.Close()
	return Receipt{}, answered(response)
}

func (s *webhookSender) request(ctx context.Context, d *delivery) (*http.Request, error) {
	address, err := d.secrets.address("webhook.url", s.config.URL)
	if err != nil {
		return nil, err
	}
	body, contentType, err := s.body(d.Events)
	if err != nil {
		return nil, permanent(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, permanent(fmt.Errorf("webhook.url: %w", err))
	}
	id := headerValue(d.Key)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", s.agent)
	request.Header.Set("Idempotency-Key", id)
	for name, place := range s.config.Headers {
		value, err := d.secrets.read("webhook.headers."+name, place)
		if err != nil {
			return nil, err
		}
		request.Header.Set(name, value)
	}
	return request, s.sign(d, request, id, body)
}

// sign adds the headers of Standard Webhooks. Each try has a time of its own, so that it is not refused as too old.
func (s *webhookSender) sign(d *delivery, request *http.Request, id string, body []byte) error {
	if s.config.Secret.IsZero() {
		return nil
	}
	key, err := d.secrets.read("webhook.secret", s.config.Secret)
	if err != nil {
		return err
	}
	signer, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		return permanent(errors.New(`webhook.secret: want "whsec_" and base64`))
	}
	now := time.Now()
	signature, err := signer.Sign(id, now, body)
	if err != nil {
		return permanent(fmt.Errorf("signing: %w", err))
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return nil
}

// body is one event, or a batch where the channel has digests: a receiver gets one form only, as far as it can be helped.
func (s *webhookSender) body(events []notices.Event) (body []byte, contentType string, err error) {
	all := make([]cloudevents.Event, 0, len(events))
	for _, e := range events {
		converted, err := cloudEvent(e)
		if err != nil {
			return nil, "", err
		}
		all = append(all, converted)
	}
	if s.batch || len(all) > 1 {
		body, err = json.Marshal(all)
		return body, cloudevents.ApplicationCloudEventsBatchJSON, err
	}
	body, err = json.Marshal(all[0])
	return body, cloudevents.ApplicationCloudEventsJSON, err
}

func cloudEvent(e notices.Event) (cloudevents.Event, error) {
	out := cloudevents.New()
	out.SetID(e.ID)
	out.SetSource(strings.TrimSuffix("/drydock/"+e.Cluster, "/"))
	out.SetType(eventType + string(e.State))
	out.SetSubject(e.Node)
	out.SetTime(e.At)
	if err := out.SetData(cloudevents.ApplicationJSON, e); err != nil {
		return out, fmt.Errorf("event %s: %w", e.ID, err)
	}
	if err := out.Validate(); err != nil {
		return out, fmt.Errorf("event %s: %w", e.ID, err)
	}
	return out, nil
}

// headerValue is the text where a header can carry it, and otherwise a hash of it.
func headerValue(text string) string {
	for _, r := range text {
		if r < ' ' || r > '~' {
			return hashed(text)
		}
	}
	return text
}
