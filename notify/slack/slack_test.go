package slack_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/notify/slack"
	"drydock.dev/drydock/rules/notices"
)

var kinds = notify.Kinds{slack.Kind}

func TestSlackWebhook(t *testing.T) {
	r := notifytest.Receive(t, nil)
	s := notifytest.Senders(t, kinds, `{"slack": {"webhook": %s}}`, notifytest.File(notifytest.SecretFile(t, r.URL+"/services/T0/B0/canary")))
	e := notifytest.Event(notices.SLAExpired)
	e.Reason = "<!channel> & <https://evil.example|click>"
	if receipt := notifytest.Deliver(t, s, notifytest.Message(e)); receipt.Thread != "" {
		t.Errorf("a webhook has the thread %q", receipt.Thread)
	}
	got := r.Last(t, 1)
	text := notifytest.Decode[map[string]any](t, got.Body)["text"].(string)
	notifytest.Contains(t, text, "*[eu] worker-1: not empty in the agreed time", "Reason: &lt;!channel&gt; &amp; &lt;https://evil.example|\u200bclick&gt;",
		"- pod web/web-0: its budget", "- and 2 more", "Ticket: CHG-1", "Since: 2026-03-10 10:00:00 UTC")
	if got.Path != "/services/T0/B0/canary" || strings.Contains(text, "<") {
		t.Errorf("%s: %s", got.Path, text)
	}
}

func TestSlackBotThreads(t *testing.T) {
	r := notifytest.Receive(t, func(w http.ResponseWriter, r notifytest.Received) {
		w.Header().Set("Content-Type", "application/json")
		ts := "1700000000.000100"
		if strings.Contains(string(r.Body), "thread_ts") {
			ts = "1700000001.000200"
		}
		_, _ = w.Write([]byte(`{"ok": true, "channel": "C1", "ts": "` + ts + `"}`))
	})
	s := notifytest.Senders(t, kinds, `{"slack": {"token": %s, "channel": "C1", "apiURL": %q}, "thread": "maintenance"}`, notifytest.File(notifytest.SecretFile(t, "xoxb-canary")), r.URL+"/api")
	first := notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
	if first.Thread != "1700000000.000100" {
		t.Fatalf("the thread is %q", first.Thread)
	}
	m := notifytest.Message(notifytest.Event(notices.MaintenanceComplete))
	m.Thread = first.Thread
	if second := notifytest.Deliver(t, s, m); second.Thread != first.Thread {
		t.Errorf("the answer's thread is %q", second.Thread)
	}
	for i, want := range []string{"", first.Thread} {
		got := r.All()[i]
		form, err := url.ParseQuery(string(got.Body))
		if err != nil {
			t.Fatal(err)
		}
		if got.Path != "/api/chat.postMessage" || form.Get("channel") != "C1" || form.Get("thread_ts") != want {
			t.Errorf("%s %v", got.Path, form)
		}
		if form.Get("token") != "xoxb-canary" && got.Header.Get("Authorization") != "Bearer xoxb-canary" {
			t.Error("without the token")
		}
	}
}

// A thread whose first message somebody deleted is followed by another.
func TestADeletedThreadIsFollowedByAnother(t *testing.T) {
	for _, answer := range []string{"thread_not_found", "message_not_found"} {
		r := notifytest.Receive(t, func(w http.ResponseWriter, r notifytest.Received) {
			w.Header().Set("Content-Type", "application/json")
			if strings.Contains(string(r.Body), "thread_ts") {
				_, _ = w.Write([]byte(`{"ok": false, "error": "` + answer + `"}`))
				return
			}
			_, _ = w.Write([]byte(`{"ok": true, "channel": "C1", "ts": "1700000002.000300"}`))
		})
		s := notifytest.Senders(t, kinds, `{"slack": {"token": %s, "channel": "C1", "apiURL": %q}, "thread": "maintenance"}`, notifytest.File(notifytest.SecretFile(t, "xoxb-canary")), r.URL)
		m := notifytest.Message(notifytest.Event(notices.MaintenanceComplete))
		m.Thread = "1700000000.000100"
		if receipt := notifytest.Deliver(t, s, m); receipt.Thread != "1700000002.000300" {
			t.Errorf("%s: the thread is %q", answer, receipt.Thread)
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
		r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) {
			w.Header().Set("Content-Type", "application/json")
			if c.wait > 0 {
				w.Header().Set("Retry-After", "30")
			}
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		})
		s := notifytest.Senders(t, kinds, `{"slack": {"token": %s, "channel": "C1", "apiURL": %q}}`, notifytest.File(notifytest.SecretFile(t, "xoxb-canary")), r.URL)
		_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		if err == nil || notify.Permanent(err) != c.permanent || notify.RetryAfter(err) != c.wait {
			t.Errorf("%s: %v, permanent %v, after %s", name, err, notify.Permanent(err), notify.RetryAfter(err))
		}
	}
}
