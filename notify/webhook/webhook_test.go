package webhook_test

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

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/notify/webhook"
	"drydock.dev/drydock/rules/notices"
)

var kinds = notify.Kinds{webhook.Kind}

var signingSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("canary-of-a-signing-secret"))

func TestWebhook(t *testing.T) {
	r := notifytest.Receive(t, nil)
	s := notifytest.Senders(t, kinds, `{"webhook": {"url": %q, "secret": %s, "headers": {"Authorization": %s}}}`,
		r.URL+"/hooks", notifytest.File(notifytest.SecretFile(t, signingSecret)), notifytest.File(notifytest.SecretFile(t, "Bearer canary")))
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))

	got := r.Last(t, 1)
	if got.Method != http.MethodPost || got.Path != "/hooks" {
		t.Errorf("%s %s", got.Method, got.Path)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/cloudevents+json", "Idempotency-Key": "node-maintenance/worker-1/ops/run/3/oncall",
		"Webhook-Id": "node-maintenance/worker-1/ops/run/3/oncall", "Authorization": "Bearer canary", "User-Agent": "drydock/1.2.3",
	} {
		if value := got.Header.Get(name); value != want {
			t.Errorf("%s is %q, want %q", name, value, want)
		}
	}
	verifier, err := standardwebhooks.NewWebhook(signingSecret)
	if err != nil {
		t.Fatal(err)
	}
	if err := verifier.Verify(got.Body, got.Header); err != nil {
		t.Error(err)
	}
	if err := verifier.Verify(append(got.Body, ' '), got.Header); err == nil {
		t.Error("another body has the same signature")
	}
	e := notifytest.Decode[cloudevents.Event](t, got.Body)
	if err := e.Validate(); err != nil {
		t.Error(err)
	}
	if e.ID() != "node-maintenance/worker-1/ops/run/3" || e.Source() != "/drydock/eu" || e.Type() != "dev.drydock.maintenance.MaintenanceStarted" ||
		e.Subject() != "worker-1" || !e.Time().Equal(notifytest.Event("").At) || e.SpecVersion() != "1.0" {
		t.Errorf("%v", e)
	}
	if data := notifytest.Decode[notices.Event](t, e.Data()); data.Reason != "new firmware" || data.MoreBlockers != 2 {
		t.Errorf("%+v", data)
	}
}

func TestWebhookOfADigest(t *testing.T) {
	r := notifytest.Receive(t, nil)
	s := notifytest.Senders(t, kinds, `{"webhook": {"url": %q}, "digest": "5m"}`, r.URL)
	other := notifytest.Event(notices.MaintenanceComplete)
	other.ID, other.Node, other.Cluster = "other", "worker-2", ""
	for i, events := range [][]notices.Event{{notifytest.Event(notices.MaintenanceStarted), other}, {other}} {
		notifytest.Deliver(t, s, notifytest.Message(events...))
		got := r.Last(t, i+1)
		if kind := got.Header.Get("Content-Type"); kind != "application/cloudevents-batch+json" {
			t.Errorf("a batch is %s", kind)
		}
		if got.Header.Get("Webhook-Signature") != "" {
			t.Error("signed without a secret")
		}
		batch := notifytest.Decode[[]cloudevents.Event](t, got.Body)
		if len(batch) != len(events) || batch[len(batch)-1].Subject() != "worker-2" || batch[len(batch)-1].Source() != "/drydock" {
			t.Errorf("%v", batch)
		}
	}
}

func TestWebhookReadsTheAuthorityAnew(t *testing.T) {
	r := notifytest.NewReceiver(nil)
	r.StartTLS()
	defer r.Close()
	if _, err := notifytest.Senders(t, kinds, `{"webhook": {"url": %q}}`, r.URL).Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Fatalf("an unknown authority: %v", err)
	}
	ca := notifytest.Authority(t, r.Server)
	certificate, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	s := notifytest.Senders(t, kinds, `{"webhook": {"url": %q, "caFile": %q}}`, r.URL, ca)
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
	for text, want := range map[string]string{"not yet written": "has no certificate", string(certificate): ""} {
		if err := os.WriteFile(ca, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		if (err == nil) != (want == "") || notify.Permanent(err) {
			t.Errorf("%q: %v", text, err)
		}
		if err != nil {
			notifytest.Contains(t, err.Error(), "channel oncall: caFile: ", want)
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
			other := notifytest.Receive(t, nil)
			r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) {
				if c.retryAfter != "" {
					w.Header().Set("Retry-After", c.retryAfter)
				}
				w.Header().Set("Location", other.URL)
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("what is\nwrong"))
			})
			s := notifytest.Senders(t, kinds, `{"webhook": {"url": %q, "headers": {"Authorization": %s}}}`, r.URL, notifytest.File(notifytest.SecretFile(t, "canary")))
			_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
			if err == nil || notify.Permanent(err) != c.permanent {
				t.Fatalf("%v, permanent %v", err, notify.Permanent(err))
			}
			if wait := notify.RetryAfter(err); wait < c.least || wait > c.most {
				t.Errorf("again after %s", wait)
			}
			if c.status >= 400 {
				notifytest.Contains(t, err.Error(), "what is wrong")
			}
			if n := len(other.All()); n != 0 {
				t.Errorf("%d requests were redirected", n)
			}
		})
	}
}

func TestASecretIsRotatedWithoutARestart(t *testing.T) {
	r := notifytest.Receive(t, nil)
	path := notifytest.SecretFile(t, "first-token")
	s := notifytest.Senders(t, kinds, `{"webhook": {"url": %q, "headers": {"X-Token": %s, "X-Env": {"env": "NOTIFY_TEST_TOKEN"}}}}`, r.URL, notifytest.File(path))
	for i, token := range []string{"first-token", "second-token"} {
		if err := os.WriteFile(path, []byte(token+"\r\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Setenv("NOTIFY_TEST_TOKEN", "of the environment, "+token)
		notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		got := r.Last(t, i+1)
		if got.Header.Get("X-Token") != token || got.Header.Get("X-Env") != "of the environment, "+token {
			t.Errorf("%v", got.Header)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
	if err == nil || notify.Permanent(err) {
		t.Fatalf("a secret that is not there yet: %v", err)
	}
	notifytest.Contains(t, err.Error(), "webhook.headers.X-Token: reading a secret: ", path)
}

func TestACancelledDeliveryIsNotPermanent(t *testing.T) {
	begun := make(chan struct{})
	release := make(chan struct{})
	r := notifytest.Receive(t, func(http.ResponseWriter, notifytest.Received) { close(begun); <-release })
	defer close(release)
	s := notifytest.Senders(t, kinds, `{"webhook": {"url": %q}}`, r.URL)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	_, err := s.Send(ctx, "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
	if !errors.Is(err, context.Canceled) || notify.Permanent(err) {
		t.Fatalf("%v, permanent %v", err, notify.Permanent(err))
	}
}

func TestAKeyThatIsNoHeaderIsHashed(t *testing.T) {
	r := notifytest.Receive(t, nil)
	m := notifytest.Message(notifytest.Event(notices.MaintenanceStarted))
	m.Key = "a\r\nX-Injected: yes"
	notifytest.Deliver(t, notifytest.Senders(t, kinds, `{"webhook": {"url": %q}}`, r.URL), m)
	got := r.Last(t, 1)
	if key := got.Header.Get("Idempotency-Key"); len(key) != 64 || strings.ContainsAny(key, "\r\n: ") || got.Header.Get("X-Injected") != "" {
		t.Errorf("%v", got.Header)
	}
}
