package audit

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock/config/secret"
	"drydock/rules/record"
)

const (
	// webhookTimeout bounds one request.
	webhookTimeout = 15 * time.Second
	// answerLimit is how much of an answer is read, shownLimit how much of it an error shows.
	answerLimit = 64 << 10
	shownLimit  = 200
)

// ownHeaders are set by the sink itself.
var ownHeaders = []string{"Content-Length", "Content-Type", "Host", "Idempotency-Key", "Webhook-Id", "Webhook-Signature", "Webhook-Timestamp"}

// webhookSink posts records.
type webhookSink struct {
	Webhook
	now func() time.Time
}

func newWebhookSink(w Webhook) *webhookSink { return &webhookSink{Webhook: w, now: time.Now} }

func (*webhookSink) name() string { return "webhook" }

func (s *webhookSink) write(ctx context.Context, r record.Record, line []byte) error {
	ctx, cancel := context.WithTimeout(ctx, webhookTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(line))
	if err != nil {
		return err
	}
	var secrets secret.Redactor
	if err := s.dress(request, r, line, &secrets); err != nil {
		return secrets.Error(err)
	}
	client, err := s.client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	answer, err := client.Do(request)
	if err != nil {
		return secrets.Error(err)
	}
	defer answer.Body.Close()
	return secrets.Error(judge(answer))
}

// dress sets the request's headers, whose secrets the redactor then knows.
func (s *webhookSink) dress(request *http.Request, r record.Record, line []byte, secrets *secret.Redactor) error {
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value, err := readLine(s.Headers[name], secrets)
		if err != nil {
			return fmt.Errorf("webhook.headers.%s: %w", name, err)
		}
		request.Header.Set(name, value)
	}
	id := "audit-" + r.RunID
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", id)
	if s.Secret.IsZero() {
		return nil
	}
	key, err := readLine(s.Secret, secrets)
	if err != nil {
		return fmt.Errorf("webhook.secret: %w", err)
	}
	secrets.Add(strings.TrimPrefix(key, "whsec_"))
	signer, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		return errors.New(`webhook.secret: is not base64, with or without "whsec_" in front`)
	}
	at := s.now()
	signature, err := signer.Sign(id, at, line)
	if err != nil {
		return fmt.Errorf("signing the record: %w", err)
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return nil
}

// readLine reads a secret that has to stand on one line.
func readLine(place secret.Value, secrets *secret.Redactor) (string, error) {
	value, err := secrets.Read(place)
	if err == nil && strings.ContainsAny(value, "\r\n\x00") {
		err = errors.New("the secret has more than one line")
	}
	return value, err
}

// client is made for each record: they are rare, and the certificates to trust can change while the worker runs. It
// follows no redirect, which would carry the secrets to wherever it leads.
func (s *webhookSink) client() (*http.Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if s.CAFile != "" {
		data, err := os.ReadFile(s.CAFile)
		if err != nil {
			return nil, fmt.Errorf("webhook.caFile: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("webhook.caFile: %s has no certificate in PEM", s.CAFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// judge tells whether the record was taken.
func judge(answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerLimit))
	switch status := answer.StatusCode; {
	case status >= 200 && status < 300:
		// It was taken, whatever became of the rest of the answer.
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("answered %s, and redirects are not followed: set webhook.url to where it leads", answer.Status)
	case err != nil:
		return fmt.Errorf("answered %s: %w", answer.Status, err)
	}
	text := strings.ToValidUTF8(string(body[:min(len(body), shownLimit)]), "")
	return fmt.Errorf("answered %s: %q", answer.Status, strings.TrimSpace(text))
}
