// Package webhook posts audit records: each is the body of a POST. The same record can come again; it then has the same
// Idempotency-Key, and where it is signed the same webhook-id.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"drydock.dev/drydock/audit"
	"drydock.dev/drydock/outbound"
	"drydock.dev/drydock/outbound/signature"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/secret"
)

const (
	// answerLimit is how much of an answer is read, shownLimit how much of it an error shows, in bytes.
	answerLimit = 64 << 10
	shownLimit  = 200
)

// sink posts records.
type sink struct {
	Config
	chain *audit.Chain
}

// Write posts a record as the next one of this process.
func (s sink) Write(ctx context.Context, r record.Record) error { return s.chain.Write(ctx, r, s.post) }

func (s sink) post(ctx context.Context, r record.Record, line []byte) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(line))
	if err != nil {
		return err
	}
	var known secret.Redactor
	if err := s.setHeaders(request, r, line, &known); err != nil {
		return known.Error(err)
	}
	client, err := outbound.NewClient(outbound.Options{CAFile: s.CAFile, MaxBody: answerLimit})
	if err != nil {
		return fmt.Errorf("webhook.%w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		// It may have been taken, and the answer lost.
		return audit.Uncertain(known.Error(err))
	}
	defer response.Body.Close()
	err = known.Error(judge(response, &known))
	if response.StatusCode >= http.StatusInternalServerError {
		return audit.Uncertain(err) // what answers may be a proxy
	}
	return err
}

// setHeaders sets the request's headers, whose secrets the redactor then knows.
func (s sink) setHeaders(request *http.Request, r record.Record, line []byte, known *secret.Redactor) error {
	for _, name := range slices.Sorted(maps.Keys(s.Headers)) {
		value, err := readLine(s.Headers[name], known)
		if err != nil {
			return fmt.Errorf("webhook.headers.%s: %w", name, err)
		}
		request.Header.Set(name, value)
	}
	id := "audit-" + r.Key()
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", id)
	if s.Secret.IsZero() {
		return nil
	}
	key, err := readLine(s.Secret, known)
	if err == nil {
		err = signature.Sign(request, id, line, key, known)
	}
	if err != nil {
		return fmt.Errorf("webhook.secret: %w", err)
	}
	return nil
}

// readLine reads a secret that has to stand on one line.
func readLine(place secret.Value, known *secret.Redactor) (string, error) {
	value, err := known.Read(place)
	if err == nil && strings.ContainsAny(value, "\r\n\x00") {
		err = errors.New("the secret has more than one line")
	}
	return value, err
}

// judge reports whether the record was taken.
func judge(response *http.Response, known *secret.Redactor) error {
	body, err := outbound.ReadBody(response)
	switch status := response.StatusCode; {
	case status >= 200 && status < 300:
		// It was taken, whatever became of the rest of the answer.
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("answered %s, and redirects are not followed: set webhook.url to where it leads", response.Status)
	case err != nil:
		return fmt.Errorf("answered %s: %w", response.Status, err)
	}
	return fmt.Errorf("answered %s: %q", response.Status, outbound.Excerpt(known, body, shownLimit))
}
