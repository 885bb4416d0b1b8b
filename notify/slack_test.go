package notify_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"drydock/notify"
	"drydock/rules/notices"
)

func TestSlackWebhook(t *testing.T) {
	r := receive(t, nil)
	s := senders(t, `{"slack": {"webhook": %s}}`, file(secretFile(t, r.URL+"/services/T0/B0/canary")))
	e := event(notices.SLAExpired)
	e.Reason = "<!channel> & <https://evil.example|click>"
	if receipt := deliver(t, s, message(e)); receipt.Thread != "" {
		t.Errorf("a webhook has the thread %q", receipt.Thread)
	}
	got := r.last(t, 1)
	text := decode[map[string]any](t, got.body)["text"].(string)
	contains(t, text, "*[eu] worker-1: not empty in the agreed time", "Reason: &lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;",
		"- pod web/web-0: its budget", "- and 2 more", "Ticket: CHG-1", "Since: 2026-03-10 10:00:00 UTC")
	if got.path != "/services/T0/B0/canary" || strings.Contains(text, "<") {
		t.Errorf("%s: %s", got.path, text)
	}
}

func TestSlackBotThreads(t *testing.T) {
	r := receive(t, func(w http.ResponseWriter, r received) {
		w.Header().Set("Content-Type", "application/json")
		ts := "1700000000.000100"
		if strings.Contains(string(r.body), "thread_ts") {
			ts = "1700000001.000200"
		}
		_, _ = w.Write([]byte(`{"ok": true, "channel": "C1", "ts": "` + ts + `"}`))
	})
	s := senders(t, `{"slack": {"token": %s, "channel": "C1", "apiURL": %q}, "thread": "maintenance"}`, file(secretFile(t, "xoxb-canary")), r.URL+"/api")
	first := deliver(t, s, message(event(notices.MaintenanceStarted)))
	if first.Thread != "1700000000.000100" {
		t.Fatalf("the thread is %q", first.Thread)
	}
	m := message(event(notices.MaintenanceComplete))
	m.Thread = first.Thread
	if second := deliver(t, s, m); second != first {
		t.Errorf("the answer's thread is %q", second.Thread)
	}
	for i, want := range []string{"", first.Thread} {
		got := r.all()[i]
		form, err := url.ParseQuery(string(got.body))
		if err != nil {
			t.Fatal(err)
		}
		if got.path != "/api/chat.postMessage" || form.Get("channel") != "C1" || form.Get("thread_ts") != want {
			t.Errorf("%s %v", got.path, form)
		}
		if form.Get("token") != "xoxb-canary" && got.header.Get("Authorization") != "Bearer xoxb-canary" {
			t.Error("without the token")
		}
	}
}

func TestSlackErrors(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		body      string
		permanent bool
		wait      time.Duration
	}{
		"no such channel": {200, `{"ok": false, "error": "channel_not_found"}`, true, 0},
		"a token revoked": {200, `{"ok": false, "error": "invalid_auth"}`, false, 0},
		"busy":            {429, ``, false, 30 * time.Second},
		"down":            {503, `<html>`, false, 30 * time.Second},
		"not there":       {404, ``, true, 30 * time.Second},
	} {
		r := receive(t, func(w http.ResponseWriter, _ received) {
			w.Header().Set("Content-Type", "application/json")
			if c.wait > 0 {
				w.Header().Set("Retry-After", "30")
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		})
		s := senders(t, `{"slack": {"token": %s, "channel": "C1", "apiURL": %q}}`, file(secretFile(t, "xoxb-canary")), r.URL)
		_, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted)))
		if err == nil || notify.Permanent(err) != c.permanent || notify.RetryAfter(err) != c.wait {
			t.Errorf("%s: %v, permanent %v, after %s", name, err, notify.Permanent(err), notify.RetryAfter(err))
		}
	}
}
