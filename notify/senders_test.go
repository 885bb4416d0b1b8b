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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock/notify"
	"drydock/rules/notices"
)

func TestAnyURL(t *testing.T) {
	r := receive(t, nil)
	host := strings.TrimPrefix(r.URL, "http://")
	s := senders(t, `{"url": %s}`, file(secretFile(t, "generic://"+host+"/hook?disabletls=yes&@X-Token=canary-of-a-header")))
	deliver(t, s, message(event(notices.ObjectsDrained)))
	got := r.last(t, 1)
	contains(t, string(got.body), "[eu] worker-1: drained, maintenance may begin\n\nNode: worker-1")
	if got.header.Get("X-Token") != "canary-of-a-header" || got.path != "/hook" {
		t.Errorf("%s %v", got.path, got.header)
	}
}

func TestURLsThatNoServiceTakes(t *testing.T) {
	for _, address := range []string{
		"nobody://canary@canaryhost", "canary-canary", "logger://", "discord://", "slack://canary", "generic://%zz:canary", "telegram://canary@telegram",
		"discord+https://canary", "teams+canary://", "slack+http://canarycanary",
	} {
		s := senders(t, `{"url": %s}`, file(secretFile(t, address)))
		_, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted)))
		if err == nil || !notify.Permanent(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v, permanent %v", address, err, notify.Permanent(err))
		}
	}
}

// Tries that time out do not pile up: the next one waits for its turn.
func TestAHangingServiceIsAskedOnce(t *testing.T) {
	begun, release := make(chan struct{}, 10), make(chan struct{})
	r := receive(t, func(http.ResponseWriter, received) { begun <- struct{}{}; <-release })
	s := senders(t, `{"url": %s}`, file(secretFile(t, "generic://"+strings.TrimPrefix(r.URL, "http://")+"/?disabletls=yes")))
	ctx, cancel := contextWithCancel(t)
	go func() { <-begun; cancel() }()
	if _, err := s.Send(ctx, "oncall", message(event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Fatalf("%v", err)
	}
	if _, err := s.Send(ctx, "oncall", message(event(notices.MaintenanceStarted))); err == nil || notify.Permanent(err) {
		t.Fatalf("%v", err)
	}
	if n := len(r.all()); n != 1 {
		t.Errorf("%d requests", n)
	}
	close(release)
	deliver(t, s, message(event(notices.MaintenanceStarted)))
}

func TestKubernetes(t *testing.T) {
	cfg, err := parse(t, `{"oncall": {"kubernetes": {}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := notify.New(cfg, nil, ""); err == nil || !strings.HasPrefix(err.Error(), "channels.oncall.kubernetes: ") {
		t.Errorf("without a client: %v", err)
	}
	r := &recorder{}
	s, err := notify.New(cfg, r, "")
	if err != nil {
		t.Fatal(err)
	}
	deliver(t, s, message(event(notices.SLAExpired)))
	other := event(notices.MaintenanceComplete)
	other.ID, other.Node, other.Blockers, other.MoreBlockers = "other", "worker-2", nil, 0
	deliver(t, s, message(event(notices.MaintenanceStarted), other))
	key := message().Key
	for i, want := range []string{
		"worker-1 " + key + " SLAExpired warning=true not empty in the agreed time, what is left may be removed by force, for ops.example.com: new firmware (CHG-1); " +
			"waiting for pod web/web-0: its budget allows no disruption and 2 more",
		"worker-1 " + key + "/node-maintenance/worker-1/ops/run/3 MaintenanceStarted warning=false cordoned, the drain has begun, for ops.example.com",
		"worker-2 " + key + "/other MaintenanceComplete warning=false maintenance is complete, the node is back in service, for ops.example.com: new firmware (CHG-1)",
	} {
		if !strings.HasPrefix(r.events[i], want) {
			t.Errorf("%s\nwant %s", r.events[i], want)
		}
	}
	for _, c := range []struct {
		err       error
		permanent bool
	}{
		{errors.New("connection refused"), false},
		{apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", nil), false},
		{apierrors.NewBadRequest("no"), true},
		{apierrors.NewTooManyRequests("busy", 3), false},
	} {
		r.err = c.err
		if _, err := s.Send(t.Context(), "oncall", message(other)); err == nil || notify.Permanent(err) != c.permanent {
			t.Errorf("%v: permanent %v", err, notify.Permanent(err))
		}
	}
}

func TestMessagesThatCannotBeSent(t *testing.T) {
	s := senders(t, `{"kubernetes": {}}`)
	for name, c := range map[string]struct {
		channel string
		message notify.Message
		want    string
	}{
		"no such channel": {"offcall", message(event(notices.SLAExpired)), "channel offcall: is not configured: want one of oncall"},
		"nothing to say":  {"oncall", message(), "no event"},
		"no key":          {"oncall", notify.Message{Events: []notices.Event{event(notices.SLAExpired)}}, "no key"},
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
	aws(t)
	dead := closedPort(t)
	quoting := receive(t, func(w http.ResponseWriter, r received) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "you sent %s %s %v", r.path, r.header, r.header.Get("X-Token"))
	})
	redirecting := receive(t, func(w http.ResponseWriter, r received) {
		w.Header().Set("Location", "http://"+dead+r.path)
		w.WriteHeader(http.StatusFound)
	})
	escaped := url.PathEscape(canary)
	basic := base64.StdEncoding.EncodeToString([]byte("user:" + canary))
	value := file(secretFile(t, canary))
	key := file(secretFile(t, "whsec_"+base64.StdEncoding.EncodeToString([]byte(canary))))
	var channels []string
	for _, address := range []string{dead, strings.TrimPrefix(quoting.URL, "http://"), strings.TrimPrefix(redirecting.URL, "http://")} {
		secretURL := file(secretFile(t, "http://user:"+escaped+"@"+address+"/"+escaped+"/x?token="+url.QueryEscape(canary)))
		channels = append(channels,
			fmt.Sprintf(`{"slack": {"webhook": %s}}`, secretURL),
			fmt.Sprintf(`{"slack": {"token": %s, "channel": "C1", "apiURL": "http://%s/"}}`, value, address),
			fmt.Sprintf(`{"webhook": {"url": %s, "secret": %s, "headers": {"X-Token": %s}}}`, secretURL, key, value),
			fmt.Sprintf(`{"sns": {"topicARN": %q, "endpoint": "http://%s", "accessKeyID": %s, "secretAccessKey": %s}}`, topic, address, value, value),
			fmt.Sprintf(`{"url": %s}`, file(secretFile(t, "generic://"+address+"/"+escaped+"?disabletls=yes&@X-Token="+url.QueryEscape(canary)))),
			fmt.Sprintf(`{"url": %s}`, file(secretFile(t, "gotify://"+address+"/Ac4naryAbcdefgh?disabletls=yes"))),
			fmt.Sprintf(`{"url": %s}`, file(secretFile(t, "ntfy://user:"+escaped+"@"+address+"/c4narytopic?scheme=http"))),
			fmt.Sprintf(`{"url": %s}`, file(secretFile(t, "rocketchat://"+address+"/c4narytoken/c4narytoken2"))),
		)
	}
	host, port, _ := strings.Cut(dead, ":")
	channels = append(channels,
		fmt.Sprintf(`{"email": {"host": %q, "port": %s, "username": "u", "password": %s, "from": "d@example.com", "to": ["o@example.com"]}}`, host, port, value),
		fmt.Sprintf(`{"webhook": {"url": %s}}`, file(secretFile(t, "http://%zz c4nary"))),
		fmt.Sprintf(`{"webhook": {"url": "http://%s", "secret": %s}}`, dead, file(secretFile(t, "whsec_c4nary!"))),
		fmt.Sprintf(`{"webhook": {"url": "http://%s", "headers": {"X-Token": %s}}}`, dead, file(secretFile(t, "c4nary\nin two lines"))),
	)
	for _, text := range channels {
		s := senders(t, "%s", text)
		_, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted)))
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
	cfg, err := parse(t, `{"oncall": {"webhook": {"url": {"env": "CANARY"}, "headers": {"X": {"file": "/canary"}}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(asJSON), fmt.Sprintf("%v %+v", *cfg["oncall"].Webhook, cfg)} {
		if strings.Contains(strings.ToLower(shown), "canary") {
			t.Error(shown)
		}
	}
	contains(t, string(asJSON), `"(secret)"`)
}

func TestCheckSecrets(t *testing.T) {
	cfg, err := parse(t, `{"b": {"slack": {"webhook": {"env": "NOTIFY_TEST_NOT_SET"}}}, "a": {"url": {"file": "/nonexistent/url"}},
		"c": {"webhook": {"url": "http://localhost", "secret": %s}}, "d": {"url": %s}}`, file(secretFile(t, "fine")), file(secretFile(t, "")))
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
	r := receive(t, nil)
	s := senders(t, `{"webhook": {"url": %q, "headers": {"X-Token": %s}}}`, r.URL, file(secretFile(t, "canary")))
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := s.Send(t.Context(), "oncall", message(event(notices.MaintenanceStarted))); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	r.last(t, 20)
}
