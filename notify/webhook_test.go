package notify_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2/event"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock/notify"
	"drydock/rules/notices"
)

var signingSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("canary-of-a-signing-secret"))

func TestWebhook(t *testing.T) {
	r := receive(t, nil)
	s := senders(t, `{"webhook": {"url": %q, "secret": %s, "headers": {"Authorization": %s}}}`,
		r.URL+"/hooks", file(secretFile(t, signingSecret)), file(secretFile(t, "Bearer canary")))
	deliver(t, s, message(event(notices.MaintenanceStarted)))

	got := r.last(t, 1)
	if got.method != http.MethodPost || got.path != "/hooks" {
		t.Errorf("%s %s", got.method, got.path)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/cloudevents+json", "Idempotency-Key": "node-maintenance/worker-1/ops/run/3/oncall",
		"Webhook-Id": "node-maintenance/worker-1/ops/run/3/oncall", "Authorization": "Bearer canary", "User-Agent": "drydock/1.2.3",
	} {
		if value := got.header.Get(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	verifier, err := standardwebhooks.NewWebhook(signingSecret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(got.body, got.header); err != nil {
		t.Error(err)
	}
	if err := verifier.Verify(append(got.body, ' '), got.header); err == nil {
		t.Error("another body has the same signature")
	}
	e := decode[cloudevents.Event](t, got.body)
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if e.ID() != "node-maintenance/worker-1/ops/run/3" || e.Source() != "/drydock/eu" || e.Type() != "dev.drydock.maintenance.MaintenanceStarted" ||
		e.Subject() != "worker-1" || !e.Time().Equal(event("").At) || e.SpecVersion() != "1.0" {
		t.Errorf("%v", e)
	}
	if data := decode[notices.Event](t, e.Data()); data.Reason != "new firmware" || data.MoreBlockers != 2 {
		t.Errorf("%+v", data)
	}
}

func TestWebhookOfADigest(t *testing.T) {
	r := receive(t, nil)
	s := senders(t, `{"webhook": {"url": %q}, "digest": "5m"}`, r.URL)
	other := event(notices.MaintenanceComplete)
	other.ID, other.Node, other.Cluster = "other", "worker-2", ""
	for i, events := range [][]notices.Event{{event(notices.MaintenanceStarted), other}, {other}} {
		deliver(t, s, message(events...))
		got := r.last(t, i+1)
		if kind := got.header.Get("Content-Type"); kind != "application/cloudevents-batch+json" {
			t.Errorf("a batch is %s", kind)
		}
		if got.header.Get("Webhook-Signature") != "" {
			t.Error("signed without a secret")
		}
		batch := decode[[]cloudevents.Event](t, got.body)
		if len(batch) != len(events) || batch[len(batch)-1].Subject() != "worker-2" || batch[len(batch)-1].Source() != "/drydock" {
			t.Errorf("%v", batch)
		}
	}
}

func TestWebhookReadsTheAuthorityAnew(t *testing.T) {
	r := newReceiver(nil)
	r.StartTLS()
	defer r.Close()
	if _, err := senders(t, `{"webhook": {"url": %q}}`, r.URL).Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Fatalf("an unknown authority: %v", err)
	}
	ca := authority(t, r.Server)
	certificate, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	s := senders(t, `{"webhook": {"url": %q, "caFile": %q}}`, r.URL, ca)
	deliver(t, s, message(event(notices.MaintenanceStarted)))
	for text, want := range map[string]string{"not yet written": "has no certificate", string(certificate): ""} {
		if err := os.WriteFile(ca, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted)))
		if (err == nil) != (want == "") || notify.Permanent(err) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			contains(t, err.Error(), "channel oncall: caFile: ", want)
		}
	}
}

func TestAnswers(t *testing.T) {
	inAMinute := time.Now().Add(time.Minute).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		status     int
		retryAfter string
		permanent  bool
		least      time.Duration
		most       time.Duration
	}{
		"busy":                  {429, "7", false, 7 * time.Second, 7 * time.Second},
		"busy until":            {503, inAMinute, false, 50 * time.Second, time.Minute},
		"busy for a year":       {429, "99999999", false, 24 * time.Hour, 24 * time.Hour},
		"busy since yesterday":  {503, "-5", false, 0, 0},
		"busy for nobody knows": {429, "soon", false, 0, 0},
		"broken":                {500, "", false, 0, 0},
		"too slow":              {408, "", false, 0, 0},
		"not yet rotated":       {401, "", false, 0, 0},
		"wrong":                 {400, "", true, 0, 0},
		"gone":                  {410, "", true, 0, 0},
		"elsewhere":             {307, "", true, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			other := receive(t, nil)
			r := receive(t, func(w http.ResponseWriter, _ received) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.Header().Set("Location", other.URL)
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("what is\nwrong"))
			})
			s := senders(t, `{"webhook": {"url": %q, "headers": {"Authorization": %s}}}`, r.URL, file(secretFile(t, "canary")))
			_, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted)))
			if err == nil || notify.Permanent(err) != c.permanent {
				t.Fatalf("%v, permanent %v", err, notify.Permanent(err))
			}
			if wait := notify.RetryAfter(err); wait < c.least || wait > c.most {
				t.Errorf("again after %s", wait)
			}
			if c.status >= 400 {
				contains(t, err.Error(), "what is wrong")
			}
			if n := len(other.all()); n != 0 {
				t.Errorf("%d requests were redirected", n)
			}
		})
	}
}

func TestASecretIsRotatedWithoutARestart(t *testing.T) {
	r := receive(t, nil)
	path := secretFile(t, "first-token")
	s := senders(t, `{"webhook": {"url": %q, "headers": {"X-Token": %s, "X-Env": {"env": "NOTIFY_TEST_TOKEN"}}}}`, r.URL, file(path))
	for i, token := range []string{"first-token", "second-token"} {
		if err := os.WriteFile(path, []byte(token+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_TEST_TOKEN", "of the environment, "+token)
		deliver(t, s, message(event(notices.MaintenanceStarted)))
		got := r.last(t, i+1)
		if got.header.Get("X-Token") != token || got.header.Get("X-Env") != "of the environment, "+token {
			t.Errorf("%v", got.header)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted)))
	if err == nil || notify.Permanent(err) {
		t.Fatalf("a secret that is not there yet: %v", err)
	}
	contains(t, err.Error(), "webhook.headers.X-Token: reading a secret: ", path)
}

func TestACancelledDeliveryIsNotPermanent(t *testing.T) {
	begun := make(chan struct{})
	release := make(chan struct{})
	r := receive(t, func(http.ResponseWriter, received) { close(begun); <-release })
	defer close(release)
	s := senders(t, `{"webhook": {"url": %q}}`, r.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	_, err := s.Send(ctx, "oncall", message(event(notices.MaintenanceStarted)))
	if !errors.Is(err, context.Canceled) || notify.Permanent(err) {
		t.Fatalf("%v, permanent %v", err, notify.Permanent(err))
	}
}

func TestAKeyThatIsNoHeaderIsHashed(t *testing.T) {
	r := receive(t, nil)
	m := message(event(notices.MaintenanceStarted))
	m.Key = "a\r\nX-Injected: yes"
	deliver(t, senders(t, `{"webhook": {"url": %q}}`, r.URL), m)
	got := r.last(t, 1)
	if key := got.header.Get("Idempotency-Key"); len(key) != 64 || strings.ContainsAny(key, "\r\n: ") || got.header.Get("X-Injected") != "" {
		t.Errorf("%v", got.header)
	}
}
