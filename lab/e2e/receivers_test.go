package e2e

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock.dev/drydock/rules/notices"
)

// receivers are servers outside of Drydock that channels tell: chat, webhooks, SNS and hooks by HTTP, and mail.
type receivers struct {
	*site
	http *httptest.Server
	// down lets the path /late answer 503, good what is below /smoke/ say so.
	down, good atomic.Bool
	// signature verifies what /events and /late get.
	signature *standardwebhooks.Webhook

	mu sync.Mutex
	// got are the requests by path, told the events of signed webhooks by path.
	got  map[string][]received
	told map[string][]notices.Event
	// refused counts the answers 503 of /late, mails are what arrived by mail.
	refused int
	mails   []string

	mailPort string
	mailCA   string
	password string
}

type received struct {
	header http.Header
	body   string
	form   url.Values
}

func (s *site) receivers(signingKey, mailPassword string) *receivers {
	s.Helper()
	r := &receivers{site: s, got: map[string][]received{}, told: map[string][]notices.Event{}, password: mailPassword}
	var err error
	if r.signature, err = standardwebhooks.NewWebhook(signingKey); err != nil {
		s.Fatal(err)
	}
	r.http = httptest.NewServer(http.HandlerFunc(r.serve))
	s.Cleanup(r.http.Close)
	r.serveMail()
	return r
}

func (r *receivers) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := request.URL.Path
	r.mu.Lock()
	defer r.mu.Unlock()
	if path == "/late" && r.down.Load() {
		r.refused++
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	got := received{header: request.Header, body: string(body)}
	if strings.HasPrefix(request.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		got.form, err = url.ParseQuery(got.body)
	}
	if err == nil && (path == "/events" || path == "/late" || path == "/digest") {
		err = r.takeEvents(path, got)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.got[path] = append(r.got[path], got)
	switch {
	case strings.HasPrefix(path, "/slack/"):
		fmt.Fprint(w, "ok")
	case path == "/api/chat.postMessage":
		fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":"1700000000.%06d"}`, len(r.got[path]))
	case path == "/sns/":
		fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>`)
	case strings.HasPrefix(path, "/smoke/") && r.good.Load():
		fmt.Fprint(w, "good")
	case path == "/silences":
		fmt.Fprintf(w, `{"silenceID":"silence-%d"}`, len(r.got[path]))
	}
}

// takeEvents verifies a signature and reads the CloudEvents that it covers.
func (r *receivers) takeEvents(path string, got received) error {
	if err := r.signature.Verify([]byte(got.body), got.header); err != nil {
		return err
	}
	type cloudEvent struct {
		ID   string        `json:"id"`
		Type string        `json:"type"`
		Data notices.Event `json:"data"`
	}
	var events []cloudEvent
	if path != "/digest" {
		events = make([]cloudEvent, 1)
		if err := json.Unmarshal([]byte(got.body), &events[0]); err != nil {
			return err
		}
	} else if err := json.Unmarshal([]byte(got.body), &events); err != nil {
		return err
	}
	for _, e := range events {
		if e.ID != e.Data.ID || e.Type != "dev.drydock.maintenance."+string(e.Data.State) {
			return fmt.Errorf("event %s of type %s tells of %s, %s", e.ID, e.Type, e.Data.ID, e.Data.State)
		}
		r.told[path] = append(r.told[path], e.Data)
	}
	return nil
}

// events are those of one run that a signed webhook got.
func (r *receivers) events(path, run string) []notices.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	var events []notices.Event
	for _, e := range r.told[path] {
		if e.RunID == run {
			events = append(events, e)
		}
	}
	return events
}

func (r *receivers) requests(path string) []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]received{}, r.got[path]...)
}

// secret writes a secret to a file, in the form in which the configuration names it.
func (r *receivers) secret(name, value string) string {
	r.Helper()
	return fmt.Sprintf("{file: %q}", r.file(name, value))
}

func (s *site) file(name, content string) string {
	s.Helper()
	file := filepath.Join(s.options.Dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		s.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		s.Fatal(err)
	}
	return file
}

// serveMail is an SMTP server that wants STARTTLS and AUTH PLAIN.
func (r *receivers) serveMail() {
	r.Helper()
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	certificates.Close()
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &mailSession{receivers: r, conn: c}, nil }))
	server.Domain = "localhost"
	server.TLSConfig = &tls.Config{Certificates: certificates.TLS.Certificates}
	r.mailCA = r.file("mail-ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificates.Certificate().Raw})))
	listener, err := new(net.ListenConfig).Listen(r.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		r.Fatal(err)
	}
	_, r.mailPort, _ = net.SplitHostPort(listener.Addr().String())
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	r.Cleanup(func() {
		if err := server.Close(); err != nil {
			r.Errorf("closing the mail server: %v", err)
		}
		if err := <-served; err != nil && !errors.Is(err, smtp.ErrServerClosed) {
			r.Errorf("serving mail: %v", err)
		}
	})
}

type mailSession struct {
	*receivers
	conn   *smtp.Conn
	proven bool
}

func (m *mailSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (m *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if _, encrypted := m.conn.TLSConnectionState(); !encrypted || user != "drydock" || password != m.password {
			return smtp.ErrAuthFailed
		}
		m.proven = true
		return nil
	}), nil
}

func (m *mailSession) Mail(string, *smtp.MailOptions) error {
	if !m.proven {
		return smtp.ErrAuthRequired
	}
	return nil
}

func (m *mailSession) Rcpt(string, *smtp.RcptOptions) error { return nil }

func (m *mailSession) Data(r io.Reader) error {
	mail, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mails = append(m.mails, string(mail))
	return nil
}

func (m *mailSession) Reset()        {}
func (m *mailSession) Logout() error { return nil }
