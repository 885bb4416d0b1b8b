package outbound

import (
	"errors"
	"net/http"
	"net/textproto"
	"slices"

	"golang.org/x/net/http/httpguts"

	"drydock.dev/drydock/secret"
)

// ownHeaders are set by Drydock itself on the requests of webhooks.
var ownHeaders = []string{
	"Content-Type", "Content-Length", "Host", "Idempotency-Key", "Transfer-Encoding",
	"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature",
}

// IsHeaderName reports whether a header can have this name.
func IsHeaderName(name string) bool { return httpguts.ValidHeaderFieldName(name) }

// IsOwnHeader reports whether Drydock sets the header itself on the requests of webhooks.
func IsOwnHeader(name string) bool {
	return slices.Contains(ownHeaders, textproto.CanonicalMIMEHeaderKey(name))
}

// ErrHeaderValue is a secret that cannot stand in a header.
var ErrHeaderValue = errors.New("the secret has characters that no header may have")

// SetSecret reads a secret and sets it as a header, with a text such as "Bearer " before it.
func SetSecret(header http.Header, name, before string, from secret.Value, known *secret.Redactor) error {
	value, err := known.Read(from)
	if err != nil {
		return err
	}
	if !httpguts.ValidHeaderFieldValue(value) {
		return ErrHeaderValue
	}
	header.Set(name, before+value)
	return nil
}
