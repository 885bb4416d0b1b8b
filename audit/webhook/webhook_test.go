package webhook

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock.dev/drydock/audit/audittest"
	"drydock.dev/drydock/rules/record"
	"drydock.dev/drydock/secret"
	"drydock.dev/drydock/sections"
)

// received is one request that a collector got.
type received struct {
	header http.Header
	body   []byte
}

// collector takes requests and answers as it is told.
func collector(t *testing.T, answer http.HandlerFunc) (url string, requests *[]received) {
	t.Helper()
	requests = &[]received{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*requests = append(*requests, received{r.Header, body})
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests
}

func taken(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }

func post(t *testing.T, w Config, r record.Record) error {
	t.Helper()
	var p sections.Problems
	if w.Validate("webhook", &p); len(p) > 0 {
		t.Fatal(p.Join())
	}
	_, err := audittest.Sinks("webhook", &w, slog.Default()).Write(t.Context(), r, nil)
	return err
}

const signingKey = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// TestEachEndOfAMaintenanceHasAKeyOfItsOwn: a receiver drops what has the key of another.
func TestEachEndOfAMaintenanceHasAKeyOfItsOwn(t *testing.T) {
	url, requests := collector(t, taken)
	r := audittest.Record("worker-01", "run-1")
	r.LastRunID = "run-2"
	if err := post(t, Config{URL: url}, r); err != nil {
		t.Fatal(err)
	}
	if key := (*requests)[0].header.Get("Idempotency-Key"); key != "audit-run-2" {
		t.Errorf("the key is %s", key)
	}
}

func TestWebhookGetsTheRecordSigned(t *testing.T) {
	url, requests := collector(t, taken)
	t.Setenv("AUDIT_KEY", signingKey)
	token := filepath.Join(t.TempDir(), "token")
	w := Config{URL: url, Headers: map[string]secret.Value{"Authorization": {File: token}}, Secret: secret.Value{Env: "AUDIT_KEY"}}
	for _, value := range []string{"Bearer one", "Bearer two"} {
		if err := os.WriteFile(token, []byte(value+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := post(t, w, audittest.Record("worker-01", "run-1")); err != nil {
			t.Fatal(err)
		}
	}
	if len(*requests) != 2 {
		t.Fatalf("%d requests", len(*requests))
	}
	verifier, err := standardwebhooks.NewWebhook(signingKey)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range *requests {
		if err := verifier.Verify(r.body, r.header); err != nil {
			t.Error(err)
		}
		got, err := record.Decode(r.body)
		if err != nil {
			t.Fatal(err)
		}
		if got.Number != 1 || got.Hash == "" {
			t.Errorf("its place is %+v", got.Link)
		}
		got.Link = record.Link{}
		if diff := cmp.Diff(audittest.Record("worker-01", "run-1"), got); diff != "" {
			t.Errorf("want - got +\n%s", diff)
		}
		if want := []string{"Bearer one", "Bearer two"}[i]; r.header.Get("Authorization") != want {
			t.Errorf("request %d is not by the secret of its time", i)
		}
		if r.header.Get("Idempotency-Key") != "audit-run-1" || r.header.Get("Webhook-Id") != "audit-run-1" || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("headers %v", r.header)
		}
	}
}

func TestWebhookErrorsSayWhatToDoAndNoSecret(t *testing.T) {
	const canary = `can"ary/+ &x`
	t.Setenv("AUDIT_TOKEN", canary)
	t.Setenv("AUDIT_LINES", "one\ntwo-canary")
	t.Setenv("AUDIT_NOT_BASE64", "canary!")
	token := map[string]secret.Value{"X-Token": {Env: "AUDIT_TOKEN"}}
	away := httptest.NewServer(http.HandlerFunc(taken))
	away.Close()
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		change func(*Config)
		want   string
	}{
		"an echo": {func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "who is "+r.Header.Get("X-Token")+"?", http.StatusForbidden)
		}, nil, `answered 403 Forbidden: "who is (secret)?"`},
		"overloaded": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, nil, "answered 503"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, nil, "redirects are not followed: set webhook.url"},
		"nobody there":    {taken, func(w *Config) { w.URL = away.URL }, "connection refused"},
		"no variable":     {taken, func(w *Config) { w.Headers = map[string]secret.Value{"X-Token": {Env: "AUDIT_NONE"}} }, "webhook.headers.X-Token: environment variable AUDIT_NONE is not set"},
		"no file":         {taken, func(w *Config) { w.Headers = map[string]secret.Value{"X-Token": {File: "/no/such"}} }, "webhook.headers.X-Token: reading a secret: open /no/such"},
		"several lines":   {taken, func(w *Config) { w.Headers = map[string]secret.Value{"X-Token": {Env: "AUDIT_LINES"}} }, "webhook.headers.X-Token: the secret has more than one line"},
		"a wrong key":     {taken, func(w *Config) { w.Secret = secret.Value{Env: "AUDIT_NOT_BASE64"} }, "webhook.secret: is not base64"},
		"no certificates": {taken, func(w *Config) { w.CAFile = "/no/such" }, "webhook.caFile: open /no/such"},
	} {
		url, _ := collector(t, c.answer)
		w := Config{URL: url, Headers: token}
		if c.change != nil {
			c.change(&w)
		}
		err := post(t, w, audittest.Record("worker-01", "run-1"))
		if err == nil || !strings.Contains(err.Error(), "audit sink webhook: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		for _, leak := range []string{"canary", "can\"ary", `can\"ary`, "can%22ary"} {
			if strings.Contains(err.Error(), leak) {
				t.Errorf("%s: a secret is in %v", name, err)
			}
		}
	}
}

func TestWebhookTrustsItsOwnCertificates(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(taken))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	server.StartTLS()
	t.Cleanup(server.Close)
	if err := post(t, Config{URL: server.URL}, audittest.Record("worker-01", "run-1")); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a stranger's certificate: %v", err)
	}
	authority := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := post(t, Config{URL: server.URL, CAFile: authority}, audittest.Record("worker-01", "run-1")); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(authority, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := post(t, Config{URL: server.URL, CAFile: authority}, audittest.Record("worker-01", "run-1")); err == nil || !strings.Contains(err.Error(), "has no certificate in PEM") {
		t.Errorf("a file without certificates: %v", err)
	}
}

func TestWhatIsTakenIsTakenWhateverIsSaidOfIt(t *testing.T) {
	url, requests := collector(t, func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write([]byte(strings.Repeat("thanks ", answerLimit))); err != nil {
			t.Log(err)
		}
	})
	if err := post(t, Config{URL: url}, audittest.Record("worker-01", "run-1")); err != nil {
		t.Error(err)
	}
	if header := (*requests)[0].header; header.Get("Webhook-Signature") != "" {
		t.Errorf("signed without a key: %v", header)
	}
}
