package notice_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/emersion/go-smtp"

	"drydock.dev/drydock/k8s/k8stest"
	"drydock.dev/drydock/notify"
	sending "drydock.dev/drydock/notify/notice"
	"drydock.dev/drydock/notify/notifytest"
	"drydock.dev/drydock/rules/profile/notice"
)

const leaseKey = "coordination.k8s.io/leases/ns/thread"

func mailTo(p *notifytest.MailServer, to ...string) notice.Mail {
	return notice.Mail{
		Auth: true, Address: net.JoinHostPort(p.Host, p.Port), From: "Controller <mc@example.com>", To: to, User: "drydock", Password: "canary-password",
	}
}

func TestMail(t *testing.T) {
	for _, encryption := range []string{"", "none"} {
		t.Run("encryption "+encryption, func(t *testing.T) {
			p := notifytest.StartMailServer(t, encryption, "canary-password")
			n := mailTo(p, "a@example.com", "b@example.com")
			if encryption == "none" { // then it offers no authentication either
				n.Auth, p.Password = false, ""
			}
			s := &sending.Sender{Agent: "drydock/test", CAFile: p.CA}
			for range 2 {
				if err := s.Send(t.Context(), n, notice.Message{Title: "Ünder {{way}}", Text: "n1\nis down"}, "key"); err != nil {
					t.Fatal(err)
				}
			}
			_, first, body := p.Mail(t, 2)
			got := p.Mails[0]
			if got.From != "mc@example.com" || strings.Join(got.To, " ") != "a@example.com b@example.com" || body != "n1\nis down\n" {
				t.Errorf("%s to %v: %q", got.From, got.To, body)
			}
			if id := first.Header.Get("Message-ID"); id == "" || !strings.Contains(string(got.Raw), id) || first.Header.Get("Date") == "" {
				t.Errorf("a repetition has another ID: %v", first.Header)
			}
			if p.Plaintext != (encryption == "none") {
				t.Errorf("in the clear: %v", p.Plaintext)
			}
		})
	}
}

func TestMailErrors(t *testing.T) {
	gone := &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "no such mailbox"}
	busy := &smtp.SMTPError{Code: 450, EnhancedCode: smtp.EnhancedCode{4, 2, 0}, Message: "busy"}
	for name, c := range map[string]struct {
		change    func(p *notifytest.MailServer, m *notice.Mail)
		permanent bool
		text      string
		mails     int
	}{
		"another password":      {func(p *notifytest.MailServer, _ *notice.Mail) { p.Password = "new" }, false, "(secret)", 0},
		"busy":                  {func(p *notifytest.MailServer, _ *notice.Mail) { p.Refuse = busy }, false, "busy", 0},
		"one is gone":           {func(p *notifytest.MailServer, _ *notice.Mail) { p.RefuseTo = map[string]error{"b@example.com": gone} }, true, "the others have got it", 1},
		"no port":               {func(_ *notifytest.MailServer, m *notice.Mail) { m.Address = "smtp.example.com" }, true, "address:", 0},
		"no user":               {func(_ *notifytest.MailServer, m *notice.Mail) { m.User = "" }, true, "user: required", 0},
		"no address of a mail":  {func(_ *notifytest.MailServer, m *notice.Mail) { m.From = "nobody at all" }, true, "email.from:", 0},
		"nobody of that domain": {func(_ *notifytest.MailServer, m *notice.Mail) { m.Address = "127.0.0.1:1" }, false, "sending mail", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := notifytest.StartMailServer(t, "", "canary-password")
			m := mailTo(p, "a@example.com", "b@example.com")
			c.change(p, &m)
			s := &sending.Sender{CAFile: p.CA}
			err := s.Send(t.Context(), m, notice.Message{Title: "t", Text: "x"}, "key")
			if err == nil || notify.Permanent(err) != c.permanent || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "canary") {
				t.Errorf("%v, permanent %v", err, notify.Permanent(err))
			}
			p.Mu.Lock()
			defer p.Mu.Unlock()
			if len(p.Mails) != c.mails {
				t.Errorf("%d mails", len(p.Mails))
			}
		})
	}
}

func TestSlack(t *testing.T) {
	for name, c := range map[string]struct {
		status    int
		permanent bool
		wait      time.Duration
	}{
		"ok": {200, false, 0}, "gone": {404, true, 0}, "busy": {429, false, 30 * time.Second}, "down": {503, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := notifytest.Receive(t, func(w http.ResponseWriter, _ notifytest.Received) {
				if c.wait > 0 {
					w.Header().Set("Retry-After", "30")
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("ok /services/T0/canary-of-a-hook"))
			})
			s := &sending.Sender{}
			n := notice.Slack{Hook: r.URL + "/services/T0/canary-of-a-hook", Channel: "#ops"}
			err := s.Send(t.Context(), n, notice.Message{Text: "<!here> n1"}, "key")
			if (err == nil) != (c.status == 200) || notify.Permanent(err) != c.permanent || notify.RetryAfter(err) != c.wait {
				t.Fatalf("%v, permanent %v, after %s", err, notify.Permanent(err), notify.RetryAfter(err))
			}
			got := notifytest.Decode[map[string]any](t, r.Last(t, 1).Body)
			if got["text"] != "<!here> n1" || got["channel"] != "#ops" {
				t.Errorf("%v", got)
			}
			r.Close()
			if err = s.Send(t.Context(), n, notice.Message{Text: "x"}, "key"); err == nil || notify.Permanent(err) || strings.Contains(err.Error(), "canary") {
				t.Errorf("of a server that is gone: %v", err)
			}
		})
	}
	s := &sending.Sender{}
	for _, hook := range []string{"canary-hook", "ftp://host/canary", "https://%zz/canary"} {
		if err := s.Send(t.Context(), notice.Slack{Hook: hook}, notice.Message{}, "key"); !notify.Permanent(err) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", hook, err)
		}
	}
	if err := s.Send(t.Context(), nil, notice.Message{}, "key"); !notify.Permanent(err) {
		t.Errorf("of no kind: %v", err)
	}
}

// workspace is Slack, which numbers what is posted, and an API server with the Lease of a thread.
type workspace struct {
	*sending.Sender
	slack *notifytest.Receiver
	kinds *k8stest.Kinds
	// refuse has replies refused with an error of Slack's, those to one thread where deleted names it.
	refuse, deleted string
	// ahead is how far the API server's clock is ahead of this machine's.
	ahead time.Duration
}

func open(t *testing.T) *workspace {
	t.Helper()
	w := &workspace{kinds: k8stest.NewKinds()}
	w.kinds.Set(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`)
	server := k8stest.New()
	server.Handle = func(answer http.ResponseWriter, r *http.Request) bool {
		answer.Header().Set("Date", time.Now().Add(w.ahead).UTC().Format(http.TimeFormat))
		return w.kinds.Handle(answer, r)
	}
	w.slack = notifytest.Receive(t, func(answer http.ResponseWriter, r notifytest.Received) {
		answer.Header().Set("Content-Type", "application/json")
		if w.refuse != "" && strings.Contains(string(r.Body), "thread_ts="+w.deleted) {
			_, _ = fmt.Fprintf(answer, `{"ok": false, "error": %q}`, w.refuse)
			return
		}
		_, _ = fmt.Fprintf(answer, `{"ok": true, "channel": "C1", "ts": "%d.1"}`, len(w.slack.All()))
	})
	w.Sender = &sending.Sender{Client: server.Client(t), SlackURL: w.slack.URL}
	return w
}

var thread = notice.SlackThread{Token: "xoxb-canary", Channel: "C1", LeaseName: "thread", LeaseNamespace: "ns", Period: time.Hour}

func (w *workspace) send(ctx context.Context, text string) error {
	return w.Send(ctx, thread, notice.Message{Title: "Title", Text: text}, "key")
}

// posted are the texts so far, with the threads that they answer.
func (w *workspace) posted(t *testing.T) string {
	t.Helper()
	var all []string
	for _, r := range w.slack.All() {
		form, err := url.ParseQuery(string(r.Body))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, strings.TrimPrefix(form.Get("thread_ts")+":", ":")+form.Get("text"))
	}
	return strings.Join(all, ", ")
}

func (w *workspace) lease(t *testing.T, holder string, renewed time.Time) {
	t.Helper()
	w.kinds.Set(fmt.Sprintf(`{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"thread","namespace":"ns"},
		"spec":{"holderIdentity":%q,"renewTime":%q,"leaseDurationSeconds":60,"leaseTransitions":2}}`, holder, renewed.UTC().Format("2006-01-02T15:04:05.000000Z07:00")))
}

func (w *workspace) spec(t *testing.T) map[string]any {
	t.Helper()
	found := w.kinds.Find(leaseKey)
	if found == nil {
		t.Fatal("there is no lease")
	}
	return found.Object["spec"].(map[string]any)
}

func TestThread(t *testing.T) {
	w := open(t)
	for _, text := range []string{"one <!here>", "two"} {
		if err := w.send(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.posted(t); got != "Title, 1.1:one &lt;!here&gt;, 1.1:two" {
		t.Errorf("posted %s", got)
	}
	spec := w.spec(t)
	if spec["holderIdentity"] != "1.1" || spec["leaseDurationSeconds"] != int64(3600) || spec["leaseTransitions"] != int64(0) {
		t.Errorf("%v", spec)
	}
	// The thread goes on until its Lease expires: replies do not renew it.
	w.lease(t, "0.9", time.Now().Add(-59*time.Second))
	before := w.spec(t)["renewTime"]
	if err := w.send(t.Context(), "three"); err != nil || w.spec(t)["renewTime"] != before {
		t.Errorf("%v, %v", err, w.spec(t))
	}
	w.lease(t, "0.9", time.Now().Add(-61*time.Second))
	if err := w.send(t.Context(), "four"); err != nil {
		t.Fatal(err)
	}
	if got := w.posted(t); !strings.HasSuffix(got, "0.9:three, Title, 5.1:four") || w.spec(t)["leaseTransitions"] != int64(3) {
		t.Errorf("posted %s: %v", got, w.spec(t))
	}
}

// TestAThreadLastsByTheServersClock: the worker's clock is an hour behind the API server's, or ahead of it.
func TestAThreadLastsByTheServersClock(t *testing.T) {
	for _, ahead := range []time.Duration{time.Hour, -time.Hour} {
		w := open(t)
		w.ahead = ahead
		server := time.Now().Add(ahead)
		w.lease(t, "0.9", server)
		if err := w.send(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		w.lease(t, "0.9", server.Add(-2*time.Minute))
		if err := w.send(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		if got := w.posted(t); got != "0.9:one, Title, 2.1:two" {
			t.Errorf("%s ahead: posted %s", ahead, got)
		}
		text, _ := w.spec(t)["renewTime"].(string)
		if renewed, err := time.Parse(time.RFC3339, text); err != nil || renewed.Sub(server).Abs() > time.Minute {
			t.Errorf("%s ahead: the lease is of %s, %v", ahead, text, err)
		}
	}
}

// What breaks off between the title and the reply is sent again, into the thread that was begun.
func TestAMessageWhoseReplyFailsIsNotLost(t *testing.T) {
	w := open(t)
	w.refuse = "ratelimited"
	if err := w.send(t.Context(), "one"); err == nil || notify.Permanent(err) {
		t.Fatalf("%v", err)
	}
	w.refuse = ""
	if err := w.send(t.Context(), "one"); err != nil || w.posted(t) != "Title, 1.1:one, 1.1:one" {
		t.Errorf("%v: %s", err, w.posted(t))
	}
}

// A thread whose first message somebody deleted is not waited out.
func TestADeletedThreadIsBegunAnew(t *testing.T) {
	for _, answer := range []string{"thread_not_found", "message_not_found"} {
		w := open(t)
		w.lease(t, "0.9", time.Now())
		w.refuse, w.deleted = answer, "0.9"
		for _, text := range []string{"one", "two"} {
			if err := w.send(t.Context(), text); err != nil {
				t.Fatalf("%s: %v", answer, err)
			}
		}
		if got := w.posted(t); got != "0.9:one, Title, 2.1:one, 2.1:two" || w.spec(t)["holderIdentity"] != "2.1" {
			t.Errorf("%s: posted %s; the lease has %v", answer, got, w.spec(t)["holderIdentity"])
		}
	}
}

func TestAThreadThatIsNotRemembered(t *testing.T) {
	w := open(t)
	w.kinds.Refuse = func(r *http.Request) int {
		if r.Method == http.MethodGet {
			return 0
		}
		return http.StatusForbidden
	}
	err := w.send(t.Context(), "one")
	if !notify.Permanent(err) || !strings.Contains(err.Error(), "lease ns/thread") || w.posted(t) != "Title, 1.1:one" {
		t.Errorf("%v: %s", err, w.posted(t))
	}
	w.kinds.Refuse = func(*http.Request) int { return http.StatusServiceUnavailable }
	if err := w.send(t.Context(), "two"); err == nil || notify.Permanent(err) || strings.Contains(w.posted(t), "two") {
		t.Errorf("a lease that cannot be read: %v: %s", err, w.posted(t))
	}
	w.kinds.Refuse = nil
	w.slack.Close()
	if err := w.send(t.Context(), "three"); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("%v", err)
	}
}

// Whoever was faster has the thread.
func TestAnotherWorkersThreadCounts(t *testing.T) {
	w := open(t)
	w.kinds.Refuse = func(r *http.Request) int {
		if r.Method == http.MethodPost {
			w.lease(t, "0.7", time.Now())
		}
		return 0
	}
	if err := w.send(t.Context(), "one"); err != nil || w.posted(t) != "Title, 0.7:one" {
		t.Errorf("%v: %s", err, w.posted(t))
	}
}

func TestManyNotificationsBeginOneThread(t *testing.T) {
	w := open(t)
	ended := make(chan error)
	const many = 10
	for range many {
		go func() { ended <- w.send(t.Context(), "x") }()
	}
	for range many {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if got := w.posted(t); strings.Count(got, "Title") != 1 || strings.Count(got, ":x") != many {
		t.Errorf("posted %s", got)
	}
}
