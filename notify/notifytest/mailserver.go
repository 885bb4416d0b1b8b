package notifytest

import (
	"bytes"
	"crypto/tls"
	"io"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Values for the encryption of a MailServer: those of notify/email, whose tests import this package.
const (
	noTLS       = "none"
	implicitTLS = "implicit"
)

// MailServer is an SMTP server that keeps what it gets.
type MailServer struct {
	Host, Port string
	// CA is the file of its authority, empty if it knows no TLS.
	CA string

	// Mu guards what follows.
	Mu sync.Mutex
	// Password is that of the user drydock; empty wants none.
	Password string
	Mails    []Delivered
	// Refuse is the answer to every recipient, and RefuseTo to some.
	Refuse   error
	RefuseTo map[string]error
	// Plaintext reports whether a mail came without TLS.
	Plaintext bool
}

// Delivered is one mail.
type Delivered struct {
	From string
	To   []string
	Raw  []byte
}

// StartMailServer starts a server; encryption is what notify/email asks of a connection, where empty is StartTLS.
func StartMailServer(t *testing.T, encryption, password string) *MailServer {
	t.Helper()
	p := &MailServer{Password: password}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{server: p, conn: c}, nil }))
	server.Domain = "localhost"
	server.ErrorLog = silent{}
	if encryption != noTLS {
		certificates := httptest.NewUnstartedServer(nil)
		certificates.StartTLS()
		server.TLSConfig = &tls.Config{Certificates: certificates.TLS.Certificates}
		p.CA = Authority(t, certificates)
		certificates.Close()
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if p.Host, p.Port, err = net.SplitHostPort(listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if encryption == implicitTLS {
		listener = tls.NewListener(listener, server.TLSConfig)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends because it is closed
	}()
	t.Cleanup(func() {
		server.Close()
		_ = listener.Close() // the server may not know of it yet
		<-ended
	})
	return p
}

type silent struct{}

func (silent) Printf(string, ...any) {}
func (silent) Println(...any)        {}

type session struct {
	server *MailServer
	conn   *smtp.Conn
	authed bool
	mail   Delivered
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		s.server.Mu.Lock()
		defer s.server.Mu.Unlock()
		if username != "drydock" || password != s.server.Password {
			// A server that quotes what it should not.
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "not the password: " + password}
		}
		s.authed = true
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.server.Password != "" && !s.authed {
		return smtp.ErrAuthRequired
	}
	s.mail = Delivered{From: from}
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.Mu.Lock()
	defer s.server.Mu.Unlock()
	if refused := s.server.RefuseTo[to]; refused != nil {
		return refused
	}
	s.mail.To = append(s.mail.To, to)
	return s.server.Refuse
}

func (s *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Raw = raw
	_, encrypted := s.conn.TLSConnectionState()
	s.server.Mu.Lock()
	defer s.server.Mu.Unlock()
	s.server.Plaintext = s.server.Plaintext || !encrypted
	s.server.Mails = append(s.server.Mails, s.mail)
	return nil
}

func (s *session) Reset()        {}
func (s *session) Logout() error { return nil }

// Mail parses the one that was not looked at yet, by count.
func (p *MailServer) Mail(t *testing.T, count int) (Delivered, *mail.Message, string) {
	t.Helper()
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if len(p.Mails) != count {
		t.Fatalf("%d mails, want %d", len(p.Mails), count)
	}
	got := p.Mails[count-1]
	parsed, err := mail.ReadMessage(bytes.NewReader(got.Raw))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(quotedprintable.NewReader(parsed.Body))
	if err != nil {
		t.Fatal(err)
	}
	return got, parsed, strings.ReplaceAll(string(body), "\r\n", "\n")
}
