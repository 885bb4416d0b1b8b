package notify_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"drydock.dev/drydock/notify"
	"drydock.dev/drydock/notify/kinds"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/notify/webhook"
	"drydock.dev/drydock/rules/notices"
)

func TestMessagesThatCannotBeSent(t *testing.T) {
	s := notifytest.Senders(t, kinds.All(), `{"kubernetes": {}}`)
	for name, c := range map[string]struct {
		channel string
		message notify.Message
		want    string
	}{
		"no such channel": {"offcall", notifytest.Message(notifytest.Event(notices.SLAExpired)), "channel offcall: is not configured: want one of oncall"},
		"nothing to say":  {"oncall", notifytest.Message(), "no event"},
		"no key":          {"oncall", notify.Message{Events: []notices.Event{notifytest.Event(notices.SLAExpired)}}, "no key"},
	} {
		_, err := s.Send(t.Context(), c.channel, c.message)
		if !notify.Permanent(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if notify.Permanent(nil) || notify.Permanent(errors.New("other")) || notify.RetryAfter(errors.New("other")) != 0 {
		t.Error("errors of others have a class")
	}
}

// canary is in every secret of every kind of channel, in characters that URLs, JSON and Go write differently.
const canary = `c4nary"of&a secret/ü+`

// Whatever goes wrong, no error shows a secret: neither whole nor in part, however it is written.
func TestNoErrorShowsASecret(t *testing.T) {
	notifytest.AWS(t)
	dead := notifytest.ClosedPort(t)
	quoting := notifytest.Receive(t, func(w http.ResponseWriter, r notifytest.Received) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "you sent %s %s %v", r.Path, r.Header, r.Header.Get("X-Token"))
	})
	redirecting := notifytest.Receive(t, func(w http.ResponseWriter, r notifytest.Received) {
		w.Header().Set("Location", "http://"+dead+r.Path)
		w.WriteHeader(http.StatusFound)
	})
	escaped := url.PathEscape(canary)
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + canary))
	value := notifytest.File(notifytest.SecretFile(t, canary))
	key := notifytest.File(notifytest.SecretFile(t, "whsec_"+base64.StdEncoding.EncodeToString([]byte(canary))))
	var channels []string
	for _, address := range []string{dead, strings.TrimPrefix(quoting.URL, "http://"), strings.TrimPrefix(redirecting.URL, "http://")} {
		secretURL := notifytest.File(notifytest.SecretFile(t, "http://user:"+escaped+"@"+address+"/"+escaped+"/x?token="+url.QueryEscape(canary)))
		channels = append(channels,
			fmt.Sprintf(`{"slack": {"webhook": %s}}`, secretURL),
			fmt.Sprintf(`{"slack": {"token": %s, "channel": "C1", "apiURL": "http://%s/"}}`, value, address),
			fmt.Sprintf(`{"webhook": {"url": %s, "secret": %s, "headers": {"X-Token": %s}}}`, secretURL, key, value),
			fmt.Sprintf(`{"sns": {"topicARN": %q, "endpoint": "http://%s", "accessKeyID": %s, "secretAccessKey": %s}}`, notifytest.Topic, address, value, value),
			fmt.Sprintf(`{"url": %s}`, notifytest.File(notifytest.SecretFile(t, "generic://"+address+"/"+escaped+"?disabletls=yes&@X-Token="+url.QueryEscape(canary)))),
			fmt.Sprintf(`{"url": %s}`, notifytest.File(notifytest.SecretFile(t, "gotify://"+address+"/Ac4naryAbcdefgh?disabletls=yes"))),
			fmt.Sprintf(`{"url": %s}`, notifytest.File(notifytest.SecretFile(t, "ntfy://user:"+escaped+"@"+address+"/c4narytopic?scheme=http"))),
			fmt.Sprintf(`{"url": %s}`, notifytest.File(notifytest.SecretFile(t, "rocketchat://"+address+"/c4narytoken/c4narytoken2"))),
		)
	}
	host, port, _ := strings.Cut(dead, ":")
	channels = append(channels,
		fmt.Sprintf(`{"email": {"host": %q, "port": %s, "username": "u", "password": %s, "from": "d@example.com", "to": ["o@example.com"]}}`, host, port, value),
		fmt.Sprintf(`{"webhook": {"url": %s}}`, notifytest.File(notifytest.SecretFile(t, "http://%zz c4nary"))),
		fmt.Sprintf(`{"webhook": {"url": "http://%s", "secret": %s}}`, dead, notifytest.File(notifytest.SecretFile(t, "whsec_c4nary!"))),
		fmt.Sprintf(`{"webhook": {"url": "http://%s", "headers": {"X-Token": %s}}}`, dead, notifytest.File(notifytest.SecretFile(t, "c4nary\nin two lines"))),
	)
	for _, text := range channels {
		s := notifytest.Senders(t, kinds.All(), "%s", text)
		_, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted)))
		if err == nil {
			t.Errorf("%s: delivered", text)
			continue
		}
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			shown := fmt.Sprintf("%s %+v %#v", inner, inner, inner)
			if strings.Contains(strings.ToLower(shown), "c4nary") || strings.Contains(shown, basic) {
				t.Errorf("%s: %s", text, shown)
			}
		}
	}
}

func TestAChannelHidesItsSecrets(t *testing.T) {
	cfg, err := notifytest.Parse(t, kinds.All(), `{"oncall": {"webhook": {"url": {"env": "CANARY"}, "headers": {"X": {"file": "/canary"}}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(asJSON), fmt.Sprintf("%v %+v", *cfg["oncall"].Receivers[0].Config.(*webhook.Config), cfg)} {
		if strings.Contains(strings.ToLower(shown), "canary") {
			t.Error(shown)
		}
	}
	notifytest.Contains(t, string(asJSON), `"(secret)"`)
}

func TestCheckSecrets(t *testing.T) {
	cfg, err := notifytest.Parse(t, kinds.All(), `{"b": {"slack": {"webhook": {"env": "NOTIFY_TEST_NOT_SET"}}}, "a": {"url": {"file": "/nonexistent/url"}},
		"c": {"webhook": {"url": "http://localhost", "secret": %s}}, "d": {"url": %s}}`, notifytest.File(notifytest.SecretFile(t, "fine")), notifytest.File(notifytest.SecretFile(t, "")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := notify.New(cfg, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(s.CheckSecrets().Error(), "\n")
	for i, want := range []string{"channels.a.url: reading a secret: open /nonexistent/url", "channels.b.slack.webhook: environment variable NOTIFY_TEST_NOT_SET is not set", "channels.d.url: the secret file"} {
		if len(lines) != 3 || !strings.HasPrefix(lines[i], want) {
			t.Errorf("%q, want %s", lines, want)
		}
	}
}

func TestSendersAreSafeForConcurrentUse(t *testing.T) {
	r := notifytest.Receive(t, nil)
	s := notifytest.Senders(t, kinds.All(), `{"webhook": {"url": %q, "headers": {"X-Token": %s}}}`, r.URL, notifytest.File(notifytest.SecretFile(t, "canary")))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := s.Send(t.Context(), "oncall", notifytest.Message(notifytest.Event(notices.MaintenanceStarted))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	r.Last(t, 20)
}
