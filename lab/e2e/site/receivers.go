package site

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
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"drydock.dev/drydock/rules/notices"
)

// Receivers are servers outside of Drydock that channels tell: chat, webhooks, SNS and hooks by HTTP, and mail.
type Receivers struct {
	*Site
	HTTP *httptest.Server
	// down lets the path /late answer 503, good what is below /smoke/ say so.
	Down, Good atomic.Bool
	// signature verifies what /events and /late get.
	signature *standardwebhooks.Webhook

	Mu sync.Mutex
	// got are the requests by path, told the events of signed webhooks by path.
	Got  map[string][]received
	told map[string][]notices.Event
	// refused counts the answers 503 of /late, mails are what arrived by mail.
	Refused int
	Mails   []string

	MailPort string
	MailCA   string
	password string
}

type received struct {
	Header http.Header
	Body   string
	Form   url.Values
}

// Receivers serves a receiver of every kind until the test ends.
func (s *Site) Receivers(signingKey, mailPassword string) *Receivers {
	s.Helper()
	r := &Receivers{Site: s, Got: map[string][]received{}, told: map[string][]notices.Event{}, password: mailPassword}
	var err error
	r.signature, err = standardwebhooks.NewWebhook(signingKey)
	s.NoError(err)
	r.HTTP = httptest.NewServer(http.HandlerFunc(r.serve))
	s.Cleanup(r.HTTP.Close)
	r.serveMail()
	return r
}

func (r *Receivers) serve(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path := request.URL.Path
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if path == "/late" && r.Down.Load() {
		r.Refused++
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	got := received{Header: request.Header, Body: string(body)}
	if strings.HasPrefix(request.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		got.Form, err = url.ParseQuery(got.Body)
	}
	if err == nil && (path == "/events" || path == "/late" || path == "/digest") {
		err = r.takeEvents(path, got)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Got[path] = append(r.Got[path], got)
	switch {
	case strings.HasPrefix(path, "/slack/"):
		fmt.Fprint(w, "ok")
	case path == "/api/chat.postMessage":
		fmt.Fprintf(w, `{"ok":true,"channel":"C1","ts":"1700000000.%06d"}`, len(r.Got[path]))
	case path == "/sns/":
		fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>m</MessageId></PublishResult></PublishResponse>`)
	case strings.HasPrefix(path, "/smoke/") && r.Good.Load():
		fmt.Fprint(w, "good")
	case path == "/silences":
		fmt.Fprintf(w, `{"silenceID":"silence-%d"}`, len(r.Got[path]))
	}
}

// takeEvents verifies a signature and reads the CloudEvents that it covers.
func (r *Receivers) takeEvents(path string, got received) error {
	if err := r.signature.Verify([]byte(got.Body), got.Header); err != nil {
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
		if err := json.Unmarshal([]byte(got.Body), &events[0]); err != nil {
			return err
		}
	} else if err := json.Unmarshal([]byte(got.Body), &events); err != nil {
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

// Events are those of one run that a signed webhook got.
func (r *Receivers) Events(path, run string) []notices.Event {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.told[path]), func(e notices.Event) bool { return e.RunID != run })
}

// Requests are those that came to a path.
func (r *Receivers) Requests(path string) []received {
	r.Mu.Lock()
	defer r.Mu.Unlock()
	return slices.Clone(r.Got[path])
}

// Secret writes a secret to a file, in the form in which the configuration names it.
func (r *Receivers) Secret(name, value string) string {
	r.Helper()
	return fmt.Sprintf("{file: %q}", r.File(name, value))
}

// File writes a file of the test's own, and returns its path.
func (s *Site) File(name, content string) string {
	s.Helper()
	file := filepath.Join(s.Options.Dir, name)
	s.NoError(os.MkdirAll(filepath.Dir(file), 0o755))
	s.NoError(os.WriteFile(file, []byte(content), 0o600))
	return file
}

// serveMail is an SMTP server that wants STARTTLS and AUTH PLAIN.
func (r *Receivers) serveMail() {
	r.Helper()
	certificates := httptest.NewUnstartedServer(nil)
	certificates.StartTLS()
	certificates.Close()
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &mailSession{Receivers: r, conn: c}, nil }))
	server.Domain = "localhost"
	server.TLSConfig = &tls.Config{Certificates: certificates.TLS.Certificates}
	r.MailCA = r.File("mail-ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificates.Certificate().Raw})))
	listener, err := new(net.ListenConfig).Listen(r.Ctx, "tcp", "127.0.0.1:0")
	r.NoError(err)
	_, r.MailPort, _ = net.SplitHostPort(listener.Addr().String())
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
	*Receivers
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
	m.Mu.Lock()
	defer m.Mu.Unlock()
	m.Mails = append(m.Mails, string(mail))
	return nil
}

func (m *mailSession) Reset() {}

func (m *mailSession) Logout() error { return nil }
