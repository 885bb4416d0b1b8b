// Package signature signs requests by Standard Webhooks.
package signature

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock.dev/drydock/secret"
)

// ErrKey is a key that does not sign.
var ErrKey = errors.New(`is not base64, with or without "whsec_" in front`)

// Sign adds the headers of Standard Webhooks: the signature of the message's ID, the time and the body. Each try of one
// message has the same ID and a time of its own, so that it is not refused as too old.
func Sign(request *http.Request, id string, body []byte, key string, known *secret.Redactor) error {
	known.Add(strings.TrimPrefix(key, "whsec_"))
	signer, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		return ErrKey
	}
	now := time.Now()
	signature, err := signer.Sign(id, now, body)
	if err != nil {
		return fmt.Errorf("signing: %w", err)
	}
	request.Header.Set(standardwebhooks.HeaderWebhookID, id)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(now.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signature)
	return nil
}
