package signature_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock.dev/drydock/outbound/signature"
	"drydock.dev/drydock/secret"
)

const key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

func TestASignatureIsOfTheBody(t *testing.T) {
	verifier, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	body := []byte("body")
	for _, given := range []string{key, strings.TrimPrefix(key, "whsec_")} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://h", nil)
		if err != nil {
			t.Fatal(err)
		}
		var known secret.Redactor
		if err := signature.Sign(request, "id", body, given, &known); err != nil {
			t.Fatal(err)
		}
		if err := verifier.Verify(body, request.Header); err != nil || request.Header.Get("Webhook-Id") != "id" {
			t.Errorf("%v, %v", err, request.Header)
		}
		if err := verifier.Verify([]byte("other"), request.Header); err == nil {
			t.Error("another body has the same signature")
		}
		if got := known.Redact("of " + strings.TrimPrefix(key, "whsec_")); got != "of "+secret.Hidden {
			t.Errorf("the key is shown: %s", got)
		}
		if err := signature.Sign(request, "id", body, "whsec_canary!", &known); !errors.Is(err, signature.ErrKey) {
			t.Errorf("no key: %v", err)
		}
	}
}
