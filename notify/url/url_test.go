package url_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/notify/url"
	"drydock.dev/drydock/rules/notices"
)

var kinds = notify.Kinds{url.Kind}

func TestAnyURL(t *testing.T) {
	r := notifytest.Receive(t, nil)
	host := strings.TrimPrefix(r.URL, "http://")
	s := notifytest.Senders(t, kinds, `{"url": %s}`, notifytest.File(notifytest.SecretFile(t, "generic://"+host+"/hook?disabletls=yes&@X-Token=canary-of-a-header")))
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.ObjectsDrained)))
	got := r.Last(t, 1)
	notifytest.Contains(t, string(got.Body), "[eu] worker-1: drained, maintenance may begin\n\nNode: worker-1")
	if got.Header.Get("X-Token") != "canary-of-a-header" || got.Path != "/hook" {
		t.Errorf("%s %v", got.Path, got.Header)
	}
}

func TestURLsThatNoServiceTakes(t *testing.T) {
	for _, address := range []string{
		"nobody://canary@canaryhost", "canary-canary", "logger://", "discord://", "slack://canary", "generic://%zz:canary", "telegram://canary@telegram",
		"discord+https://canary", "teams+canary://", "slack+http://canarycanary",
	} {
		s := notifytest.Senders(t, kinds, `{"url": %s}`, notifytest.File(notifytest.SecretFile(t, address)))
		_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		if err == nil || !notify.Permanent(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, permanent %v", address, err, notify.Permanent(err))
		}
	}
}

func TestATokenGoesUnencryptedOnlyWhereThatIsAllowed(t *testing.T) {
	// Only a name tells that the address is this machine's, and this one has none.
	place := notifytest.SecretFile(t, "generic://receiver.invalid/?disabletls=yes&@X-Token=canary")
	for allowed, refused := range map[string]bool{"": true, `, "allowPlaintext": false`: true, `, "allowPlaintext": true`: false} {
		s := notifytest.Senders(t, kinds, fmt.Sprintf(`{"url": {"file": %q%s}}`, place, allowed))
		_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		if err == nil || notify.Permanent(err) != refused || strings.Contains(err.Error(), "allowPlaintext") != refused || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", allowed, err)
		}
	}
	for bad, want := range map[string]string{
		`{"allowPlaintext": true}`:              "channels.oncall.url: want {file: <path>}",
		`{"env": "X", "allowPlaintext": "yes"}`: "channels.oncall.url.allowPlaintext: want true or false",
		`{"env": "X", "allowHTTP": true}`:       "channels.oncall.url: want {file: <path>}",
	} {
		if _, err := notifytest.Parse(t, kinds, `{"oncall": {"url": %s}}`, bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Tries that time out do not pile up: the next one waits for its turn.
func TestAHangingServiceIsAskedOnce(t *testing.T) {
	begun, release := make(chan struct{}, 10), make(chan struct{})
	r := notifytest.Receive(t, func(http.ResponseWriter, notifytest.Received) { begun <- struct{}{}; <-release })
	s := notifytest.Senders(t, kinds, `{"url": %s}`, notifytest.File(notifytest.SecretFile(t, "generic://"+strings.TrimPrefix(r.URL, "http://")+"/?disabletls=yes")))
	ctx, cancel := notifytest.ContextWithCancel(t)
	go func() { <-begun; cancel() }()
	if _, err := s.Send(ctx, "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Fatalf("%v", err)
	}
	if _, err := s.Send(ctx, "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Fatalf("%v", err)
	}
	if n := len(r.All()); n != 1 {
		t.Errorf("%d requests", n)
	}
	close(release)
	notifytest.Deliver(t, s, notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
}
