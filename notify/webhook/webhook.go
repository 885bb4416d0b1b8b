// Package webhook posts CloudEvents 1.0, a single one as application/cloudevents+json and a digest as a batch.
package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/outbound/signature"
	"drydock.dev/drydock/rules/notices"
)

// eventType begins the CloudEvents types; a State follows.
const eventType = "dev.drydock.maintenance."

type sender struct {
	config Config
	batch  bool
	agent  string
}

func (s sender) Send(ctx context.Context, d *notify.Delivery) (notify.Receipt, error) {
	client, err := outbound.NewClient(outbound.Options{CAFile: s.config.CAFile})
	if err != nil {
		return notify.Receipt{}, err
	}
	request, err := s.request(ctx, d)
	if err != nil {
		return notify.Receipt{}, err
	}
	response, err := client.Do(request)
	if err != nil {
		return notify.Receipt{}, fmt.Errorf("posting to the webhook: %w", err)
	}
	defer response.Body.Close()
	return notify.Receipt{}, d.Answered(response)
}

func (s sender) request(ctx context.Context, d *notify.Delivery) (*http.Request, error) {
	address, err := s.config.URL.read(d)
	if err != nil {
		return nil, err
	}
	if err := s.config.checkPlaintext(address); err != nil {
		return nil, notify.AsPermanent(fmt.Errorf("webhook.url: %w", err))
	}
	body, contentType, err := s.body(d.Events)
	if err != nil {
		return nil, notify.AsPermanent(err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, notify.AsPermanent(fmt.Errorf("webhook.url: %w", err))
	}
	id := headerValue(d.Key)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", s.agent)
	request.Header.Set("Idempotency-Key", id)
	for name, place := range s.config.Headers {
		value, err := d.Secret("webhook.headers."+name, place)
		if err != nil {
			return nil, err
		}
		request.Header.Set(name, value)
	}
	return request, s.sign(d, request, id, body)
}

// sign adds the headers of Standard Webhooks, where there is a key.
func (s sender) sign(d *notify.Delivery, request *http.Request, id string, body []byte) error {
	if s.config.Secret.IsZero() {
		return nil
	}
	key, err := d.Secret("webhook.secret", s.config.Secret)
	if err != nil {
		return err
	}
	switch err := signature.Sign(request, id, body, key, &d.Secrets); {
	case errors.Is(err, signature.ErrKey):
		return notify.AsPermanent(errors.New(`webhook.secret: want "whsec_" and base64`))
	case err != nil:
		return notify.AsPermanent(err)
	}
	return nil
}

// body is one event, or a batch where the channel has digests: a receiver gets one form only, as far as it can be helped.
func (s sender) body(events []notices.Event) (body []byte, contentType string, err error) {
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
	out.SetSubject(e.Subject())
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
			return notify.Hash(text)
		}
	}
	return text
}
